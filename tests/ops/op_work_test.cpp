// The time model over op records: cycles by hand on every profile, and what must hold between profiles.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iomanip>
#include <set>
#include <nlohmann/json.hpp>

#include "device/memory.h"
#include "ops/op.h"
#include "harness.h"
#include "tests/catch.h"
#include "tests/golden.h"

namespace {

using namespace ttrt;
using namespace ttrt::test;

TensorSpec tensor(Shape shape, BufferType memory = BufferType::dram, Layout layout = Layout::tile) {
  TensorSpec spec;
  spec.logical = std::move(shape);
  spec.layout = layout;
  spec.memory.buffer_type = memory;
  return spec;
}

OpCall linear(std::int64_t m, std::int64_t k, std::int64_t n, const char* fidelity = "HiFi4",
              BufferType memory = BufferType::dram) {
  return {.op = find_op("tt.linear"),
          .args = {TensorRef{0},
                   TensorRef{1},
                   {},
                   std::vector<std::int64_t>{k, n},
                   "bfloat16",
                   fidelity,
                   true,
                   {},
                   false,
                   false,
                   {},
                   {},
                   false,
                   std::int64_t{0}},
          .tensors = {tensor({m, k}, memory), tensor({k, n}, memory)}};
}
OpCall unary(const char* op, Shape shape) {
  return {.op = find_op(op), .args = {TensorRef{0}}, .tensors = {tensor(shape)}};
}

const KernelVariant* variant_of(const OpCall& call, std::string_view name) {
  for (const KernelVariant& variant : call.op->variants)
    if (variant.name == name) return &variant;
  return nullptr;
}

Time time_of(const OpCall& call, const ArchProfile& profile, std::string_view variant = "") {
  VariantQuery sizes{.grid_x = profile.grid_x,
                     .grid_y = profile.grid_y,
                     .dram_banks = profile.dram_banks,
                     .l1_bytes = profile.l1_bytes - profile.l1_reserved - profile.l1_kernel_bytes};
  if (!call.tensors.empty()) sizes.a = call.tensors.front().dtype, sizes.b = call.tensors.back().dtype;
  if (call.op->describe != nullptr) call.op->describe(call, sizes);
  return device_time(call, profile, variant_of(call, variant), sizes);
}

double tiles_of(std::int64_t n, std::int64_t cores) {
  return std::ceil(static_cast<double>(n) / 32 / static_cast<double>(cores));
}

// Calls that are bound by every engine, in every variant that can share them.
std::vector<std::pair<OpCall, std::string>> calls() {
  std::vector<std::pair<OpCall, std::string>> out;
  for (const BufferType memory : {BufferType::dram, BufferType::l1})
    for (const char* fidelity : {"HiFi4", "LoFi"}) {
      for (const std::int64_t m : {1024, 4096, 384})
        for (const std::int64_t n : {1024, 3072, 800}) {
          out.emplace_back(linear(m, 768, n, fidelity, memory), "2d");
          out.emplace_back(linear(m, 768, n, fidelity, memory), "1d");
        }
      out.emplace_back(linear(32, 4096, 416, fidelity, memory), "dram_sharded");
      out.emplace_back(linear(32, 4096, 14336, fidelity, memory), "1d");
    }
  // Blocks that L1 limits, and tiles that take longer to come than to ask for.
  out.emplace_back(linear(4096, 6144, 4096), "2d");
  out.emplace_back(linear(2560, 6656, 3328), "2d");
  OpCall floats = linear(512, 1024, 2048, "LoFi");
  for (TensorSpec& spec : floats.tensors) spec.dtype = DataType::float32;
  out.emplace_back(std::move(floats), "2d");
  for (const char* op : {"tt.relu", "tt.gelu"}) out.emplace_back(unary(op, {2048, 2048}), "");
  out.emplace_back(unary("tt.relu", {32, 32}), "");
  OpCall softmax = unary("tt.softmax", {64, 8192});
  softmax.args.insert(softmax.args.end(), {std::int64_t{-1}, true, "HiFi4", false});
  out.emplace_back(std::move(softmax), "");
  return out;
}

std::string text_of(double number) {
  std::ostringstream out;
  out << std::setprecision(10) << number;
  return out.str();
}

std::string sizes_text(const OpCall& call) {
  std::string out;
  for (const TensorSpec& spec : call.tensors) {
    out += out.empty() ? "" : " and ";
    for (std::size_t i = 0; i < spec.logical.size(); ++i) out += (i ? "x" : "") + std::to_string(spec.logical[i]);
  }
  return out;
}

std::string text_of(const Work& work) {
  std::string out;
  const auto add = [&](const char* what, double number) {
    if (number != 0) out += (out.empty() ? "" : ", ") + text_of(number) + " " + what;
  };
  add(to_string(work.fidelity).data(), work.tile_products);
  add("element-wise", work.eltwise_tiles);
  add("reduced", work.reduced_tiles);
  add("vector", work.vector_ops);
  add("B unpacked", work.unpacked_bytes);
  add("B packed", work.packed_bytes);
  for (const Pages& pages : work.moved)
    add(("x " + std::to_string(pages.bytes) + " B " + (pages.written ? "to " : "from ") +
         std::string(to_string(pages.memory)))
            .c_str(),
        static_cast<double>(pages.count));
  add("pieces", static_cast<double>(work.pieces));
  add("B of L1", static_cast<double>(work.l1_bytes));
  return out;
}

// Cases of every record, and calls larger than a test would run: what they do, how many cycles that is on n150 and what
// binds them there, in every variant; each text once.
std::vector<std::string> works() {
  std::set<std::string> known;
  std::vector<std::string> out;
  const auto add = [&](const std::string& name, const OpCall& call) {
    if (call.op->work == nullptr) return;
    std::string text = text_of(call.op->work(call));
    for (const KernelVariant& variant : call.op->variants) {
      const Time time = time_of(call, find_profile("n150"), variant.name);
      text += "; " + std::string(variant.name) + " " + text_of(time.cycles) + " " + std::string(to_string(time.bound));
    }
    if (known.insert(text).second) out.push_back(name + ": " + text);
  };
  for (const OpRecord* record : all_ops())
    for (const OpCase& c : record->cases)
      for (const OpCall& call : run_case(c, {}, device()).calls)
        if (call.op == record) add(std::string(record->name) + ", " + std::string(c.name), call);
  for (const auto& [call, variant] : calls()) add(std::string(call.op->name) + " of " + sizes_text(call), call);
  for (const std::int64_t width : {170, 171}) {  // tiles of a row that L1 holds three times, and one more
    OpCall norm = unary("tt.rms_norm", {32, width * 32});
    norm.args.insert(norm.args.end(), {OpArg{}, width * 32, 1e-6, true, "HiFi4", false});
    add("tt.rms_norm of " + std::to_string(width) + " tiles a row", norm);
  }
  return out;
}

}  // namespace

