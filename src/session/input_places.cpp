// By name, by position, or as the item of a list or dict.
#include "session/input_places.h"

#include <algorithm>
#include <charconv>
#include <span>

#include "torch/scalar_ops.h"
#include "support/error.h"

namespace ttc {
namespace {

using ttrt::HostTensor;
using ttrt::RtValue;
using ttrt::UserInput;
using Path = std::vector<InputPlaces::Step>;

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

[[noreturn]] void in_between(const ir::Type& type) {
  throw usage_error("a tensor is given for a " + type.str() + ": its name does not say where in it",
                    type.kind == ir::TypeKind::dict
                        ? "the tensors of such an input x are named x.KEY"
                        : "the tensors of such an input x are named x.0.0, x.0.1, x.1.0, ...");
}

RtValue input_value(const ir::Type& type, const HostTensor& tensor) {
  switch (type.kind) {
    case ir::TypeKind::list:
      if (type.elements.empty() || type.elements[0].is_tensor()) return RtValue::List{tensor};
      if (!type.elements[0].elements.empty()) in_between(type);
      return list_of_numbers(type.elements[0], tensor);
    case ir::TypeKind::tuple:
    case ir::TypeKind::dict:
      in_between(type);
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

const ir::Type& type_of(const UserInput& input) { return input.input->value->type; }
bool is_list(const UserInput& input) {
  return type_of(input).kind == ir::TypeKind::list && !type_of(input).elements.empty();
}
bool has_items(const UserInput& input) { return is_list(input) || type_of(input).kind == ir::TypeKind::dict; }

// How many tensors a value of the type is; nullopt where only the value knows. A list of numbers is one.
std::optional<std::size_t> tensors_in(const ir::Type& type) {
  if (type.kind == ir::TypeKind::dict) return std::nullopt;
  if (type.kind == ir::TypeKind::list && !type.elements.empty()) {
    const ir::TypeKind item = type.elements[0].kind;
    const bool structure = item == ir::TypeKind::tensor || item == ir::TypeKind::list || item == ir::TypeKind::tuple ||
                           item == ir::TypeKind::dict;
    return structure ? std::nullopt : std::optional<std::size_t>(1);
  }
  std::size_t count = type.kind == ir::TypeKind::tuple ? 0 : 1;
  for (const ir::Type& element : type.elements) {
    const auto inside = type.kind == ir::TypeKind::tuple ? tensors_in(element) : 0;
    if (!inside) return std::nullopt;
    count += *inside;
  }
  return count;
}

// Tensor `number` of a tuple, in order.
void descend(const ir::Type& type, std::size_t number, Path& path) {
  if (type.kind != ir::TypeKind::tuple) return;
  for (std::size_t i = 0; i < type.elements.size(); ++i) {
    const std::size_t inside = tensors_in(type.elements[i]).value_or(0);
    if (number < inside) {
      path.push_back(i);
      return descend(type.elements[i], number, path);
    }
    number -= inside;
  }
}

// How many tensors an item of the list is; nullopt for what is no list of tensors, or of lists of unknown length.
std::optional<std::size_t> tensors_an_item(const UserInput& input) {
  if (!is_list(input) || tensors_in(type_of(input))) return std::nullopt;
  return tensors_in(type_of(input).elements[0]);
}

std::optional<std::size_t> number_after(std::string_view name, std::string_view stem) {
  std::size_t number = 0;
  if (!name.starts_with(stem) || name.size() == stem.size()) return std::nullopt;
  name.remove_prefix(stem.size());
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size() && number < 4096 ? std::optional(number)
                                                                                   : std::nullopt;
}

// Adds the steps that ".0.1", "_0_1" or ".key" are into a value of the type; false where they lead nowhere.
bool add_steps(std::string_view text, const ir::Type& type, Path& path) {
  if (text.empty()) return true;
  if (text[0] != '.' && text[0] != '_') return false;
  if (type.kind == ir::TypeKind::dict) {  // a key of tensors may hold dots of its own
    const ir::Type& item = type.elements.at(1);
    const std::size_t end = item.elements.empty() ? text.size() : std::min(text.find('.', 1), text.size());
    path.emplace_back(std::string(text.substr(1, end - 1)));
    return end > 1 && add_steps(text.substr(end), item, path);
  }
  const bool tuple = type.kind == ir::TypeKind::tuple;
  if (!tuple && type.kind != ir::TypeKind::list) return false;
  const std::size_t end = std::min(text.find_first_of("._", 1), text.size());
  const auto number = number_after(text.substr(0, end), text.substr(0, 1));
  if (!number || (tuple ? *number : 0) >= type.elements.size()) return false;
  path.emplace_back(*number);
  return add_steps(text.substr(end), type.elements[tuple ? *number : 0], path);
}

// "x.0.1", "x_0_1" or "x.key" as a path into input x. Empty where the name is another.
Path path_after(std::string_view name, std::string_view stem, const ir::Type& type) {
  Path path;
  const auto same = [](char a, char b) { return a == b || (a == '.' && b == '_'); };  // d.key is input d_key
  if (name.size() < stem.size() ||
      !std::equal(stem.begin(), stem.end(), name.begin(), [&](char b, char a) { return same(a, b); }) ||
      !add_steps(name.substr(stem.size()), type, path))
    path.clear();
  return path;
}

// The item of a dict, a list of pairs at run time; made where it is not there yet.
template <typename Key>
RtValue& item_at(RtValue::List& pairs, const Key& key) {
  for (RtValue& pair : pairs) {
    auto& parts = *pair.get_if<RtValue::List>();
    if (const Key* known = parts[0].get_if<Key>(); known != nullptr && *known == key) return parts[1];
  }
  pairs.emplace_back(RtValue::List{RtValue(key), RtValue()});
  return pairs.back().get_if<RtValue::List>()->at(1);
}

RtValue& item_at(RtValue::List& pairs, const ir::Type& type, const std::string& text) {
  if (type.kind != ir::TypeKind::integer) return item_at(pairs, text);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw usage_error("'" + text + "' is given as a key of a dict whose keys are integers");
  return item_at(pairs, number);
}

const ir::Type& item_type(const ir::Type& type, const InputPlaces::Step& step) {
  const bool tuple = type.kind == ir::TypeKind::tuple;
  return type.elements.at(type.kind == ir::TypeKind::dict ? 1 : tuple ? step.number : 0);
}

void put_at(RtValue& into, const ir::Type& type, std::span<const InputPlaces::Step> path, RtValue value) {
  if (path.empty()) {
    into = std::move(value);
    return;
  }
  const bool tuple = type.kind == ir::TypeKind::tuple;
  if (into.is_none()) into = RtValue::List(tuple ? type.elements.size() : 0);
  auto& items = *into.get_if<RtValue::List>();
  const ir::Type& item = item_type(type, path[0]);
  if (type.kind == ir::TypeKind::dict)
    return put_at(item_at(items, type.elements.at(0), path[0].key), item, path.subspan(1), std::move(value));
  const std::size_t number = path[0].number;
  if (items.size() <= number) items.resize(number + 1);
  put_at(items[number], item, path.subspan(1), std::move(value));
}

}  // namespace

InputPlaces::InputPlaces(const ir::Model& model, const std::vector<std::string>& names)
    : model_(model), formal_(ttrt::user_inputs(model)) {
  for (const std::string& name : names) positional_ += number_after(name, "in").has_value();
}

std::optional<InputPlaces::Place> InputPlaces::find(const std::string& name) const {
  const auto lists =
      std::count_if(formal_.begin(), formal_.end(), [](const UserInput& i) { return !tensors_in(type_of(i)); });
  const auto position = number_after(name, "in");
  for (std::size_t i = 0; i < formal_.size(); ++i) {
    if (!has_items(formal_[i])) continue;
    if (auto path = path_after(name, formal_[i].name, type_of(formal_[i])); !path.empty())
      return Place{i, std::move(path)};
    const auto each = tensors_an_item(formal_[i]);
    if (!position || lists > 1 || !each || *each == 0 || positional_ + 1 < formal_.size()) continue;
    const std::size_t length = positional_ + 1 - formal_.size();
    if (*position >= i + length) return Place{*position - length + 1};
    if (*position < i || length % *each != 0) continue;
    Place place{i, {InputPlaces::Step((*position - i) / *each)}};
    descend(type_of(formal_[i]).elements[0], (*position - i) % *each, place.path);
    return place;
  }
  const int index = ttrt::user_input_index(model_, name);
  return index < 0 ? std::nullopt : std::optional(Place{static_cast<std::size_t>(index)});
}

void InputPlaces::put(std::vector<RtValue>& inputs, const Place& place, const HostTensor& tensor) const {
  put_value(inputs, place, input_value(type_at(place), tensor));
}

void InputPlaces::put_value(std::vector<RtValue>& inputs, const Place& place, RtValue value) const {
  put_at(inputs.at(place.index), type_of(formal_.at(place.index)), place.path, std::move(value));
}

const ir::Type& InputPlaces::type_at(const Place& place) const {
  const ir::Type* type = &type_of(formal_.at(place.index));
  for (const Step& step : place.path) type = &item_type(*type, step);
  return *type;
}

void InputPlaces::check_fixed(const std::string& name) const {
  if (model_.info.format != "torchscript") return;  // those that export fixed may stay in the file
  const auto position = number_after(name, "in");
  const bool beyond = position && *position >= formal_.size();
  for (const auto& input : model_.graph->inputs())
    if (input.kind == ir::InputKind::user && input.literal && (beyond || input.value->name == name))
      throw usage_error("input '" + name + "' is given, but TorchScript declares a default for " +
                            (beyond ? "'" + input.value->name + "'" : "it") + ", which ttc took",
                        "script the module with an argument that has no default");
}

}  // namespace ttc
