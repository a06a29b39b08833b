// Operands that are NaN, infinite, denormal, huge or negative zeros, in every case of every record: results are NaN and
// infinite where ATen's are, or the record says why the device's differ.
#include "device/metrics.h"
#include "harness.h"
#include "tests/catch.h"

using namespace ttrt;
using namespace ttrt::test;

TEST_CASE("NaN and infinities come out where ATen's do, or the record says why not") {
  for (const OpRecord* record : all_ops())
    for (OpCase c : record->cases) {
      c.range = "special";
      for (const DataType activation : {DataType::float32, DataType::bfloat16}) {
        const Config config{.activation = activation};
        INFO(record->name << " / " << c.name << " / " << to_string(config));
        const CaseRun run = run_case(c, config, device());
        CHECK_FALSE(run.outputs.empty());
        for (const Output& output : run.outputs)
          CHECK((compare(output.device, as_packed(output)).nan == 0 || !record->special_values.empty()));
      }
    }
}