TEST_CASE("what calls do is what is written down", "[time]") {
  const std::string path = TTC_TEST_DATA "/op_work.txt";
  const std::vector<std::string> now = works();
  if (update_expected()) {
    std::ofstream file(path);
    for (const std::string& line : now) file << line << "\n";
  }
  std::ifstream file(path);
  std::size_t lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    INFO(line);
    CHECK(std::ranges::find(now, line) != now.end());
  }
  CHECK(lines > 250);
}

// Of the tile products that the matrix unit computes for the busiest core.
double product_cycles(const ArchProfile& p, double products, int phases) {
  return products * (phases * 65536 / p.matrix_flops_per_cycle * p.matmul_overhead + p.matmul_product_cycles);
}

TEST_CASE("a product of 1024 x 1024 x 1024 takes the busiest core's tile products at the chip's rate", "[time]") {
  for (const ArchProfile& p : arch_profiles()) {
    INFO(p.name);
    const double busiest = tiles_of(1024, p.grid_y) * tiles_of(1024, p.grid_x) * 32;
    for (const auto& [fidelity, phases] : {std::pair{"LoFi", 1}, {"HiFi2", 2}, {"HiFi3", 3}, {"HiFi4", 4}}) {
      const Time time = time_of(linear(1024, 1024, 1024, fidelity), p, "2d");
      CHECK(time.term(Bound::math) == Approx(product_cycles(p, busiest, phases)));
      CHECK(time.cycles >= *std::max_element(time.terms.begin(), time.terms.end()));
      CHECK(time.us == Approx(time.cycles / p.clock_mhz));
    }
    const Time inside = time_of(linear(1024, 1024, 1024, "HiFi4", BufferType::l1), p, "2d");
    CHECK(inside.term(Bound::dram) == 0);
    CHECK(inside.cycles <= time_of(linear(1024, 1024, 1024), p, "2d").cycles);
  }
}

