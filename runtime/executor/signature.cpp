// Inputs by name, what is wrong with those given, and the key of their shapes.
#include "executor/signature.h"

#include <algorithm>
#include <map>

#include "executor/guards.h"
#include "support/error.h"

namespace ttrt {
namespace {

using ttc::ir::GraphInput;
using ttc::ir::InputKind;
using ttc::ir::Model;
using ttc::ir::SymBinding;
using ttc::ir::Type;
using ttc::ir::TypeKind;

std::string sizes_text(const Shape& sizes) {
  std::string out = "[";
  for (std::size_t i = 0; i < sizes.size(); ++i) out += (i > 0 ? ", " : "") + std::to_string(sizes[i]);
  return out + "]";
}

// A tensor's dtype and sizes, wherever it is.
struct TensorView {
  DType dtype;
  const Shape& sizes;
};
std::optional<TensorView> tensor_in(const RtValue& value) {
  if (const auto* host = value.get_if<HostTensor>()) return TensorView{host->dtype, host->sizes};
  if (const auto* kept = value.get_if<ResidentTensor>()) return TensorView{kept->dtype, kept->tensor.spec.logical};
  return std::nullopt;
}

std::string describe(const RtValue& value) {
  if (const auto tensor = tensor_in(value))
    return std::string(ttc::to_string(tensor->dtype)) + sizes_text(tensor->sizes);
  if (value.get_if<std::int64_t>() != nullptr) return "an integer";
  if (value.get_if<double>() != nullptr) return "a float";
  if (value.get_if<bool>() != nullptr) return "a bool";
  return value.is_none() ? "nothing" : "a value of another kind";
}

// "3 inputs: a_0 i64[s0, s1], a_1 ..."
std::string signature_text(const std::vector<UserInput>& inputs) {
  std::string out;
  for (const UserInput& input : inputs)
    out += (out.empty() ? "" : ", ") + input.name + ": " + input.input->value->type.str();
  return out;
}

void check_kind(const UserInput& formal, const RtValue& value) {
  const Type& type = formal.input->value->type;
  const auto fail = [&] {
    throw ttc::usage_error("input '" + formal.name + "' is " + describe(value) + ", the model takes " + type.str());
  };
  switch (type.kind) {
    case TypeKind::tensor: {
      const auto tensor = tensor_in(value);
      if (!tensor) fail();
      if (type.has_dtype && tensor->dtype != type.dtype) fail();
      if (type.has_shape && tensor->sizes.size() != type.sizes.size()) fail();
      return;
    }
    case TypeKind::integer:
      return value.get_if<std::int64_t>() != nullptr ? void() : fail();
    case TypeKind::floating:
      return value.get_if<double>() != nullptr || value.get_if<std::int64_t>() != nullptr ? void() : fail();
    case TypeKind::boolean:
      return value.get_if<bool>() != nullptr ? void() : fail();
    default:
      return;
  }
}

std::string range_text(const ttc::ir::SymRange& range) {
  return "[" + (range.min ? std::to_string(*range.min) : std::string("-inf")) + ", " +
         (range.max ? std::to_string(*range.max) : std::string("inf")) + "]";
}

class Binder {
 public:
  explicit Binder(const Model& model) : model_(model) {}

  // First plain symbols, then what is computed from them.
  void bind(const UserInput& formal, const RtValue& value) {
    const Type& type = formal.input->value->type;
    if (const auto tensor = tensor_in(value); tensor && type.has_shape) {
      for (std::size_t d = 0; d < type.sizes.size() && d < tensor->sizes.size(); ++d)
        if (type.sizes[d].is_symbol()) bind_symbol(formal, d, type.sizes[d].name(), tensor->sizes[d]);
    } else if (const auto* integer = value.get_if<std::int64_t>();
               integer != nullptr && type.sym && type.sym->is_symbol()) {
      binding.emplace(type.sym->name(), *integer);
    }
  }

  void check(const UserInput& formal, const RtValue& value) const {
    const Type& type = formal.input->value->type;
    const auto tensor = tensor_in(value);
    if (!tensor || !type.has_shape) return;
    for (std::size_t d = 0; d < type.sizes.size() && d < tensor->sizes.size(); ++d) {
      const auto expected = type.sizes[d].evaluate(binding);
      if (expected && *expected != tensor->sizes[d])
        throw ttc::usage_error("input '" + formal.name + "' has shape " + sizes_text(tensor->sizes) +
                               ", the model takes " + type.str() + ": dim " + std::to_string(d) + " must be " +
                               std::to_string(*expected));
    }
  }

  SymBinding binding;

 private:
  void bind_symbol(const UserInput& formal, std::size_t d, const std::string& symbol, std::int64_t size) {
    binding.emplace(symbol, size);  // another size elsewhere is found by check()
    check_range(model_, formal.name, d, symbol, size);
  }

  const Model& model_;
};

// "a[0]", "a.0" and "kv[1]" are the inputs a_0, a_0 and kv_1; a plain name is the input of that name.
std::optional<std::size_t> find_path(const std::vector<UserInput>& inputs, const std::string& path) {
  std::string flat;
  for (const char c : path) {
    if (c == '[' || c == '.')
      flat += '_';
    else if (c != ']')
      flat += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].name == path || inputs[i].name == flat || inputs[i].input->value->name == flat ||
        inputs[i].input->value->name == path)
      return i;
  return std::nullopt;
}

void check_guards(const Model& model, const std::vector<UserInput>& formal, const std::vector<RtValue>& inputs) {
  const SizeOf size_of = [&](const std::string& path, std::int64_t dim) -> std::optional<std::int64_t> {
    const auto i = find_path(formal, path);
    const auto tensor = i ? tensor_in(inputs[*i]) : std::nullopt;
    if (!tensor || dim < 0 || dim >= static_cast<std::int64_t>(tensor->sizes.size())) return std::nullopt;
    return tensor->sizes[static_cast<std::size_t>(dim)];
  };
  for (const std::string& guard : model.info.guards)
    if (evaluate_guard(guard, size_of) == false)
      throw ttc::usage_error("the inputs break a condition under which the model was exported: " + guard,
                             "the model takes " + signature_text(formal));
}

}  // namespace

