// Tuples and lists. Those that are known while lowering vanish; others are operators on lists.
#include <ATen/core/interned_strings.h>

#include <algorithm>

#include "support/error.h"
#include "torchscript/lowering.h"

namespace ttc::ts {
namespace {

using ir::Arg;
using ir::Type;

constexpr std::int64_t max_list = 1 << 20;

constexpr std::int64_t max_rank = 64;  // PyTorch's own limit on dims

// The integer a value certainly is.
std::optional<std::int64_t> integer(const Abstract& abstract) {
  if (!abstract.is_literal()) return std::nullopt;
  return abstract.arg.integer();
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

// ---- tuples -------------------------------------------------------------------------------------------------------

void on_tuple(LoweringState& s, const JitNode& node) {
  Abstract tuple{.kind = Abstract::Kind::tuple};
  for (std::size_t i = 0; i < node.inputs().size(); ++i) tuple.items.push_back(s.in(node, i));
  s.out(node, std::move(tuple));
}

// The parts of a tuple; one that only exists at run time (an item of a list that is an input) is taken apart there.
std::vector<Abstract> parts_of(LoweringState& s, const JitNode& node, const Abstract& tuple) {
  if (tuple.kind == Abstract::Kind::tuple) return tuple.items;
  const auto type = node.input(0)->type()->cast<c10::TupleType>();
  if (!tuple.value() || !type) s.unsupported("taking apart what is no tuple");
  ir::Node* made = s.emit("prim.tuple_unpack", {tuple.arg});
  std::vector<Abstract> out;
  for (const auto& element : type->elements()) {
    out.push_back(s.from_value(made->add_result(ir_type(element), s.graph->unique_name("part")), element));
    if (out.back().cell) out.back().cell->copied = true;
  }
  return out;
}

void on_tuple_unpack(LoweringState& s, const JitNode& node) {
  const Abstract tuple = s.in(node, 0);
  const std::size_t count = node.outputs().size();
  const std::vector<Abstract> parts =
      tuple.kind == Abstract::Kind::undefined ? std::vector<Abstract>(count, tuple) : parts_of(s, node, tuple);
  if (parts.size() != count) s.unsupported("unpacking a tuple of another size");
  for (std::size_t i = 0; i < count; ++i) s.out(node, parts[i], i);
}

void on_tuple_index(LoweringState& s, const JitNode& node) {
  const Abstract tuple = s.in(node, 0);
  const auto index = integer(s.in(node, 1));
  if (tuple.kind == Abstract::Kind::undefined) return s.out(node, tuple);
  if (!index) s.unsupported("indexing a tuple with a number only known at run time");
  const std::vector<Abstract> parts = parts_of(s, node, tuple);
  const auto size = static_cast<std::int64_t>(parts.size());
  const std::int64_t i = *index < 0 ? *index + size : *index;
  if (i < 0 || i >= size) s.unsupported("a tuple index that is out of range");
  s.out(node, parts[static_cast<std::size_t>(i)]);
}

void on_tuple_slice(LoweringState& s, const JitNode& node) {
  const Abstract tuple = s.in(node, 0);
  const std::vector<Abstract> parts = parts_of(s, node, tuple);
  const auto size = static_cast<std::int64_t>(parts.size());
  const std::int64_t from = clamp_bound(node.i(c10::attr::beg), size),
                     to = std::max(from, clamp_bound(node.i(c10::attr::end), size));
  s.out(node, Abstract{.kind = Abstract::Kind::tuple, .items = {parts.begin() + from, parts.begin() + to}});
}

// ---- lists --------------------------------------------------------------------------------------------------------

void on_list(LoweringState& s, const JitNode& node) {
  std::vector<Abstract> items;
  for (std::size_t i = 0; i < node.inputs().size(); ++i) items.push_back(s.in(node, i));
  s.out(node, s.make_list(std::move(items), node.output()->type()));
}

void on_list_unpack(LoweringState& s, const JitNode& node) {
  const Abstract list = s.in(node, 0);
  const std::size_t count = node.outputs().size();
  if (list.kind == Abstract::Kind::sizes) {
    for (std::size_t i = 0; i < count; ++i)
      s.out(node,
            Abstract{.arg = s.emit1("aten.sym_size.int", {list.arg, static_cast<std::int64_t>(i)}, Type::integer())},
            i);
    return;
  }
  if (list.kind == Abstract::Kind::list && !list.cell->content.value) {
    if (list.cell->content.items.size() != count) s.unsupported("unpacking a list of another size");
    for (std::size_t i = 0; i < count; ++i) s.out(node, Abstract(list.cell->content.items[i]), i);
    return;
  }
  s.set_results(node, s.emit("prim.list_unpack", {to_arg(s, list)}));
}

void on_len(LoweringState& s, const JitNode& node) {
  const Abstract& abstract = s.in(node, 0);
  if (abstract.kind == Abstract::Kind::sizes)
    return s.out(node, Abstract{.arg = s.emit1("aten.dim.default", {abstract.arg}, Type::integer())});
  if (abstract.kind == Abstract::Kind::dict) return on_dict_read(s, node);
  if (abstract.kind == Abstract::Kind::list && !abstract.cell->content.value)
    return s.out(node, Abstract{.arg = static_cast<std::int64_t>(abstract.cell->content.items.size())});
  if (!fold_literals(s, node)) lower_operator(s, node);
}

void on_getitem(LoweringState& s, const JitNode& node) {
  const Abstract container = s.in(node, 0), index = s.in(node, 1);
  if (container.kind == Abstract::Kind::dict) return on_dict_read(s, node);
  const auto at = integer(index);
  if (container.kind == Abstract::Kind::sizes && at)
    return s.out(node, Abstract{.arg = s.emit1("aten.sym_size.int", {container.arg, *at}, Type::integer())});
  if (container.kind == Abstract::Kind::list && !container.cell->content.value && at) {
    const auto& items = container.cell->content.items;
    const std::int64_t i = *at < 0 ? *at + static_cast<std::int64_t>(items.size()) : *at;
    if (i < 0 || i >= static_cast<std::int64_t>(items.size())) s.unsupported("a list index that is out of range");
    return s.out(node, Abstract(items[static_cast<std::size_t>(i)]));
  }
  if (fold_literals(s, node)) return;
  lower_operator(s, node);
  mark_copied(s, node);
}

// Writes make a new list value; whoever holds the list sees it through the cell.
void on_list_write(LoweringState& s, const JitNode& node) {
  const Abstract target = s.in(node, 0);
  std::string name = node.kind().toUnqualString();
  if (target.kind == Abstract::Kind::dict) return on_dict_write(s, node);
  if (target.kind != Abstract::Kind::list) {
    if (name == "add_") return lower_operator(s, node);
    s.unsupported("a write to a list that only exists at run time");
  }
  check_own(s, target);
  Content content = target.cell->content;
  auto& items = content.items;
  const auto given = node.inputs().size() > 1 ? integer(s.in(node, 1)) : std::nullopt;
  const bool indexed = given.has_value();
  const std::int64_t index = given.value_or(0);
  const auto size = static_cast<std::int64_t>(items.size());
  const bool run_time = content.value != nullptr;
  const bool extend = name == "extend" || name == "add_";
  Abstract popped;
  if (name == "clear") {
    content = Content{};
  } else if (name == "append" && !run_time) {
    items.push_back(s.in(node, 1));
  } else if (extend && !run_time && s.in(node, 1).kind == Abstract::Kind::list && !s.in(node, 1).cell->content.value) {
    const auto more = s.in(node, 1).cell->content.items;
    items.insert(items.end(), more.begin(), more.end());
  } else if (name == "insert" && !run_time && indexed) {
    items.insert(items.begin() + clamp_bound(index, size), s.in(node, 2));
  } else if (name == "reverse" && !run_time) {
    std::reverse(items.begin(), items.end());
  } else if ((name == "_set_item" || name == "pop") && !run_time && indexed && index >= -size && index < size) {
    const auto at = items.begin() + (index < 0 ? index + size : index);
    popped = *at;
    if (name == "pop")
      items.erase(at);
    else
      *at = s.in(node, 2);
  } else if (name == "append" || name == "_set_item" || extend) {
    std::vector<Arg> args;
    for (std::size_t i = 0; i < node.inputs().size(); ++i) args.push_back(to_arg(s, s.in(node, i)));
    const std::string op = name == "append" ? "aten.append.t" : extend ? "aten.add.t" : "aten._set_item.t";
    content = Content{.value = s.emit1(op, std::move(args), ir_type(target.cell->type))};
  } else {
    s.unsupported("list operation '" + name + "' on a list that only exists at run time");
  }
  if (static_cast<std::int64_t>(items.size()) > max_list) s.unsupported("a list of more than a million items");
  s.change(target.cell, std::move(content));
  if (node.outputs().size() == 1) s.out(node, name == "pop" ? popped : target);
}

// h, w = x.shape[-2:], whatever the rank: unpacking says how many sizes there are.
bool some_sizes(LoweringState& s, const JitNode& node) {
  const Abstract &begin = s.in(node, 1), &end = s.in(node, 2);
  const auto from = begin.is_literal() && begin.arg.is_none() ? std::optional<std::int64_t>(0) : integer(begin);
  const auto step = integer(s.in(node, 3));
  const auto to = end.is_literal() && end.arg.is_none() ? std::optional<std::int64_t>(0) : integer(end);
  if (!from || !to || step != 1 || *from < -max_rank || *to > max_rank) return false;
  if (*from < 0 ? *to > 0 || (*to == 0 && !end.arg.is_none()) : *to < 0 || end.arg.is_none()) return false;
  for (const auto& use : node.output()->uses())
    if (use.user->kind() != c10::prim::ListUnpack ||
        static_cast<std::int64_t>(use.user->outputs().size()) != *to - *from)
      return false;
  std::vector<Abstract> items;
  for (std::int64_t dim = *from; dim < *to; ++dim)
    items.push_back(Abstract{.arg = s.emit1("aten.sym_size.int", {s.in(node, 0).arg, dim}, Type::integer())});
  s.out(node, s.make_list(std::move(items), node.output()->type()));
  return true;
}

}  // namespace

bool is_list(const LoweringState& s, const JitNode& node, std::size_t i) {
  return i < node.inputs().size() &&
         (s.in(node, i).kind == Abstract::Kind::list || s.in(node, i).kind == Abstract::Kind::sizes);
}

void mark_copied(LoweringState& s, const JitNode& node) {
  for (const torch::jit::Value* output : node.outputs())
    if (const auto& cell = s.frames.back().at(output).cell) cell->copied = true;
}

void check_own(const LoweringState& s, const Abstract& container) {
  if (container.cell->copied)
    s.unsupported("a write to a list or dict that is an item of what only exists at run time");
}

void on_list_read(LoweringState& s, const JitNode& node) {
  const std::string name = node.kind().toUnqualString();
  const Abstract abstract = s.in(node, 0);
  if (abstract.kind == Abstract::Kind::tuple && name == "list")
    return s.out(node, s.make_list(abstract.items, node.output()->type()));
  if (abstract.kind == Abstract::Kind::sizes && name == "slice" && some_sizes(s, node)) return;
  const bool known = abstract.kind == Abstract::Kind::list && !abstract.cell->content.value;
  if (known && name == "list") return s.out(node, s.make_list(abstract.cell->content.items, node.output()->type()));
  if (known && name == "add" && is_list(s, node, 1) && s.in(node, 1).kind == Abstract::Kind::list &&
      !s.in(node, 1).cell->content.value) {
    std::vector<Abstract> items = abstract.cell->content.items;
    const auto& more = s.in(node, 1).cell->content.items;
    items.insert(items.end(), more.begin(), more.end());
    return s.out(node, s.make_list(std::move(items), node.output()->type()));
  }
  if (known && name == "mul" && integer(s.in(node, 1))) {
    const std::int64_t times = std::max<std::int64_t>(*integer(s.in(node, 1)), 0),
                       size = static_cast<std::int64_t>(abstract.cell->content.items.size());
    if (size > 0 && times > max_list / size) s.unsupported("a list of more than a million items");
    std::vector<Abstract> items;
    for (std::int64_t i = 0; i < times; ++i)
      items.insert(items.end(), abstract.cell->content.items.begin(), abstract.cell->content.items.end());
    return s.out(node, s.make_list(std::move(items), node.output()->type()));
  }
  if (known && name == "slice" && node.inputs().size() == 4) {
    const Abstract &from = s.in(node, 1), &to = s.in(node, 2);
    const auto known_bound = [](const Abstract& bound) {
      return bound.is_literal() && (bound.arg.is_none() || bound.arg.integer());
    };
    const auto step = integer(s.in(node, 3));
    if (known_bound(from) && known_bound(to) && step && *step != 0) {
      const auto& from_items = abstract.cell->content.items;
      std::vector<Abstract> items;
      for (const std::int64_t i :
           slice_of(from.arg.integer(), to.arg.integer(), *step, static_cast<std::int64_t>(from_items.size())))
        items.push_back(from_items[static_cast<std::size_t>(i)]);
      return s.out(node, s.make_list(std::move(items), node.output()->type()));
    }
  }
  if (!fold_literals(s, node)) lower_operator(s, node);
}

void add_container_handlers(Handlers& handlers) {
  handlers["prim::TupleConstruct"] = on_tuple;
  handlers["prim::TupleUnpack"] = on_tuple_unpack;
  handlers["prim::TupleIndex"] = on_tuple_index;
  handlers["prim::TupleSlice"] = on_tuple_slice;
  handlers["prim::ListConstruct"] = on_list;
  handlers["prim::ListUnpack"] = on_list_unpack;
  handlers["aten::len"] = on_len;
  handlers["aten::__getitem__"] = on_getitem;
  for (const char* name : {"slice", "list"}) handlers[std::string("aten::") + name] = on_list_read;
  for (const char* name : {"append", "extend", "insert", "pop", "clear", "_set_item", "reverse", "add_", "Delete"})
    handlers[std::string("aten::") + name] = on_list_write;
}

}  // namespace ttc::ts
