// Replay of recorded blocks: op "sequence", whose params.calls lists calls {op, inputs, args, outputs} over the case's
// inputs (by name) and earlier results ("outN"). Each call runs on the recorded operands; where all of them give what
// was recorded, the sequence runs once more on its own results, and those are compared.
#include <algorithm>
#include <map>

#include "replay/replay.h"
#include "support/error.h"

namespace ttrt::replay {
namespace {

using ttc::as_array;
using ttc::as_string;
using ttc::bad_file;
using ttc::Json;
using ttc::member;
using Values = std::map<std::string, Tensor, std::less<>>;

// "transformer.concatenate_heads" is concatenate_heads.
std::string function_of(const Json& call) {
  const std::string& op = as_string(member(call, "op"));
  return op.substr(op.rfind('.') + 1);
}

const Tensor& operand(const Case& c, const Values& values, const std::string& name) {
  const auto at = values.find(name);
  if (at == values.end()) throw bad_file(c.id, "a call reads '" + name.substr(0, 40) + "', which nothing gives");
  return at->second;
}

// The call as a case of its own. An argument that is the name of one of its inputs, or true, says what that input is:
// the last of the call's.
Case case_of(const Case& c, const Json& call, const Values& values) {
  Case one;
  one.id = c.id, one.op = function_of(call), one.arch = c.arch;
  if (const Json* args = ttc::find_member(call, "args")) one.params = *args;
  for (const Json& input : as_array(member(call, "inputs"))) {
    Tensor t = operand(c, values, as_string(input));
    t.name = input_name(one.op, one.inputs.size());
    one.inputs.push_back(std::move(t));
  }
  constexpr const char* residual = "residual_input_tensor";
  if (one.params.contains(residual) && !one.inputs.empty()) one.inputs.back().name = "residual";
  for (const Json& output : as_array(member(call, "outputs"))) {
    const std::string& name = as_string(output);
    const auto at = std::ranges::find(c.expected, name, &Tensor::name);
    if (at == c.expected.end()) throw bad_file(c.id, "no recorded result '" + name.substr(0, 40) + "'");
    one.expected.push_back(*at);
  }
  return one;
}

struct Run {
  Values values;
  bool exact = true;
};

// On recorded operands, or on its own results (`follow`). A refusal of a call is the sequence's.
std::variant<Run, ttc::Reason> run_calls(const Case& c, Numerics numerics, bool follow) {
  Run run;
  Values values;
  for (const Tensor& t : c.inputs) values.emplace(t.name, t);
  if (!follow)
    for (const Tensor& t : c.expected) values.emplace(t.name, t);
  for (const Json& call : as_array(member(c.params, "calls"))) {
    const Case one = case_of(c, call, values);
    const Runner runner = find_runner(one.op);
    if (runner == nullptr) return ttc::Reason{ttc::ReasonCode::Unimplemented, "a call of " + one.op};
    Outcome outcome = runner(one, numerics);
    if (const auto* reason = std::get_if<ttc::Reason>(&outcome))
      return ttc::Reason{reason->code, one.op + ": " + reason->detail};
    auto& outputs = std::get<Outputs>(outcome);
    if (outputs.size() != one.expected.size()) throw bad_file(c.id, one.op + " gave another number of results");
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      Tensor result = one.expected[i];
      run.exact = run.exact && std::ranges::equal(result.values, outputs[i]);
      result.values = std::move(outputs[i]);
      if (follow) values.insert_or_assign(result.name, result);
      run.values.insert_or_assign(result.name, std::move(result));
    }
  }
  return run;
}

Outcome sequence(const Case& c, Numerics numerics) {
  if (auto refusal = c.unknown_params({"calls"})) return *refusal;
  auto run = run_calls(c, numerics, false);
  if (const auto* reason = std::get_if<ttc::Reason>(&run)) return *reason;
  if (std::get<Run>(run).exact || numerics == Numerics::fast) run = run_calls(c, numerics, true);
  Outputs out;
  for (const Tensor& t : c.expected) {
    auto& values = std::get<Run>(run).values;
    const auto at = values.find(t.name);
    if (at == values.end()) throw bad_file(c.id, "no call gives '" + t.name + "'");
    out.push_back(std::move(at->second.values));
  }
  return out;
}

}  // namespace
}  // namespace ttrt::replay

TTRT_REGISTER_REPLAY(sequence, "sequence", ttrt::replay::sequence)
