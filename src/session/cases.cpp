// Reads the calls that a safetensors file records; what they leave open is made (input_maker.h) or carried (steps.h).
#include "session/cases.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "executor/signature.h"
#include "formats/safetensors.h"
#include "session/input_maker.h"
#include "session/input_places.h"
#include "session/kept.h"
#include "session/steps.h"
#include "session/values.h"
#include "support/error.h"

namespace ttc {

using ttrt::RtValue;

std::pair<std::string, std::string> split_assignment(const std::string& text, const std::string& flag) {
  const std::size_t eq = text.find('=');
  if (eq == std::string::npos || eq == 0) throw usage_error(flag + " " + text + ": expected NAME=VALUE");
  return {text.substr(0, eq), text.substr(eq + 1)};
}

InputShape parse_shape(const std::string& text, const std::string& flag) {
  InputShape out;
  const std::size_t colon = text.find(':');
  if (colon != std::string::npos && !(out.dtype = dtype_from_string(text.substr(0, colon))))
    throw usage_error(flag + ": '" + text.substr(0, colon) + "' is no dtype such as i64");
  const char *at = text.data() + (colon == std::string::npos ? 0 : colon + 1), *end = text.data() + text.size();
  while (at < end) {
    std::int64_t dim = 0;
    const auto [next, error] = std::from_chars(at, end, dim);
    const bool more = next < end && *next == 'x' && next + 1 < end;
    if (error != std::errc() || dim < 0 || dim > (std::int64_t{1} << 40) || (next < end && !more))
      throw usage_error(flag + ": '" + text + "' is no shape such as 8x128");
    out.sizes.push_back(dim);
    at = more ? next + 1 : next;
  }
  return out;
}

namespace {

// The tensors of one prefix ("", "alt.", "step3.").
Case read_case(const ir::Model& model, const SafeTensors& file, const std::string& prefix) {
  const auto formal = ttrt::user_inputs(model);
  Case out{.name = prefix.empty() ? "" : prefix.substr(0, prefix.size() - 1),
           .inputs = std::vector<RtValue>(formal.size()),
           .expected = {},
           .baseline = {},
           .notes = {},
           .carried = {}};
  std::vector<std::string> names;
  for (const auto& [full, weight] : file.tensors)
    if (full.starts_with(prefix)) names.push_back(full.substr(prefix.size()));
  const InputPlaces places(model, names);
  std::size_t extra = 0;
  for (const auto& [full, weight] : file.tensors) {
    if (!full.starts_with(prefix)) continue;
    const std::string name = full.substr(prefix.size());
    const auto place = places.find(name);
    if (name.find('.') != std::string::npos && !place) continue;  // of another prefix
    std::size_t number = 0;
    if (name.starts_with("out") &&
        std::from_chars(name.data() + 3, name.data() + name.size(), number).ptr == name.data() + name.size() &&
        name.size() > 3 && number < 4096) {
      if (out.expected.size() <= number) out.expected.resize(number + 1);
      out.expected[number] = own_tensor(weight);
      continue;
    }
    if (!place || place->index >= formal.size()) {
      places.check_fixed(name);
      ++extra;
      continue;
    }
    places.put(out.inputs, *place, own_tensor(weight));
  }
  if (extra > 0 && std::any_of(out.inputs.begin(), out.inputs.end(), [](const RtValue& v) { return v.is_none(); }))
    throw usage_error("the inputs of the --io file do not have the names of the model's",
                      "it takes in0 ... in" + std::to_string(formal.size() - 1) + " or the names of the signature");
  return out;
}

// `file`: what options.io names; nullptr where it names none.
std::vector<Case> make_cases(const ir::Model& model, const SafeTensors* recorded, const InputOptions& options,
                             bool first_only, const Notes& notes) {
  std::vector<Case> cases;
  if (recorded == nullptr) {
    if (options.io_steps || !options.io_prefix.empty()) throw usage_error("--io-steps and --io-prefix need --io");
    cases.emplace_back();
  } else {
    const SafeTensors& file = *recorded;
    const std::string prefix = options.io_prefix.empty() ? "" : options.io_prefix + ".";
    const auto has_prefix = [&](const std::string& p) {
      return std::any_of(file.tensors.begin(), file.tensors.end(),
                         [&](const auto& t) { return t.first.starts_with(p); });
    };
    if (!options.io_steps) {
      if (!prefix.empty() && !has_prefix(prefix))
        throw usage_error(options.io + " holds nothing under '" + prefix + "'");
      cases.push_back(read_case(model, file, prefix));
    }
    for (std::size_t step = 0; options.io_steps; ++step) {
      const std::string step_prefix = prefix + "step" + std::to_string(step) + ".";
      if (!has_prefix(step_prefix)) break;
      cases.push_back(read_case(model, file, step_prefix));
    }
    if (cases.empty())
      throw usage_error(options.io + " holds no steps",
                        "its tensors must be named step0.in0, step0.out0, step1.in0, ...");
    const bool empty =
        std::all_of(cases[0].inputs.begin(), cases[0].inputs.end(), [](const RtValue& v) { return v.is_none(); });
    if (empty && !cases[0].inputs.empty() && options.inputs.empty())
      throw usage_error(options.io + " holds no inputs of the model",
                        has_prefix("step0.") ? "it holds steps: use --io-steps"
                                             : "inputs are named in0, in1, ... or as in the signature");
  }
  if (first_only) cases.resize(1);
  carry_between(model, options, cases);
  fill_inputs(model, options, cases, notes);
  return cases;
}

}  // namespace

std::vector<Case> load_cases(const ir::Model& model, const InputOptions& options, bool first_only,
                             const Notes& notes) {
  try {
    if (options.io.empty()) {
      const bool asked = !options.inputs.empty() || !options.shapes.empty() || options.seed != 0;
      if (std::vector<EmbeddedTest> kept = asked ? std::vector<EmbeddedTest>() : embedded_tests(model); !kept.empty()) {
        kept[0].cases.at(0).notes.push_back("the inputs are those of the call that the file carries along");
        return std::move(kept[0].cases);
      }
      return make_cases(model, nullptr, options, first_only, notes);
    }
    const SafeTensors file = read_safetensors(options.io);
    return make_cases(model, &file, options, first_only, notes);
  } catch (const Error& error) {
    throw error.file().empty() ? error.in_file(model.info.path) : error;
  }
}

std::vector<Case> recorded_cases(const ir::Model& model, const SafeTensors& file, const InputOptions& options) {
  return make_cases(model, &file, options, false, {});
}

bool fits(const ir::Model& model, const Case& one) {
  const auto formal = ttrt::user_inputs(model);
  for (std::size_t i = 0; i < formal.size() && i < one.inputs.size(); ++i) {
    const ir::Type& type = formal[i].input->value->type;
    const auto* tensor = one.inputs[i].get_if<ttrt::HostTensor>();
    if (tensor == nullptr || !type.has_shape) continue;
    if (type.sizes.size() != tensor->sizes.size()) return false;
    for (std::size_t d = 0; d < type.sizes.size(); ++d)
      if (type.sizes[d].is_number() && type.sizes[d].number() != tensor->sizes[d]) return false;
  }
  return true;
}

std::vector<InputOptions> ways_to_call(const SafeTensors& file) {
  std::set<std::string> prefixes;
  bool steps = false;
  for (const auto& [name, tensor] : file.tensors) {
    const std::size_t dot = name.find('.');
    if (dot == std::string::npos)
      prefixes.insert("");
    else if (name.starts_with("step"))
      steps = true;
    else if (name.compare(dot + 1, 2, "in") == 0)
      prefixes.insert(name.substr(0, dot));
  }
  std::vector<InputOptions> out;
  for (const std::string& prefix : prefixes) out.push_back({.io_prefix = prefix});
  if (steps) out.push_back({.io_steps = true});
  return out;
}

}  // namespace ttc
