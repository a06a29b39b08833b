// Operands that are NaN, infinite, denormal, huge or negative zeros, in every case of every record: results are NaN and
// infinite where ATen's are, or the record or the list here says why the device's differ.
#include <map>

#include "device/metrics.h"
#include "harness.h"
#include "tests/catch.h"
#include "torch/cpu_op.h"

using namespace ttrt;
using namespace ttrt::test;

namespace {

Device& device() {
  static const std::shared_ptr<Device> shared = [] {
    install_torch_schemas();
    auto made = create_device(Arch::wormhole, 5);
    initialize_device(*made);
    return made;
  }();
  return *shared;
}

// Fast numerics whose special results are the device's and not ATen's, for reasons of formats and products; what else
// there is the records say.
const std::map<std::string_view, std::string_view> own_results{
    {"tt.attention", "hidden keys weigh zero, and zero times NaN is NaN"},
    {"tt.conv2d", "denormal operands of products are zeros, and zero times infinity NaN"},
    {"tt.convert", "bfloat16 tensors hold no NaN"},
    {"tt.conv_transpose2d", "denormal operands of products are zeros, and zero times infinity NaN"},
    {"tt.cos", "no argument is reduced beyond 1.4e13"},
    {"tt.floor_divide", "infinite dividends have infinite quotients, in ATen NaN"},
    {"tt.fmod", "remainders of quotients beyond float32's range, in ATen NaN"},
    {"tt.grouped_matmul", "denormal operands of products are zeros, and zero times infinity NaN"},
    {"tt.matmul", "denormal operands of products are zeros, and zero times infinity NaN"},
    {"tt.maximum", "comparisons pass NaN by"},
    {"tt.minimum", "comparisons pass NaN by"},
    {"tt.mul", "zero times anything is zero in bfloat16"},
    {"tt.remainder", "remainders of quotients beyond float32's range, in ATen NaN"},
    {"tt.sin", "no argument is reduced beyond 1.4e13"},
    {"tt.tan", "no argument is reduced beyond 1.4e13"},
    {"tt.typecast", "bfloat16 tensors hold no NaN"},
};

}  // namespace

TEST_CASE("NaN and infinities come out where ATen's do, or the list says why not") {
  for (const OpRecord* record : all_ops()) {
    bool differs = false;
    for (OpCase c : record->cases) {
      c.range = "special";
      for (const DataType activation : {DataType::float32, DataType::bfloat16}) {
        const Config config{.activation = activation};
        INFO(record->name << " / " << c.name << " / " << to_string(config));
        const CaseRun run = run_case(c, config, device());
        CHECK_FALSE(run.outputs.empty());
        for (const Output& output : run.outputs) {
          const bool other = compare(output.device, as_packed(output)).nan > 0;
          differs = differs || other;
          CHECK((!other || !record->special_values.empty() || own_results.contains(record->name)));
        }
      }
    }
    INFO(record->name << " has ATen's special results, or its record says which: strike it from the list");
    CHECK(((differs && record->special_values.empty()) || !own_results.contains(record->name)));
  }
}
