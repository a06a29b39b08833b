// Replay of functions that one op record is (ops/library.h), by the record's schema alone: a case's tensors are its
// tensor arguments in order, a case's parameters its arguments of the same names.
#include "ops/library.h"

#include "replay/records.h"
#include "replay/replay.h"

namespace ttrt::replay {
namespace {

constexpr std::string_view activations = "activations";  // behind the op, by name
constexpr std::string_view result_format = "dtype";      // wider operands: the op then has the Dest of that format
constexpr std::string_view sorted = "sorted";            // results are in order anyway

bool is_tensor(const ttc::ir::SchemaArg& arg) { return arg.type.starts_with("Tensor"); }

// A record that only moves or chooses values takes every format as it is. Functions of two operands do too: the formats
// tell the unit that computes them.
bool keeps_values(const OpRecord& record) {
  const Tolerance& t = record.tolerance;
  return t.pcc == 1 && t.max_rel == 0 && t.exact_max_rel == 0;
}

ttc::Refusal give_tensors(const Case& c, RecordCall& call) {
  const bool stored = keeps_values(call.record()) || (call.has("a") && call.has("b"));
  std::size_t next = 0;
  for (const ttc::ir::SchemaArg& arg : call.schema().args) {
    if (!is_tensor(arg) || next == c.inputs.size()) continue;
    if (arg.type.starts_with("Tensor[]")) {
      std::vector<const Tensor*> all;
      while (next < c.inputs.size()) all.push_back(&c.inputs[next++]);
      call.stored(arg.name, all);
    } else if (const Tensor& t = c.inputs[next++]; stored && is_float_format(t.dtype)) {
      call.stored(arg.name, t);
    } else {
      call.tensor(arg.name, t);
    }
  }
  if (next == c.inputs.size()) return std::nullopt;
  return ttc::Reason{ttc::ReasonCode::Unsupported, c.op + " of " + std::to_string(c.inputs.size()) + " tensors"};
}

RtValue literal_of(const ttc::Json& json, std::string_view type) {
  if (json.is_array()) {
    RtValue::List list;
    for (const ttc::Json& item : json) list.push_back(literal_of(item, type));
    return list;
  }
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_string() && !type.starts_with("float")) return json.get<std::string>();
  if (json.is_number_integer() && !type.starts_with("float")) return json.get<std::int64_t>();
  return ttc::as_double(json);
}

// One number for a list of them counts for the list.
ttc::Refusal give_parameters(const Case& c, RecordCall& call) {
  const auto& args = call.schema().args;
  for (const auto& [name, value] : c.params.items()) {
    if (value.is_null() || name == activations || name == result_format || name == sorted) continue;
    int at = call.schema().index_of(name);
    // A number where a tensor may stand has an argument of its own.
    if (at >= 0 && is_tensor(args[static_cast<std::size_t>(at)])) at = call.schema().index_of(name + "_number");
    if (at < 0)
      return ttc::Reason{ttc::ReasonCode::Unsupported, "parameter '" + name + "' of " + c.op + " is not known"};
    const ttc::ir::SchemaArg& arg = args[static_cast<std::size_t>(at)];
    call.set(arg.name, literal_of(value, arg.type));
  }
  return std::nullopt;
}

}  // namespace

Outcome run_library(const Case& c, Numerics numerics) {
  const OpRecord* record = ops::find_library_op(c.op);
  TTC_CHECK(record != nullptr, "no record is " + c.op);
  RecordCall call(record->name, c.arch);
  call.configure(c.config);
  if (c.format_param(result_format.data()) == DataType::float32) {
    Case wide = c;
    for (Tensor& t : wide.inputs) t.dtype = DataType::float32;
    wide.params.erase(std::string(result_format));
    return run_library(wide, numerics);
  }
  if (auto no = give_tensors(c, call)) return *std::move(no);
  if (auto no = give_parameters(c, call)) return *std::move(no);
  const bool integers = !c.inputs.empty() && !is_float_format(c.inputs[0].dtype);
  if (integers && call.has("format")) call.set("format", std::string(to_string(c.expected.at(0).dtype)));
  const ttc::Json* behind = ttc::find_member(c.params, activations.data());
  if (behind == nullptr) return record_outcome(call, c.expected, numerics);
  Tensor result = call.result(numerics);
  for (const ttc::Json& name : ttc::as_array(*behind)) {
    Case one = case_behind(c, ttc::as_string(name), result);
    one.expected = {std::move(result)};
    const Runner run = find_runner(one.op);
    if (run == nullptr) return ttc::Reason{ttc::ReasonCode::Unimplemented, "activation " + one.op};
    Outcome outcome = run(one, numerics);
    if (std::holds_alternative<ttc::Reason>(outcome)) return outcome;
    result = std::move(one.expected[0]);
    result.values = std::move(std::get<Outputs>(outcome).at(0));
  }
  return Outputs{packed_as(std::move(result), c.expected.at(0))};
}

}  // namespace ttrt::replay
