// Names of weights: the model's own without the format behind them; lifted constants, which have none, by the operand
// that they are, below the module that reads them.
#include "emit/parameters.h"

#include <algorithm>

#include "emit/python_text.h"

namespace ttc::emit {
namespace {

// Without what the compiler put behind the name: a format, with a number where there are several; turned or flattened.
std::string own_name(std::string name) {
  for (const std::string_view format : {"_bfloat16", "_bfloat8_b", "_bfloat4_b", "_bfloat2_b", "_float32"}) {
    const std::size_t at = name.rfind(format);
    if (at == std::string::npos) continue;
    const std::string_view rest = std::string_view(name).substr(at + format.size());
    if (rest.find_first_not_of("_0123456789") == std::string_view::npos) name.resize(at);
  }
  // What normalisation folded into a layer makes of its weight.
  if (constexpr std::string_view folded = ".weight.normed_bias"; name.ends_with(folded))
    name.replace(name.size() - folded.size(), folded.size(), ".bias");
  for (const std::string_view end : {".transposed", ".flat", ".normed"})
    if (name.ends_with(end)) name.resize(name.size() - end.size());
  return name;
}

// Every part as Python writes it, numbers of lists as they are.
std::string spelled(std::string_view dotted) {
  std::string out;
  while (!dotted.empty()) {
    const std::size_t dot = std::min(dotted.find('.'), dotted.size());
    const std::string_view part = dotted.substr(0, dot);
    const bool number = part.find_first_not_of("0123456789") == std::string_view::npos;
    out += (out.empty() ? "" : ".") + (number ? std::string(part) : identifier(part));
    dotted.remove_prefix(std::min(dot + 1, dotted.size()));
  }
  return out;
}

bool is_prefix(const std::string& path, const std::string& name) {
  return path.empty() || name.starts_with(path + ".");
}

}  // namespace

std::string Parameters::name_for(const Parameter& wanted, const std::string& path, const std::string& role) {
  const ir::GraphInput* input = ir::weight_input(wanted.weight);
  const std::string target = input != nullptr ? input->target : wanted.weight->name;
  const std::string stem = !role.empty() ? role : target.empty() ? "constant" : target;
  const bool state = path.empty() && input != nullptr && input->kind == ir::InputKind::buffer && !target.empty();
  std::string name =
      state || target.find('.') != std::string::npos ? own_name(target) : (path.empty() ? "" : path + ".") + stem;
  if (wanted.spec.layout == ttrt::Layout::row_major && names_.contains(name)) name += "_rows";
  if (wanted.form != Parameter::Form::device && names_.contains(name)) name += "_host";
  name = spelled(name);
  const int n = ++names_[name];
  return n == 1 ? name : name + "_" + std::to_string(n);
}

const Parameter& Parameters::add(Parameter wanted, const std::string& path, const std::string& role) {
  std::string text(to_string(wanted.spec.dtype));
  text += to_string(wanted.spec.layout);
  for (const std::int64_t size : wanted.spec.logical) text += "," + std::to_string(size);
  const auto key = std::tuple(wanted.weight, wanted.form, text);
  if (const auto at = known_.find(key); at != known_.end()) return *at->second;
  wanted.name = name_for(wanted, path, role);
  parameters_.push_back(std::move(wanted));
  known_.emplace(key, &parameters_.back());
  return parameters_.back();
}

std::string parameter_text(const Parameter& parameter, const std::string& path) {
  if (!is_prefix(path, parameter.name)) return "";
  const std::string rest = attribute_path(path.empty() ? parameter.name : parameter.name.substr(path.size() + 1));
  return "parameters" + std::string(rest.starts_with("[") ? "" : ".") + rest;
}

}  // namespace ttc::emit
