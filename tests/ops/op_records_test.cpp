// Every op record against ATen: all cases, over activation and weight formats, fidelities and instruction sets.
#include <cmath>

#include "torch/cpu_op.h"
#include "device/cpu.h"
#include "harness.h"
#include "ir/op_schema.h"
#include "tests/catch.h"

using namespace ttrt;
using namespace ttrt::test;

namespace {

Device& device() {
  static const std::shared_ptr<Device> shared = [] {
    install_torch_schemas();
    auto made = create_device(Arch::wormhole, 0);
    initialize_device(*made);
    return made;
  }();
  return *shared;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

// The formats that make a difference to a record: weights only where it packs some, fidelity where it has one.
std::vector<Config> configs_of(const OpRecord& record) {
  std::vector<Config> out{{}, {.activation = DataType::float32}};
  const auto has = [&](std::string_view name) { return record.schema.find(name) != std::string_view::npos; };
  if (has("bool fp32_acc")) out.push_back({.fp32_acc = false});
  if (has("str fidelity")) out.push_back({.fidelity = MathFidelity::LoFi});
  if (has("str weight_format")) {
    out.push_back({.weight = DataType::bfloat8_b, .fidelity = MathFidelity::HiFi2});
    out.push_back({.weight = DataType::bfloat4_b, .fidelity = MathFidelity::LoFi});
    out.push_back({.activation = DataType::float32, .weight = DataType::float32});
  }
  return out;
}

// What the fast numerics may cost against float32: the record's tolerance at full fidelity, less for fewer multiplier
// bits (5 and 7) or 16-bit sums.
double least_pcc(const OpRecord& record, const Config& config) {
  double least = record.tolerance.pcc;
  if (config.fidelity == MathFidelity::LoFi) least = std::min(least, 0.998);
  if (!config.fp32_acc || config.fidelity == MathFidelity::HiFi2) least = std::min(least, 0.9995);
  return least;
}

}  // namespace

TEST_CASE("every record is complete") {
  device();
  REQUIRE(all_ops().size() > 50);
  for (const OpRecord* record : all_ops()) {
    INFO(record->name);
    CHECK(record->name.starts_with("tt."));
    CHECK_FALSE(record->summary.empty());
    CHECK(record->infer != nullptr);
    CHECK(record->reference != nullptr);
    CHECK(record->work != nullptr);
    CHECK_FALSE(record->cases.empty());
    const auto* schema = ttc::ir::find_schema(record->name);
    REQUIRE(schema != nullptr);
    for (const Operand& operand : record->operands) CHECK(schema->index_of(operand.name) >= 0);
    for (const Packed& packed : record->packed) CHECK(schema->index_of(packed.name) >= 0);
    for (const Lowering& lowering : record->lowers) CHECK(CpuOp::find(lowering.aten) != nullptr);
  }
}

TEST_CASE("every case of every record agrees with ATen") {
  for (const OpRecord* record : all_ops()) {
    for (const OpCase& c : record->cases) {
      for (const Config& config : configs_of(*record)) {
        INFO(record->name << " / " << c.name << " / " << to_string(config));
        CaseRun run;
        REQUIRE_NOTHROW(run = run_case(c, config, device()));
        INFO("refused: " << joined(run.refusals));
        CHECK(run.served.contains(std::string(record->name)));
        REQUIRE_FALSE(run.outputs.empty());
        for (const Output& output : run.outputs) {
          REQUIRE(output.device.sizes == output.expected.sizes);
          CHECK(output.reference.sizes == output.expected.sizes);
          CHECK(output.padding_is_zero);
          const double least = least_pcc(*record, config), measured = pcc(output.device, output.expected);
          INFO("max abs " << max_abs_difference(output.device, output.expected));
          CHECK(measured >= least - 1e-12);
          CHECK(pcc(output.reference, output.expected) >= 0.999999);
          if (record->tolerance.max_abs > 0)
            CHECK(max_abs_difference(output.device, output.expected) <= record->tolerance.max_abs);
        }
      }
    }
  }
}

TEST_CASE("kernels give the same bits on every instruction set") {
  // Matrix products add in the order their blocking makes.
  const std::set<std::string_view> products{"tt.linear", "tt.matmul", "tt.attention"};
  for (const OpRecord* record : all_ops()) {
    if (products.contains(record->name)) continue;
    for (const OpCase& c : record->cases) {
      INFO(record->name << " / " << c.name);
      const CaseRun best = run_case(c, {}, device());
      for (const Isa level : {Isa::portable, Isa::avx2, Isa::avx512}) {
        const ScopedIsa lowered(level);
        const CaseRun other = run_case(c, {}, device());
        REQUIRE(other.outputs.size() == best.outputs.size());
        for (std::size_t i = 0; i < best.outputs.size(); ++i) CHECK(other.outputs[i].bytes == best.outputs[i].bytes);
      }
    }
  }
}
