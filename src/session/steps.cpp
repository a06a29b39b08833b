// Pairs what a step leaves out with outputs of the step before, by dtype, rank and fixed dims; runs the sequence.
#include "session/steps.h"

#include <algorithm>
#include <charconv>

#include "torch/cpu_op.h"
#include "executor/signature.h"
#include "support/error.h"

namespace ttc {
namespace {

using ttrt::HostTensor;
using ttrt::RtValue;

std::vector<bool> written_inputs(const ttrt::Program& program) {
  std::vector<bool> out;
  for (const ttrt::UserInput& input : ttrt::user_inputs(*program.model))
    out.push_back(program.slots[static_cast<std::size_t>(program.slot_of(input.input->value.get()))].written);
  return out;
}

// What is known of a tensor: from the graph or, where that has no types, from a tensor that stood there.
struct Kind {
  bool known = false, sampled = false;
  DType dtype = DType::f32;
  std::vector<std::optional<std::int64_t>> sizes;  // nullopt: free
};

Kind kind_of(const ir::Type& type, const HostTensor* sample) {
  Kind out;
  if (type.is_tensor() && type.has_shape && type.has_dtype) {
    out.known = true;
    out.dtype = type.dtype;
    for (const ir::SymExpr& size : type.sizes)
      out.sizes.push_back(size.is_number() ? std::optional(size.number()) : std::nullopt);
  } else if (sample != nullptr) {
    out = {.known = true, .sampled = true, .dtype = sample->dtype, .sizes = {}};
    out.sizes.assign(sample->sizes.begin(), sample->sizes.end());
  }
  return out;
}

// The dims of a sample are those of one call; a cache's length may change from call to call.
bool can_be(const Kind& output, const Kind& input) {
  if (!output.known || !input.known || output.dtype != input.dtype || output.sizes.size() != input.sizes.size())
    return false;
  if (output.sampled || input.sampled) return true;
  for (std::size_t d = 0; d < input.sizes.size(); ++d)
    if (output.sizes[d] && input.sizes[d] && *output.sizes[d] != *input.sizes[d]) return false;
  return true;
}

// Which outputs of a step can be which inputs of the next one.
class Pairing {
 public:
  Pairing(const ir::Model& model, const Case& first) {
    const auto formal = ttrt::user_inputs(model);
    for (std::size_t i = 0; i < formal.size(); ++i) {
      const HostTensor* sample = i < first.inputs.size() ? first.inputs[i].get_if<HostTensor>() : nullptr;
      inputs_.push_back(kind_of(formal[i].input->value->type, sample));
      names_.push_back(formal[i].name);
    }
    for (const ir::GraphOutput& output : model.graph->outputs()) {
      if (output.kind != ir::OutputKind::user) continue;
      const std::size_t o = outputs_.size();
      const HostTensor* sample = o < first.expected.size() && first.expected[o] ? &*first.expected[o] : nullptr;
      const ir::Value* value = output.arg.value();
      outputs_.push_back(value != nullptr ? kind_of(value->type, sample) : Kind{});
    }
  }

  // Pairs the inputs `missing` with outputs that are not `taken`.
  void pair(const std::vector<std::size_t>& missing, std::vector<bool> taken, Case& one) const {
    for (const std::size_t input : missing) {
      if (one.carried[input].any()) continue;
      std::vector<std::size_t> alike, open;  // inputs, outputs
      for (const std::size_t other : missing)
        if (!one.carried[other].any() && same_kind(input, other)) alike.push_back(other);
      for (std::size_t o = 0; o < outputs_.size(); ++o)
        if (!taken[o] && can_be(outputs_[o], inputs_[input])) open.push_back(o);
      if (open.empty()) continue;  // made up like any input that nobody gives
      if (open.size() != alike.size())
        throw usage_error(one.name + " leaves out input '" + names_[input] + "', and it could be any of " +
                              std::to_string(open.size()) + " outputs of the step before",
                          "--carry outN=" + names_[input] + " says which");
      for (std::size_t i = 0; i < open.size(); ++i) {
        one.carried[alike[i]].output = static_cast<int>(open[i]);
        taken[open[i]] = true;
      }
    }
  }

  std::size_t output_count() const { return outputs_.size(); }

 private:
  bool same_kind(std::size_t a, std::size_t b) const {
    return std::all_of(outputs_.begin(), outputs_.end(),
                       [&](const Kind& output) { return can_be(output, inputs_[a]) == can_be(output, inputs_[b]); });
  }