TEST_CASE("the blocks of a product add up as the kernels take turns", "[time]") {
  // 2 x 4 tiles a core, 8 blocks of 4 tiles of K; the core that has a column's in1 reads and multicasts 16 tiles each
  // time, and the others wait for it.
  const ArchProfile& p = find_profile("n150");
  const MatmulShape shape{.m = 512, .k = 1024, .n = 1024};
  const MatmulProgram program = tuned_program(shape, true, true, MatmulDevice(p));
  REQUIRE(to_string(program) ==
          "2d 8x8, in0_block_w 4, per core 2x4, block 2x4, subblock 1x4, in0 sharded, out sharded");
  const double block = 16 * (2048 / p.reader_bytes_per_cycle + 2048 / p.mcast_bytes_per_cycle) + p.block_sync_cycles;
  const Time time = matmul_time(shape, program, MathFidelity::LoFi, p);
  CHECK(time.bound == Bound::noc);
  CHECK(time.cycles == Approx(p.matmul_start_cycles + 9 * block));
  CHECK(time.term(Bound::noc) == Approx(8 * block));
  // At four phases a block's computing takes longer than the next one's coming, all but the first time.
  const MatmulShape large{.m = 2048, .k = 2048, .n = 2048};
  const MatmulProgram wide = tuned_program(large, true, true, MatmulDevice(p));
  const Time busy = matmul_time(large, wide, MathFidelity::HiFi4, p);
  CHECK(busy.bound == Bound::math);
  CHECK(busy.cycles > busy.term(Bound::math) + p.matmul_start_cycles);
  CHECK(busy.cycles < 1.2 * busy.term(Bound::math));
  // In two phases the unpackers bring operands of bfloat16 more slowly than the matrix unit takes them.
  CHECK(matmul_time(large, wide, MathFidelity::HiFi2, p).bound == Bound::unpack);
}

TEST_CASE("element-wise ops take what the memory takes, small ones what dispatching takes", "[time]") {
  for (const ArchProfile& p : arch_profiles()) {
    INFO(p.name);
    const double tiles = 64 * 64, busiest = std::ceil(tiles / static_cast<double>(p.cores()));
    const Time gelu = time_of(unary("tt.gelu", {2048, 2048}), p);
    const double bus = p.dram_gb_s * 1000 / p.clock_mhz, mixed = 1 - 1 / busiest;
    CHECK(gelu.term(Bound::dram) ==
          Approx(2 * tiles * 2048 / bus * (mixed / p.dram_mixed_efficiency + (1 - mixed) / p.dram_efficiency)));
    CHECK(gelu.cycles == Approx(std::max(gelu.term(Bound::dram), gelu.term(Bound::math)) + p.program_start_cycles +
                                p.noc_dram_read_cycles + p.noc_l1_write_cycles));
    CHECK(gelu.term(Bound::unpack) == Approx(busiest * 2048 / p.unpack_bytes_per_cycle));
    CHECK(gelu.term(Bound::pack) == Approx(busiest * 2048 / p.pack_bytes_per_cycle));
    CHECK(gelu.term(Bound::math) == Approx(busiest * 40 * 1024 / p.vector_lanes));
    const Time relu = time_of(unary("tt.relu", {32, 32}), p);
    const double ways = p.program_start_cycles + p.noc_dram_read_cycles + p.noc_l1_write_cycles;
    const double slowest = std::max({relu.term(Bound::math), relu.term(Bound::noc), relu.term(Bound::dram)});
    CHECK(relu.us == Approx(std::max(p.dispatch_us, (ways + slowest) / p.clock_mhz)));
    CHECK((relu.bound == Bound::dispatch) == (p.dispatch_us * p.clock_mhz > ways + slowest));
    CHECK(relu.term(Bound::noc) == Approx(std::max(2048 / p.noc_core_bytes_per_cycle, p.page_issue_cycles)));
  }
}

