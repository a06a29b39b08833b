// See ts_lower.h. This file: constants, attributes, calls, lists, tuples and dicts.
#include <ATen/core/interned_strings.h>

#include <algorithm>
#include <set>

#include "torchscript/lowering.h"
#include "support/error.h"

namespace ttc::ts {
namespace {

using ir::Arg;
using ir::InputKind;
using ir::Type;

constexpr std::int64_t max_list = 1 << 20;
constexpr std::int64_t max_rank = 64;  // PyTorch's own limit on dims

// The integer a value certainly is.
std::optional<std::int64_t> integer(const Sym& sym) {
  if (!sym.is_literal()) return std::nullopt;
  return sym.arg.integer();
}

// A Python index or slice bound, clamped as Python does.
std::int64_t clamp_bound(std::int64_t bound, std::int64_t size) {
  return std::clamp<std::int64_t>(bound < 0 ? bound + size : bound, 0, size);
}

// The items that a Python slice takes, in order; `none` bounds reach the ends.
std::vector<std::int64_t> slice_of(std::optional<std::int64_t> from, std::optional<std::int64_t> to, std::int64_t step,
                                   std::int64_t size) {
  step = std::clamp<std::int64_t>(step, -size - 1, size + 1);
  const std::int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  const auto bound = [&](std::optional<std::int64_t> given, std::int64_t none) {
    if (!given) return none;
    return std::clamp<std::int64_t>(*given < 0 ? *given + size : *given, low, high);
  };
  const std::int64_t last = bound(to, step > 0 ? high : low);
  std::vector<std::int64_t> out;
  for (std::int64_t i = bound(from, step > 0 ? low : high); step > 0 ? i < last : i > last; i += step) out.push_back(i);
  return out;
}

// A number of the model's source, which traces keep as a float64 or int64 tensor of no dims. As the other operand of
// arithmetic it stays a number, which does not promote what it meets; PyTorch's executor treats it the same.
std::optional<Arg> number_of_source(const torch::jit::Node& node, const c10::IValue& value) {
  static const std::set<std::string_view> arithmetic = {"aten::add", "aten::add_", "aten::sub", "aten::sub_",
                                                        "aten::mul", "aten::mul_", "aten::div", "aten::div_"};
  if (!value.isTensor() || !value.toTensor().defined()) return std::nullopt;
  const at::Tensor& tensor = value.toTensor();
  if (tensor.dim() != 0 || !tensor.device().is_cpu()) return std::nullopt;
  for (const auto& use : node.output()->uses())
    if (use.offset != 1 || !arithmetic.contains(use.user->kind().toQualString())) return std::nullopt;
  if (tensor.scalar_type() == at::kDouble) return Arg(tensor.item<double>());
  if (tensor.scalar_type() == at::kLong) return Arg(tensor.item<std::int64_t>());
  return std::nullopt;
}

}  // namespace

void Lowering::on_constant(const JitNode& node) {
  if (const auto type = node.output()->type()->cast<c10::FunctionType>())
    return out(node, Sym{.kind = Sym::Kind::function, .function = type->function()});
  const auto value = torch::jit::toIValue(node.output());
  if (const auto number = value ? number_of_source(node, *value) : std::nullopt) return out(node, Sym{.arg = *number});
  out(node, value ? from_ivalue(*value, "", InputKind::constant) : Sym{});
}

void Lowering::on_get_attr(const JitNode& node) {
  const Sym object = in(node, 0);
  const std::string& name = node.s(c10::attr::name);
  if (object.kind == Sym::Kind::tuple) {  // a named tuple
    const auto type = node.input(0)->type()->cast<c10::TupleType>();
    if (type && type->schema())
      for (std::size_t i = 0; i < object.items.size(); ++i)
        if (type->schema()->arguments()[i].name() == name) return out(node, object.items[i]);
  }
  if (object.kind != Sym::Kind::object) unsupported("attribute '" + name + "' of a value that is no module");
  out(node, attribute(object.cell, name));
}

void Lowering::on_set_attr(const JitNode& node) {
  const Sym object = in(node, 0), value = in(node, 1);
  if (object.kind != Sym::Kind::object) unsupported("setting an attribute of a value that is no module");
  const std::string& name = node.s(c10::attr::name);
  if (object.cell->object) attribute(object.cell, name);  // what an untaken branch leaves
  Content content = object.cell->content;
  content.attributes.insert_or_assign(name, value);
  change(object.cell, std::move(content));
}

void Lowering::on_create_object(const JitNode& node) {
  out(node, Sym{.kind = Sym::Kind::object,
                .cell = std::make_shared<Cell>(Cell{.type = node.output()->type(), .born = births_++})});
}

void Lowering::on_call(const JitNode& node) {
  std::vector<Sym> args;
  for (std::size_t i = 0; i < node.inputs().size(); ++i) args.push_back(in(node, i));
  torch::jit::Function* function = nullptr;
  if (node.kind() == c10::prim::CallFunction) {
    function = args[0].function;
    args.erase(args.begin());
  } else if (args[0].kind == Sym::Kind::object) {
    function = args[0].cell->type->expectRef<c10::ClassType>().findMethod(node.s(c10::attr::name));
  }
  if (!function) unsupported("a call of something that is not known while compiling");
  const std::string source = source_;
  out(node, call(*function, args));
  source_ = source;
}

void Lowering::on_fork(const JitNode& node) {
  const auto graph = node.g(c10::attr::Subgraph);
  Env inner;
  for (std::size_t i = 0; i < node.inputs().size(); ++i) inner[graph->inputs()[i]] = in(node, i);
  frames_.push_back(std::move(inner));
  lower_block(*graph->block());
  Sym result{.kind = Sym::Kind::tuple};
  for (const torch::jit::Value* output : graph->outputs()) result.items.push_back(frames_.back().at(output));
  frames_.pop_back();
  out(node, result.items.size() == 1 ? Sym(result.items[0]) : result);
}

void Lowering::on_uninitialized(const JitNode& node) { out(node, Sym{.kind = Sym::Kind::undefined}); }

// ---- tuples -------------------------------------------------------------------------------------------------------

void Lowering::on_tuple(const JitNode& node) {
  Sym tuple{.kind = Sym::Kind::tuple};
  for (std::size_t i = 0; i < node.inputs().size(); ++i) tuple.items.push_back(in(node, i));
  out(node, std::move(tuple));
}

void Lowering::on_tuple_unpack(const JitNode& node) {
  const Sym tuple = in(node, 0);
  const bool undefined = tuple.kind == Sym::Kind::undefined;
  if (!undefined && (tuple.kind != Sym::Kind::tuple || tuple.items.size() != node.outputs().size()))
    unsupported("unpacking a tuple that only exists at run time");
  for (std::size_t i = 0; i < node.outputs().size(); ++i) out(node, undefined ? tuple : tuple.items[i], i);
}

void Lowering::on_tuple_index(const JitNode& node) {
  const Sym tuple = in(node, 0);
  const auto index = integer(in(node, 1));
  if (tuple.kind == Sym::Kind::undefined) return out(node, tuple);
  if (tuple.kind != Sym::Kind::tuple || !index) unsupported("indexing a tuple with a number only known at run time");
  const auto size = static_cast<std::int64_t>(tuple.items.size());
  const std::int64_t i = *index < 0 ? *index + size : *index;
  if (i < 0 || i >= size) unsupported("a tuple index that is out of range");
  out(node, tuple.items[static_cast<std::size_t>(i)]);
}

void Lowering::on_tuple_slice(const JitNode& node) {
  const Sym tuple = in(node, 0);
  if (tuple.kind != Sym::Kind::tuple) unsupported("slicing a tuple that only exists at run time");
  const auto size = static_cast<std::int64_t>(tuple.items.size());
  const std::int64_t from = clamp_bound(node.i(c10::attr::beg), size),
                     to = std::max(from, clamp_bound(node.i(c10::attr::end), size));
  out(node, Sym{.kind = Sym::Kind::tuple, .items = {tuple.items.begin() + from, tuple.items.begin() + to}});
}

// ---- lists --------------------------------------------------------------------------------------------------------

bool Lowering::is_list(const JitNode& node, std::size_t i) {
  return i < node.inputs().size() && (in(node, i).kind == Sym::Kind::list || in(node, i).kind == Sym::Kind::sizes);
}

void Lowering::on_list(const JitNode& node) {
  std::vector<Sym> items;
  for (std::size_t i = 0; i < node.inputs().size(); ++i) items.push_back(in(node, i));
  out(node, make_list(std::move(items), node.output()->type()));
}

void Lowering::on_list_unpack(const JitNode& node) {
  const Sym list = in(node, 0);
  const std::size_t count = node.outputs().size();
  if (list.kind == Sym::Kind::sizes) {
    for (std::size_t i = 0; i < count; ++i)
      out(node, Sym{.arg = emit1("aten.sym_size.int", {list.arg, static_cast<std::int64_t>(i)}, Type::integer())}, i);
    return;
  }
  if (list.kind == Sym::Kind::list && !list.cell->content.value) {
    if (list.cell->content.items.size() != count) unsupported("unpacking a list of another size");
    for (std::size_t i = 0; i < count; ++i) out(node, Sym(list.cell->content.items[i]), i);
    return;
  }
  set_results(node, emit("prim.list_unpack", {to_arg(list)}));
}

void Lowering::on_len(const JitNode& node) {
  const Sym& sym = in(node, 0);
  if (sym.kind == Sym::Kind::sizes) return out(node, Sym{.arg = emit1("aten.dim.default", {sym.arg}, Type::integer())});
  if (sym.kind == Sym::Kind::dict)
    return out(node, Sym{.arg = static_cast<std::int64_t>(sym.cell->content.entries.size())});
  if (sym.kind == Sym::Kind::list && !sym.cell->content.value)
    return out(node, Sym{.arg = static_cast<std::int64_t>(sym.cell->content.items.size())});
  if (!fold_literals(node)) lower_operator(node);
}

void Lowering::on_getitem(const JitNode& node) {
  const Sym container = in(node, 0), index = in(node, 1);
  if (container.kind == Sym::Kind::dict) {
    for (const auto& [key, item] : container.cell->content.entries)
      if (index.is_literal() && key == index.arg) return out(node, item);
    unsupported("looking up a dict by a key that it is not known to have");
  }
  const auto at = integer(index);
  if (container.kind == Sym::Kind::sizes && at)
    return out(node, Sym{.arg = emit1("aten.sym_size.int", {container.arg, *at}, Type::integer())});
  if (container.kind == Sym::Kind::list && !container.cell->content.value && at) {
    const auto& items = container.cell->content.items;
    const std::int64_t i = *at < 0 ? *at + static_cast<std::int64_t>(items.size()) : *at;
    if (i < 0 || i >= static_cast<std::int64_t>(items.size())) unsupported("a list index that is out of range");
    return out(node, Sym(items[static_cast<std::size_t>(i)]));
  }
  if (!fold_literals(node)) lower_operator(node);
}

// Writes make a new list value; whoever holds the list sees it through the cell.
void Lowering::on_list_write(const JitNode& node) {
  const Sym target = in(node, 0);
  std::string name = node.kind().toUnqualString();
  if (target.kind == Sym::Kind::dict && name == "_set_item") return set_dict_item(node);
  if (target.kind != Sym::Kind::list) {
    if (name == "add_") return lower_operator(node);
    unsupported("a write to a list that only exists at run time");
  }
  Content content = target.cell->content;
  auto& items = content.items;
  const auto given = node.inputs().size() > 1 ? integer(in(node, 1)) : std::nullopt;
  const bool indexed = given.has_value();
  const std::int64_t index = given.value_or(0);
  const auto size = static_cast<std::int64_t>(items.size());
  const bool run_time = content.value != nullptr;
  const bool extend = name == "extend" || name == "add_";
  Sym popped;
  if (name == "clear") {
    content = Content{};
  } else if (name == "append" && !run_time) {
    items.push_back(in(node, 1));
  } else if (extend && !run_time && in(node, 1).kind == Sym::Kind::list && !in(node, 1).cell->content.value) {
    const auto more = in(node, 1).cell->content.items;
    items.insert(items.end(), more.begin(), more.end());
  } else if (name == "insert" && !run_time && indexed) {
    items.insert(items.begin() + clamp_bound(index, size), in(node, 2));
  } else if (name == "reverse" && !run_time) {
    std::reverse(items.begin(), items.end());
  } else if ((name == "_set_item" || name == "pop") && !run_time && indexed && index >= -size && index < size) {
    const auto at = items.begin() + (index < 0 ? index + size : index);
    popped = *at;
    if (name == "pop")
      items.erase(at);
    else
      *at = in(node, 2);
  } else if (name == "append" || name == "_set_item" || extend) {
    std::vector<Arg> args;
    for (std::size_t i = 0; i < node.inputs().size(); ++i) args.push_back(to_arg(in(node, i)));
    const std::string op = name == "append" ? "aten.append.t" : extend ? "aten.add.t" : "aten._set_item.t";
    content = Content{.value = emit1(op, std::move(args), ir_type(target.cell->type))};
  } else {
    unsupported("list operation '" + name + "' on a list that only exists at run time");
  }
  if (static_cast<std::int64_t>(items.size()) > max_list) unsupported("a list of more than a million items");
  change(target.cell, std::move(content));
  if (node.outputs().size() == 1) out(node, name == "pop" ? popped : target);
}

// h, w = x.shape[-2:], whatever the rank: unpacking says how many sizes there are.
bool Lowering::some_sizes(const JitNode& node) {
  const Sym &begin = in(node, 1), &end = in(node, 2);
  const auto from = begin.is_literal() && begin.arg.is_none() ? std::optional<std::int64_t>(0) : integer(begin);
  const auto step = integer(in(node, 3));
  const auto to = end.is_literal() && end.arg.is_none() ? std::optional<std::int64_t>(0) : integer(end);
  if (!from || !to || step != 1 || *from < -max_rank || *to > max_rank) return false;
  if (*from < 0 ? *to > 0 || (*to == 0 && !end.arg.is_none()) : *to < 0 || end.arg.is_none()) return false;
  for (const auto& use : node.output()->uses())
    if (use.user->kind() != c10::prim::ListUnpack ||
        static_cast<std::int64_t>(use.user->outputs().size()) != *to - *from)
      return false;
  std::vector<Sym> items;
  for (std::int64_t dim = *from; dim < *to; ++dim)
    items.push_back(Sym{.arg = emit1("aten.sym_size.int", {in(node, 0).arg, dim}, Type::integer())});
  out(node, make_list(std::move(items), node.output()->type()));
  return true;
}

void Lowering::on_list_read(const JitNode& node) {
  const std::string name = node.kind().toUnqualString();
  const Sym sym = in(node, 0);
  if (sym.kind == Sym::Kind::tuple && name == "list") return out(node, make_list(sym.items, node.output()->type()));
  if (sym.kind == Sym::Kind::sizes && name == "slice" && some_sizes(node)) return;
  const bool known = sym.kind == Sym::Kind::list && !sym.cell->content.value;
  if (known && name == "list") return out(node, make_list(sym.cell->content.items, node.output()->type()));
  if (known && name == "add" && is_list(node, 1) && in(node, 1).kind == Sym::Kind::list &&
      !in(node, 1).cell->content.value) {
    std::vector<Sym> items = sym.cell->content.items;
    const auto& more = in(node, 1).cell->content.items;
    items.insert(items.end(), more.begin(), more.end());
    return out(node, make_list(std::move(items), node.output()->type()));
  }
  if (known && name == "mul" && integer(in(node, 1))) {
    const std::int64_t times = std::max<std::int64_t>(*integer(in(node, 1)), 0),
                       size = static_cast<std::int64_t>(sym.cell->content.items.size());
    if (size > 0 && times > max_list / size) unsupported("a list of more than a million items");
    std::vector<Sym> items;
    for (std::int64_t i = 0; i < times; ++i)
      items.insert(items.end(), sym.cell->content.items.begin(), sym.cell->content.items.end());
    return out(node, make_list(std::move(items), node.output()->type()));
  }
  if (known && name == "slice" && node.inputs().size() == 4) {
    const Sym &from = in(node, 1), &to = in(node, 2);
    const auto known_bound = [](const Sym& bound) {
      return bound.is_literal() && (bound.arg.is_none() || bound.arg.integer());
    };
    const auto step = integer(in(node, 3));
    if (known_bound(from) && known_bound(to) && step && *step != 0) {
      const auto& from_items = sym.cell->content.items;
      std::vector<Sym> items;
      for (const std::int64_t i :
           slice_of(from.arg.integer(), to.arg.integer(), *step, static_cast<std::int64_t>(from_items.size())))
        items.push_back(from_items[static_cast<std::size_t>(i)]);
      return out(node, make_list(std::move(items), node.output()->type()));
    }
  }
  if (!fold_literals(node)) lower_operator(node);
}

// ---- dicts --------------------------------------------------------------------------------------------------------

void Lowering::on_dict(const JitNode& node) {
  Sym dict{.kind = Sym::Kind::dict,
           .cell = std::make_shared<Cell>(Cell{.type = node.output()->type(), .born = births_++})};
  for (std::size_t i = 0; i + 1 < node.inputs().size(); i += 2) {
    if (!in(node, i).is_literal()) unsupported("a dict whose keys are only known at run time");
    dict.cell->content.entries.emplace_back(in(node, i).arg, in(node, i + 1));
  }
  out(node, std::move(dict));
}

void Lowering::set_dict_item(const JitNode& node) {
  const Sym dict = in(node, 0), key = in(node, 1);
  if (!key.is_literal()) unsupported("a dict whose keys are only known at run time");
  Content content = dict.cell->content;
  const auto found = std::find_if(content.entries.begin(), content.entries.end(),
                                  [&](const auto& entry) { return entry.first == key.arg; });
  if (found != content.entries.end())
    found->second = in(node, 2);
  else
    content.entries.emplace_back(key.arg, in(node, 2));
  change(dict.cell, std::move(content));
}

void Lowering::on_dict_read(const JitNode& node) {
  const Sym dict = in(node, 0);
  const std::string name = node.kind().toUnqualString();
  if (dict.kind != Sym::Kind::dict) {
    if (!fold_literals(node)) lower_operator(node);
    return;
  }
  const auto& entries = dict.cell->content.entries;
  if (name == "get" || name == "__contains__") {
    const Sym key = in(node, 1);
    if (!key.is_literal()) unsupported("looking up a dict by a key only known at run time");
    const auto found =
        std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.first == key.arg; });
    if (name == "__contains__") return out(node, Sym{.arg = found != entries.end()});
    return out(node, found != entries.end() ? found->second : node.inputs().size() > 2 ? in(node, 2) : Sym{});
  }
  std::vector<Sym> items;
  for (const auto& [key, item] : entries) {
    if (name == "keys")
      items.push_back(Sym{.arg = key});
    else if (name == "values")
      items.push_back(item);
    else
      items.push_back(Sym{.kind = Sym::Kind::tuple, .items = {Sym{.arg = key}, item}});
  }
  out(node, make_list(std::move(items), node.output()->type()));
}

}  // namespace ttc::ts