  std::vector<Kind> inputs_, outputs_;
  std::vector<std::string> names_;
};

// By input: the output that --carry names, or -1.
std::vector<int> named_carries(const ir::Model& model, const InputOptions& options) {
  std::vector<int> out(ttrt::user_inputs(model).size(), -1);
  const std::size_t outputs = ttrt::user_output_count(model);
  for (const std::string& text : options.carry) {
    const std::size_t eq = text.find('=');
    int output = -1;
    const char* const end = text.data() + std::min(eq, text.size());
    const bool well_formed = eq != std::string::npos && text.starts_with("out") && eq > 3 &&
                             std::from_chars(text.data() + 3, end, output).ptr == end;
    if (!well_formed) throw usage_error("--carry " + text + ": expected outN=NAME");
    const std::string name = text.substr(eq + 1);
    const int input = ttrt::user_input_index(model, name);
    if (input < 0) throw usage_error("--carry " + text + ": the model has no input '" + name + "'");
    if (output < 0 || static_cast<std::size_t>(output) >= outputs)
      throw usage_error("--carry " + text + ": the model has outputs out0 to out" + std::to_string(outputs - 1));
    out[static_cast<std::size_t>(input)] = output;
  }
  return out;
}

}  // namespace

void carry_between(const ir::Model& model, const InputOptions& options, std::vector<Case>& cases) {
  if (!options.carry.empty() && !options.io_steps) throw usage_error("--carry needs --io-steps");
  const std::vector<int> named = named_carries(model, options);
  if (cases.size() < 2) return;
  ttrt::install_torch_schemas();
  const std::vector<bool> written = written_inputs(*ttrt::make_program(model));
  const Pairing pairing(model, cases.at(0));
  for (std::size_t step = 1; step < cases.size(); ++step) {
    Case& one = cases[step];
    one.inputs.resize(named.size());
    one.carried.assign(named.size(), {});
    std::vector<std::size_t> missing;
    std::vector<bool> taken(pairing.output_count(), false);
    for (std::size_t i = 0; i < named.size(); ++i) {
      if (named[i] >= 0) {
        one.carried[i].output = named[i];
        taken[static_cast<std::size_t>(named[i])] = true;
      } else if (one.inputs[i].is_none() && written[i]) {
        one.carried[i].written = true;
      } else if (one.inputs[i].is_none()) {
        missing.push_back(i);
      }
    }
    pairing.pair(missing, std::move(taken), one);
  }
}

StepRunner::StepRunner(ttrt::Executor& executor, const std::vector<Case>& cases)
    : executor_(executor), cases_(cases), written_(written_inputs(executor.program())) {}

const std::vector<RtValue>& StepRunner::run(std::size_t step) {
  const Case& one = cases_.at(step);
  const auto carried = [&](std::size_t which, std::size_t i) {
    return which < cases_.size() && i < cases_[which].carried.size() ? cases_[which].carried[i] : Carried{};
  };
  std::vector<RtValue> inputs = one.inputs;
  std::vector<bool> keep(ttrt::user_output_count(executor_.model()), false);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Carried from = carried(step, i), next = carried(step + 1, i);
    if (next.output >= 0) keep.at(static_cast<std::size_t>(next.output)) = true;
    if (from.output >= 0) inputs[i] = outputs_.at(static_cast<std::size_t>(from.output));
    if (from.written) inputs[i] = inputs_.at(i);
    const auto* tensor = inputs[i].get_if<HostTensor>();
    if (tensor == nullptr || !written_[i] || from.written) continue;
    inputs[i] = next.written ? executor_.place_input(i, ttrt::copy_of(*tensor)) : RtValue(ttrt::copy_of(*tensor));
  }
  inputs_ = std::move(inputs);
  try {
    outputs_ = executor_.run(inputs_, keep);
  } catch (const Error& error) {
    if (one.guessed.empty() || !error.hint().empty()) throw;
    std::string inputs_guessed;
    for (const std::string& input : one.guessed) inputs_guessed += (inputs_guessed.empty() ? "" : ", ") + input;
    throw Error(
        error.code(), error.file(), error.what(),
        "nobody gave the sizes of some inputs, so they were taken as " + inputs_guessed + "; --shape gives them");
  }
  return outputs_;
}

}  // namespace ttc