TEST_CASE("one row of tiles with a long weight is read at the rate of the fullest bank", "[time]") {
  for (const ArchProfile& p : arch_profiles()) {
    INFO(p.name);
    const double per_bank = std::ceil(13.0 / static_cast<double>(p.dram_banks));
    const double readers = std::min<double>(13, static_cast<double>(p.dram_banks));
    const Time time = time_of(linear(32, 4096, 416), p, "dram_sharded");
    const double bus = readers * per_bank * 128 * 2048 / (p.dram_gb_s * p.dram_efficiency * 1000 / p.clock_mhz);
    CHECK(time.term(Bound::dram) == Approx(std::max(bus, per_bank * 128 * 2048 / p.dram_sharded_bytes_per_cycle)));
    CHECK(time.term(Bound::math) == Approx(product_cycles(p, per_bank * 128, 4)));
  }
}

TEST_CASE("a batch that is one tall matrix reads the weight once", "[time]") {
  for (const ArchProfile& p : arch_profiles()) {
    INFO(p.name);
    OpCall call = linear(8 * 384, 1024, 1024), tall = call;
    call.tensors[0] = tensor({8, 384, 1024});
    const Time apart = time_of(call, p, "2d"), together = time_of(call, p, "folded");
    CHECK(together.cycles < 0.6 * apart.cycles);
    CHECK(together.term(Bound::math) <= apart.term(Bound::math));
    CHECK(together.term(Bound::dram) < apart.term(Bound::dram));
    // Rows are padded matrix by matrix: 16 of 33 rows are as many tiles as 16 of 64.
    OpCall padded = linear(33, 1024, 1024), full = linear(64, 1024, 1024);
    padded.tensors[0] = tensor({16, 33, 1024}), full.tensors[0] = tensor({16, 64, 1024});
    CHECK(time_of(padded, p, "folded").cycles == time_of(full, p, "folded").cycles);
  }
}

// A norm's passes wait for each tile: mean, difference, square, variance, product, and weight and bias where there are.
TEST_CASE("a norm takes a tile's way through the engines for each of its passes", "[time]") {
  for (const ArchProfile& p : arch_profiles()) {
    INFO(p.name);
    OpCall norm = unary("tt.layer_norm", {32, 4096});
    norm.args.insert(norm.args.end(), {OpArg{}, OpArg{}, std::int64_t{4096}, 1e-5, true, "HiFi4", false});
    CHECK(time_of(norm, p).term(Bound::math) == Approx(128 * 5 * p.handover_cycles));
    norm.args[1] = TensorRef{1}, norm.args[2] = TensorRef{2};
    norm.tensors.insert(norm.tensors.end(), 2, tensor({1, 4096}));
    CHECK(time_of(norm, p).term(Bound::math) == Approx(128 * 7 * p.handover_cycles));
    CHECK(time_of(norm, p).bound == Bound::math);
  }
}

TEST_CASE("a transfer takes its pages over the host link", "[time]") {
  for (const ArchProfile& p : arch_profiles()) {
    const Time tiles = estimate_transfer(tensor({2, 33, 64}), p);
    CHECK(tiles.bound == Bound::pcie);
    CHECK(tiles.us == Approx(2 * 2 * 2 * 2048 / (p.h2d_gb_s * 1000)));
    const Time rows = estimate_transfer(tensor({10, 33}, BufferType::dram, Layout::row_major), p);
    const double page = static_cast<double>(round_up(66, p.pcie_alignment));
    CHECK(rows.us == Approx(10 * page / (p.h2d_gb_s * 1000)));
  }
}

