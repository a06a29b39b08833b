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
  for (const std::string_view end : {".transposed", ".flat"})
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

std::string Parameters::name_for(const ir::Value* weight, Parameter::Form form, const std::string& path,
                                 const std::string& role) {
  const ir::GraphInput* input = ir::weight_input(weight);
  const std::string target = input != nullptr ? input->target : weight->name;
  std::string name = target.find('.') != std::string::npos ? own_name(target) : (path.empty() ? "" : path + ".") + role;
  if (form == Parameter::Form::rows && names_.contains(name)) name += "_rows";
  if (form == Parameter::Form::host && names_.contains(name)) name += "_host";
  name = spelled(name);
  const int n = ++names_[name];
  return n == 1 ? name : name + "_" + std::to_string(n);
}

const Parameter& Parameters::add(const ir::Value* weight, Parameter::Form form, const ttrt::TensorSpec& spec,
                                 bool packed, const std::string& path, const std::string& role) {
  std::string shape;
  for (const std::int64_t size : spec.logical) shape += std::to_string(size) + ",";
  const auto key = std::tuple(weight, form, shape + std::string(to_string(spec.dtype)));
  if (const auto at = known_.find(key); at != known_.end()) return *at->second;
  parameters_.push_back(
      {.name = name_for(weight, form, path, role), .weight = weight, .form = form, .spec = spec, .packed = packed});
  known_.emplace(key, &parameters_.back());
  return parameters_.back();
}

std::string parameter_text(const Parameter& parameter, const std::string& path) {
  if (!is_prefix(path, parameter.name)) return "";
  const std::string rest = attribute_path(path.empty() ? parameter.name : parameter.name.substr(path.size() + 1));
  return "parameters" + std::string(rest.starts_with("[") ? "" : ".") + rest;
}

}  // namespace ttc::emit
