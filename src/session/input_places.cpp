// By name, by position, or as the item of a list.
#include "session/input_places.h"

#include <algorithm>
#include <charconv>

#include "torch/scalar_ops.h"
#include "support/error.h"

namespace ttc {
namespace {

using ttrt::HostTensor;
using ttrt::RtValue;
using ttrt::UserInput;

// A list of numbers is one tensor of rank 1.
RtValue list_of_numbers(const ir::Type& element, const HostTensor& tensor) {
  RtValue::List out;
  const HostTensor dense = ttrt::contiguous(ttrt::convert(tensor, DType::f64));
  const HostTensor integers = ttrt::contiguous(ttrt::convert(tensor, DType::i64));
  for (std::int64_t i = 0; i < dense.numel(); ++i) {
    if (element.kind == ir::TypeKind::floating)
      out.emplace_back(dense.as<double>()[i]);
    else if (element.kind == ir::TypeKind::boolean)
      out.emplace_back(integers.as<std::int64_t>()[i] != 0);
    else
      out.emplace_back(integers.as<std::int64_t>()[i]);
  }
  return out;
}

RtValue input_value(const ir::Type& type, const HostTensor& tensor) {
  switch (type.kind) {
    case ir::TypeKind::list:
      if (type.elements.empty() || type.elements[0].is_tensor()) return RtValue::List{tensor};
      return list_of_numbers(type.elements[0], tensor);
    case ir::TypeKind::integer:
      return ttrt::to_integer(tensor);
    case ir::TypeKind::floating:
      return ttrt::to_number(tensor);
    case ir::TypeKind::boolean:
      return ttrt::to_boolean(tensor);
    default:
      return tensor;
  }
}

bool is_list(const UserInput& input) {
  const ir::Type& type = input.input->value->type;
  return type.kind == ir::TypeKind::list && !type.elements.empty();
}
bool is_tensor_list(const UserInput& input) {
  return is_list(input) && input.input->value->type.elements[0].is_tensor();
}

std::optional<std::size_t> number_after(std::string_view name, std::string_view stem) {
  std::size_t number = 0;
  if (!name.starts_with(stem) || name.size() == stem.size()) return std::nullopt;
  name.remove_prefix(stem.size());
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size() && number < 4096 ? std::optional(number)
                                                                                   : std::nullopt;
}

}  // namespace

InputPlaces::InputPlaces(const ir::Model& model, const std::vector<std::string>& names)
    : model_(model), formal_(ttrt::user_inputs(model)) {
  for (const std::string& name : names) positional_ += number_after(name, "in").has_value();
}

std::optional<InputPlaces::Place> InputPlaces::find(const std::string& name) const {
  const auto lists = std::count_if(formal_.begin(), formal_.end(), is_tensor_list);
  for (std::size_t i = 0; i < formal_.size(); ++i) {
    if (!is_list(formal_[i])) continue;
    for (const char* separator : {".", "_"})
      if (const auto item = number_after(name, formal_[i].name + separator)) return Place{i, item};
    const auto position = number_after(name, "in");
    if (!position || lists > 1 || !is_tensor_list(formal_[i]) || positional_ + 1 < formal_.size()) continue;
    const std::size_t length = positional_ + 1 - formal_.size();
    if (*position >= i && *position < i + length) return Place{i, *position - i};
    if (*position >= i + length) return Place{*position - length + 1, {}};
  }
  const int index = ttrt::user_input_index(model_, name);
  return index < 0 ? std::nullopt : std::optional(Place{static_cast<std::size_t>(index), {}});
}

void InputPlaces::put(std::vector<RtValue>& inputs, const Place& place, const HostTensor& tensor) const {
  RtValue& input = inputs.at(place.index);
  if (!place.item) {
    input = input_value(formal_.at(place.index).input->value->type, tensor);
    return;
  }
  if (input.is_none()) input = RtValue::List();
  auto& items = *input.get_if<RtValue::List>();
  if (items.size() <= *place.item) items.resize(*place.item + 1);
  items[*place.item] = input_value(formal_.at(place.index).input->value->type.elements.at(0), tensor);
}

void InputPlaces::check_fixed(const std::string& name) const {
  if (model_.info.format != "torchscript") return;  // those that export fixed may stay in the file
  for (const auto& input : model_.graph->inputs())
    if (input.kind == ir::InputKind::user && input.literal && input.value->name == name)
      throw usage_error("input '" + name + "' is given, but TorchScript declares a default for it, which ttc took",
                        "script the module with an argument that has no default");
}

}  // namespace ttc