TEST_CASE("what the matrix unit bounds on n150 is never slower on p150", "[time]") {
  int seen = 0;
  for (const auto& [call, variant] : calls()) {
    const Time n150 = time_of(call, find_profile("n150"), variant);
    if (n150.bound != Bound::math && n150.bound != Bound::unpack) continue;
    ++seen;
    INFO(call.op->name << " " << variant);
    CHECK(time_of(call, find_profile("p150"), variant).us <= n150.us);
  }
  CHECK(seen > 10);
}

// The blocks of a product follow from the grid, and the library's rules don't always gain by a larger one: there its
// computing is never more.
TEST_CASE("twice the cores are never slower", "[time]") {
  for (const ArchProfile& p : arch_profiles()) {
    ArchProfile wide = p, high = p;
    wide.grid_x *= 2;
    high.grid_y *= 2;
    for (const auto& [call, variant] : calls()) {
      INFO(p.name << " " << call.op->name << " " << variant << " " << to_string(time_of(call, p, variant).bound));
      const Time usual = time_of(call, p, variant);
      for (const ArchProfile& larger : {wide, high}) {
        const Time time = time_of(call, larger, variant);
        if (!call.op->variants.empty())
          CHECK(time.term(Bound::math) <= usual.term(Bound::math));
        else
          CHECK(time.cycles <= usual.cycles);
      }
    }
  }
}

TEST_CASE("every number of a profile decides something", "[time]") {
  using Estimates = std::pair<std::vector<double>, std::vector<std::string>>;
  const auto estimates = [](const ArchProfile& p) {
    Estimates out;
    const auto add = [&](const Time& time) {
      out.first.push_back(time.us);
      out.first.insert(out.first.end(), time.terms.begin(), time.terms.end());
    };
    for (const auto& [call, variant] : calls()) add(time_of(call, p, variant));
    for (double Work::* tiles : {&Work::eltwise_tiles, &Work::reduced_tiles}) {
      Work work;
      work.*tiles = 1000;
      add(estimate(work, p, even_split(10, p)));
    }
    for (const BufferType memory : {BufferType::dram, BufferType::l1}) {
      const TensorSpec rows = tensor({1000, 8001}, memory, Layout::row_major);
      Work work;
      work.read(rows);
      add(estimate(work, p, even_split(10, p)));
      add(estimate_transfer(rows, p));
    }
    // What does not fit: of L1, and of DRAM.
    for (std::int64_t bytes = 1 << 15; bytes < 1 << 23; bytes += 1 << 12) {
      const ttc::Refusal refusal = check_circular_buffers(p, bytes);
      out.second.push_back(refusal ? refusal->detail : "");
    }
    const MemoryUsage dram = DeviceMemory(p, 0).report().dram;
    out.second.push_back(std::to_string(dram.banks) + " of " + std::to_string(dram.bank_bytes));
    return out;
  };
  for (const char* board : {"e150", "n150", "p150"}) {
    const ArchProfile& profile = find_profile(board);
    const Estimates usual = estimates(profile);
    nlohmann::json numbers = nlohmann::json::parse(to_json(profile));
    for (const auto& [key, value] : numbers.items()) {
      // A device is one chip; a board's second one is another device.
      if (!value.is_number() || key == "chips") continue;
      INFO(board << " " << key);
      nlohmann::json changed = numbers;
      const bool share = key.starts_with("dram_") && key.ends_with("efficiency");  // at most 1
      if (value.is_number_integer())
        changed[key] = 2 * value.get<std::int64_t>();
      else
        changed[key] = (share ? 0.5 : 2) * value.get<double>();
      CHECK(estimates(parse_profile(changed.dump(), "changed.json")) != usual);
    }
  }
}
