// Columns as tt-metal writes them; what only silicon can tell (hashes, kernel sizes) is left out.
#include "session/perf_csv.h"

#include <cmath>

#include "ir/node_counts.h"
#include "support/csv.h"

namespace ttc {
namespace {

constexpr std::size_t csv_operands = 3;

// The four innermost dims as PADDED[LOGICAL], layout, format, memory; blank for no tensor.
void add_tensor(std::vector<std::string>& cells, const ttrt::TensorSpec* spec) {
  if (spec == nullptr) {
    cells.resize(cells.size() + 7);
    return;
  }
  // What a tensor has beyond four dims is in the first of them.
  const auto dim = [](const ttrt::Shape& shape, std::size_t from_last) {
    if (from_last >= shape.size()) return std::string("1");
    std::int64_t n = shape[shape.size() - 1 - from_last];
    for (std::size_t d = from_last + 1; from_last == 3 && d < shape.size(); ++d) n *= shape[shape.size() - 1 - d];
    return std::to_string(n);
  };
  const ttrt::Shape padded = spec->padded();
  for (const std::size_t d : {3, 2, 1, 0}) cells.push_back(dim(padded, d) + "[" + dim(spec->logical, d) + "]");
  cells.push_back(upper(to_string(spec->layout)));
  cells.push_back(upper(to_string(spec->dtype)));
  cells.push_back("DEV_0_" + std::string(to_string(spec->memory.buffer_type)) + "_" +
                  std::string(to_string(spec->memory.layout)));
}

std::vector<std::string> header() {
  std::vector<std::string> out = {"OP CODE",
                                  "OP TYPE",
                                  "GLOBAL CALL COUNT",
                                  "DEVICE ID",
                                  "DEVICE ARCH",
                                  "ATTRIBUTES",
                                  "MATH FIDELITY",
                                  "CORE COUNT",
                                  "AVAILABLE WORKER CORE COUNT",
                                  "PARALLELIZATION STRATEGY",
                                  "HOST START TS",
                                  "HOST END TS",
                                  "HOST DURATION [ns]",
                                  "DEVICE FW START CYCLE",
                                  "DEVICE FW END CYCLE",
                                  "OP TO OP LATENCY [ns]",
                                  "DEVICE FW DURATION [ns]",
                                  "DEVICE KERNEL DURATION [ns]",
                                  "DEVICE BRISC KERNEL DURATION [ns]",
                                  "DEVICE NCRISC KERNEL DURATION [ns]",
                                  "DEVICE TRISC0 KERNEL DURATION [ns]",
                                  "DEVICE TRISC1 KERNEL DURATION [ns]",
                                  "DEVICE TRISC2 KERNEL DURATION [ns]"};
  for (std::size_t i = 0; i <= csv_operands; ++i) {
    const std::string tensor = i < csv_operands ? "INPUT_" + std::to_string(i) : "OUTPUT_0";
    for (const char* column : {"_W_PAD[LOGICAL]", "_Z_PAD[LOGICAL]", "_Y_PAD[LOGICAL]", "_X_PAD[LOGICAL]", "_LAYOUT",
                               "_DATATYPE", "_MEMORY"})
      out.push_back(tensor + column);
  }
  for (const char* column : {"PROGRAM CACHE HIT", "PM IDEAL [ns]", "PM COMPUTE [ns]", "PM BANDWIDTH [ns]",
                             "PM FPU UTIL (%)", "NOC UTIL (%)", "DRAM BW UTIL (%)", "PM BOUND"})
    out.emplace_back(column);
  return out;
}

// Where the clocks of host and device stand.
struct Clock {
  double host_ns = 0, cycles = 0;
};

std::string whole(double value) { return std::to_string(std::llround(value)); }

std::vector<std::string> cells_of(const OpRow& row, const ttrt::ArchProfile& arch, int call, Clock& clock) {
  using ttrt::Bound;
  const bool device = row.on_device();
  const double host_ns = row.wall_us * 1000;
  const auto ns = [&](double cycles) { return device ? whole(cycles / arch.clock_mhz * 1000) : std::string(); };
  const auto term = [&](Bound bound) { return row.time.term(bound); };
  const auto percent = [&](double cycles) {
    return device && row.time.cycles > 0 ? std::to_string(100 * cycles / row.time.cycles) : std::string();
  };
  std::vector<std::string> cells = {program_name(row),
                                    device ? "tt_dnn_device" : "tt_dnn_cpu",
                                    std::to_string(call),
                                    device ? "0" : "",
                                    device ? std::string(to_string(arch.arch)) : "",
                                    attributes_text(row),
                                    device ? row.fidelity : "",
                                    device ? std::to_string(row.split.cores) : "",
                                    device ? std::to_string(arch.cores()) : "",
                                    row.kernel,
                                    whole(clock.host_ns),
                                    whole(clock.host_ns + host_ns),
                                    whole(host_ns),
                                    device ? whole(clock.cycles) : "",
                                    device ? whole(clock.cycles + row.time.cycles) : "",
                                    "0",
                                    ns(row.time.cycles),
                                    ns(row.time.cycles),
                                    ns(term(Bound::noc)),
                                    ns(term(Bound::dram)),
                                    ns(term(Bound::unpack)),
                                    ns(term(Bound::math)),
                                    ns(term(Bound::pack))};
  clock.host_ns += std::max(1.0, host_ns);  // readers sort by it
  clock.cycles += row.time.cycles;
  for (std::size_t i = 0; i < csv_operands; ++i)
    add_tensor(cells, device && i < row.operands.size() ? &row.operands[i] : nullptr);
  add_tensor(cells, device && !row.results.empty() ? row.results.data() : nullptr);
  for (std::string cell :
       {std::string(device ? "True" : ""), ns(row.time.cycles), ns(term(Bound::math)),
        ns(std::max(term(Bound::dram), term(Bound::noc))), percent(term(Bound::math)), percent(term(Bound::noc)),
        percent(term(Bound::dram)), device ? std::string(to_string(row.time.bound)) : std::string()})
    cells.push_back(std::move(cell));
  return cells;
}

}  // namespace

std::string perf_csv(std::span<const OpRow> rows, const ttrt::ArchProfile& arch) {
  Csv out;
  out.row(header());
  Clock clock;
  int call = 0;
  for (const OpRow& row : rows)
    if (row.on_device() || (row.place == ttrt::OpPlace::cpu && ir::computes_tensors(*row.node)))
      out.row(cells_of(row, arch, ++call, clock));
  return out.text();
}

}  // namespace ttc
