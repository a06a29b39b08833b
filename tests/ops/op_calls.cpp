// op_calls: the calls that the op records' cases become, as lines of JSON; for tests in Python.
//
//   {"op": "tt.slice", "args": [{"tensor": [3, 40], "dtype": "bfloat16"}, 1, 0, null, 2]}
//
// A packed weight is {"packed": true}, a list of tensors a list of such objects, a dtype {"dtype": "float32"}; numbers
// that JSON lacks are {"float": "inf"}.
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "harness.h"
#include "ops/bind.h"
#include "support/error.h"
#include "torch/cpu_op.h"

namespace {

using nlohmann::json;

json of_number(double value) {
  if (std::isfinite(value)) return value;
  return {{"float", std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf"}};
}

json of_tensor(const ttrt::OpCall& call, ttrt::TensorRef ref, const std::string& name) {
  if (ttrt::pack_rule(*call.op, name) != nullptr) return {{"packed", true}};
  const ttrt::TensorSpec& spec = call.tensors[static_cast<std::size_t>(ref.index)];
  return {{"tensor", spec.logical}, {"dtype", ttc::torch_name(ttrt::torch_dtype(spec.dtype))}};
}

json of_argument(const ttrt::OpCall& call, const ttrt::OpArg& arg, const std::string& name) {
  return std::visit(
      [&](const auto& value) -> json {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          return nullptr;
        } else if constexpr (std::is_same_v<T, ttrt::TensorRef>) {
          return of_tensor(call, value, name);
        } else if constexpr (std::is_same_v<T, ttc::DType>) {
          return {{"dtype", ttc::torch_name(value)}};
        } else if constexpr (std::is_same_v<T, double>) {
          return of_number(value);
        } else if constexpr (std::is_same_v<T, std::vector<ttrt::TensorRef>> ||
                             std::is_same_v<T, std::vector<double>>) {
          json list = json::array();
          for (const auto& item : value) {
            if constexpr (std::is_same_v<T, std::vector<double>>)
              list.push_back(of_number(item));
            else
              list.push_back(of_tensor(call, item, name));
          }
          return list;
        } else {
          return value;
        }
      },
      arg);
}

void print(const ttrt::OpCall& call) {
  const ttc::ir::OpSchema* schema = ttc::ir::find_schema(call.op->name);
  json args = json::array();
  for (std::size_t i = 0; i < call.args.size(); ++i)
    args.push_back(of_argument(call, call.args[i], schema->args[i].name));
  std::printf("%s\n", json{{"op", call.op->name}, {"args", args}}.dump().c_str());
}

}  // namespace

int main() {
  try {
    ttrt::install_torch_schemas();
    for (const ttrt::OpRecord* record : ttrt::all_ops())
      for (const ttrt::OpCase& one : record->cases)
        for (const ttrt::OpCall& call : ttrt::test::run_case(one, {}, ttrt::test::device()).calls) print(call);
  } catch (const ttc::Error& error) {
    std::fputs(error.message().c_str(), stderr);
    return static_cast<int>(error.code());
  }
}