void check_range(const Model& model, const std::string& input, std::size_t dim, const std::string& symbol,
                 std::int64_t size) {
  const auto range = model.ranges.find(symbol);
  if (range == model.ranges.end()) return;
  // A lower bound of 2 is how export writes "not specialised to 0 or 1"; 1 works.
  const bool artefact = range->second.min == 2 && size == 1;
  if ((range->second.min && size < *range->second.min && !artefact) || (range->second.max && size > *range->second.max))
    throw ttc::usage_error("input '" + input + "': dim " + std::to_string(dim) + " is " + std::to_string(size) +
                           ", the model takes " + range_text(range->second));
}

std::vector<UserInput> user_inputs(const Model& model) {
  std::vector<const GraphInput*> all;
  std::size_t given = 0;
  for (const GraphInput& input : model.graph->inputs()) {
    if (input.kind != InputKind::user) continue;
    all.push_back(&input);
    given += !input.literal;
  }
  const auto& names = model.info.user_input_names;
  std::vector<UserInput> out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i]->literal) continue;
    std::string name = all[i]->value->name;
    if (names.size() == all.size())
      name = names[i];
    else if (names.size() == given)
      name = names[out.size()];
    out.push_back({.input = all[i], .name = std::move(name)});
  }
  return out;
}

int user_input_index(const Model& model, std::string_view name) {
  const auto inputs = user_inputs(model);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].name == name || inputs[i].input->value->name == name) return static_cast<int>(i);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (name == "in" + std::to_string(i)) return static_cast<int>(i);
  const auto nested = find_path(inputs, std::string(name));
  return nested ? static_cast<int>(*nested) : -1;
}

std::size_t user_output_count(const Model& model) {
  return static_cast<std::size_t>(
      std::count_if(model.graph->outputs().begin(), model.graph->outputs().end(),
                    [](const auto& output) { return output.kind == ttc::ir::OutputKind::user; }));
}

std::int64_t likely_integer(const ttc::ir::Value& input) {
  std::map<std::int64_t, int> seen;
  for (const ttc::ir::Node* user : input.users()) {
    const std::string& op = user->op();
    if (op != "_operator.eq" && op != "_operator.ne" && op != "aten.__contains__.int_list") continue;
    for (const ttc::ir::Arg& arg : user->args()) {
      if (const auto one = arg.integer()) ++seen[*one];
      if (const auto several = arg.integers())
        for (const std::int64_t n : *several) ++seen[n];
    }
  }
  const auto best =
      std::max_element(seen.begin(), seen.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return best == seen.end() ? 0 : best->first;
}

SymBinding bind_symbols(const Model& model, const std::vector<RtValue>& inputs) {
  const auto formal = user_inputs(model);
  if (inputs.size() != formal.size())
    throw ttc::usage_error(
        "the model takes " + std::to_string(formal.size()) + " inputs, " + std::to_string(inputs.size()) + " are given",
        "the model takes " + signature_text(formal));
  Binder binder(model);
  for (std::size_t i = 0; i < formal.size(); ++i) {
    check_kind(formal[i], inputs[i]);
    binder.bind(formal[i], inputs[i]);
  }
  for (std::size_t i = 0; i < formal.size(); ++i) binder.check(formal[i], inputs[i]);
  return std::move(binder.binding);
}

void check_inputs(const Model& model, const std::vector<RtValue>& inputs) {
  bind_symbols(model, inputs);
  if (!model.info.guards.empty()) check_guards(model, user_inputs(model), inputs);
}

std::string signature_key(const std::vector<RtValue>& inputs) {
  std::string key;
  const auto put = [&](std::int64_t v) { key.append(reinterpret_cast<const char*>(&v), sizeof v); };
  const auto add = [&](const RtValue& value, auto&& self) -> void {
    put(static_cast<std::int64_t>(value.v.index()));
    if (const auto* tensor = value.get_if<HostTensor>()) {
      put(static_cast<std::int64_t>(tensor->dtype));
      put(static_cast<std::int64_t>(tensor->sizes.size()));
      for (const std::int64_t d : tensor->sizes) put(d);
    } else if (const auto* kept = value.get_if<ResidentTensor>()) {
      put(static_cast<std::int64_t>(kept->dtype));
      put(static_cast<std::int64_t>(kept->tensor.spec.dtype));
      put(static_cast<std::int64_t>(kept->tensor.spec.logical.size()));
      for (const std::int64_t d : kept->tensor.spec.logical) put(d);
    } else if (const auto* i = value.get_if<std::int64_t>()) {
      put(*i);
    } else if (const auto* b = value.get_if<bool>()) {
      put(*b);
    } else if (const auto* list = value.get_if<RtValue::List>()) {
      put(static_cast<std::int64_t>(list->size()));
      for (const RtValue& item : *list) self(item, self);
    }
  };
  for (const RtValue& input : inputs) add(input, add);
  return key;
}

}  // namespace ttrt
