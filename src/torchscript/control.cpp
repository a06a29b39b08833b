// Branches and loops. What the two branches of an if leave different, and what a loop's body changes, becomes a result.
#include <algorithm>
#include <functional>
#include <set>

#include "support/error.h"
#include "torchscript/lowering.h"

namespace ttc::ts {
namespace {

using ir::Arg;
using ir::Type;

// The two regions of a prim.if, while what differs between them is merged.
struct Branches {
  ir::Node* node;
  ir::Graph* graphs[2];
};

// Mutable state that a loop's body changes: a list, a dict, or an attribute of an object.
struct Slot {
  std::shared_ptr<Cell> cell;
  std::string attribute;
  bool operator==(const Slot&) const = default;
};

constexpr std::int64_t max_unrolled_nodes = 4096;

c10::TypePtr element_type(const c10::TypePtr& type, std::size_t i = 0) {
  if (!type) return nullptr;
  if (const auto list = type->cast<c10::ListType>()) return list->getElementType();
  if (const auto tuple = type->cast<c10::TupleType>())
    return i < tuple->elements().size() ? tuple->elements()[i] : nullptr;
  if (const auto optional = type->cast<c10::OptionalType>()) return element_type(optional->getElementType(), i);
  return nullptr;
}

bool is_constant_true(const torch::jit::Value* value) {
  const auto constant = torch::jit::toIValue(value);
  return constant && constant->isBool() && constant->toBool();
}

bool raises(const torch::jit::Block& block) {
  return std::any_of(block.nodes().begin(), block.nodes().end(),
                     [](const torch::jit::Node* node) { return node->kind() == c10::prim::RaiseException; });
}

std::int64_t count_nodes(const torch::jit::Block& block) {
  std::int64_t count = 0;
  for (const torch::jit::Node* node : block.nodes()) {
    ++count;
    for (const torch::jit::Block* inner : node->blocks()) count += count_nodes(*inner);
  }
  return count;
}

// ---- branches -----------------------------------------------------------------------------------------------------

Content merge_entries(LoweringState& s, const Cell& dict, const Content* a, const Content* b, const Branches& branches);

Abstract merge(LoweringState& s, const Abstract& a, const Abstract& b, const c10::TypePtr& type,
               const Branches& branches) {
  using Kind = Abstract::Kind;
  const bool a_undefined = a.kind == Kind::undefined, b_undefined = b.kind == Kind::undefined;
  if (a == b || (a_undefined && b_undefined)) return a;
  const Abstract& known = a_undefined ? b : a;
  const bool same_kind = a.kind == b.kind || a_undefined || b_undefined;
  const auto all = [&](const std::vector<Abstract>& left, const std::vector<Abstract>& right) {
    std::vector<Abstract> items;
    for (std::size_t i = 0; i < std::max(left.size(), right.size()); ++i)
      items.push_back(merge(s, a_undefined ? a : left[i], b_undefined ? b : right[i], element_type(type, i), branches));
    return items;
  };
  if (same_kind && known.kind == Kind::tuple && (a_undefined || b_undefined || a.items.size() == b.items.size()))
    return Abstract{.kind = Kind::tuple, .items = all(a.items, b.items)};
  if (same_kind && known.kind == Kind::list) {
    static const Content none;
    const Content &left = a_undefined ? none : a.cell->content, &right = b_undefined ? none : b.cell->content;
    if (!left.value && !right.value && (a_undefined || b_undefined || left.items.size() == right.items.size()))
      return s.make_list(all(left.items, right.items), known.cell->type);
  }
  if (same_kind && known.kind == Kind::number_tensor)
    return Abstract{.kind = Kind::number_tensor,
                    .arg = merge(s, a_undefined ? a : Abstract{.arg = a.arg}, b_undefined ? b : Abstract{.arg = b.arg},
                                 nullptr, branches)
                               .arg};
  if (same_kind && known.kind == Kind::dict)
    return s.make_dict(merge_entries(s, *known.cell, a_undefined ? nullptr : &a.cell->content,
                                     b_undefined ? nullptr : &b.cell->content, branches),
                       known.cell->type);
  if ((a_undefined || b_undefined) && (known.kind == Kind::object || known.kind == Kind::function)) return known;

  ir::Graph* const outer = s.graph;
  Arg args[2];
  for (int i = 0; i < 2; ++i) {
    s.graph = branches.graphs[i];
    args[i] = to_arg(s, i == 0 ? a : b);
    branches.graphs[i]->add_output(args[i]);
  }
  s.graph = outer;
  Type result = type && type->kind() != c10::TypeKind::AnyType
                    ? ir_type(type)
                    : type_of(args[a_undefined || args[0].is_none() ? 1 : 0]);
  ir::Value* value = branches.node->add_result(std::move(result), s.graph->unique_name("if"));
  const auto may_be_none = [&](const Abstract& abstract, const Arg& arg) {
    return (abstract.kind != Kind::undefined && arg.is_none()) || (arg.value() && s.maybe_none.contains(arg.value()));
  };
  if (may_be_none(a, args[0]) || may_be_none(b, args[1])) s.maybe_none.insert(value);
  return s.from_value(value, known.kind == Kind::list ? known.cell->type : type);
}

bool same_keys(const Content& a, const Content& b) {
  return !a.value && !b.value &&
         std::ranges::equal(
             a.entries, b.entries, {}, [](const auto& entry) { return entry.first; },
             [](const auto& entry) { return entry.first; });
}

// What a dict holds after a prim.if: entry by entry where both branches leave the same keys, else one value.
Content merge_entries(LoweringState& s, const Cell& dict, const Content* a, const Content* b,
                      const Branches& branches) {
  const Abstract undefined{.kind = Abstract::Kind::undefined};
  const Content& known = a ? *a : *b;
  if (known.value || (a && b && !same_keys(*a, *b))) {
    const auto as_value = [&](const Content* content, int branch) {
      if (!content) return undefined;
      s.graph = branches.graphs[branch];
      return Abstract{.arg = dict_value(s, {.content = *content, .type = dict.type})};
    };
    ir::Graph* const outer = s.graph;
    const Abstract left = as_value(a, 0), right = as_value(b, 1);
    s.graph = outer;
    return merge(s, left, right, dict.type, branches).cell->content;
  }
  Content out;
  for (std::size_t i = 0; i < known.entries.size(); ++i)
    out.entries.emplace_back(known.entries[i].first,
                             merge(s, a ? a->entries[i].second : undefined, b ? b->entries[i].second : undefined,
                                   dict.type->expectRef<c10::DictType>().getValueType(), branches));
  return out;
}

// What a cell holds after a prim.if; nullptr for a branch that raises.
Content merge(LoweringState& s, const Cell& cell, const Content* a, const Content* b, const Branches& branches) {
  const Abstract undefined{.kind = Abstract::Kind::undefined};
  Content out;
  if (cell.type->kind() == c10::TypeKind::ListType) {
    const auto as_list = [&](const Content* content) {
      if (!content) return undefined;
      Abstract list = s.make_list({}, cell.type);
      list.cell->content = *content;
      return list;
    };
    return merge(s, as_list(a), as_list(b), cell.type, branches).cell->content;
  }
  if (cell.type->kind() == c10::TypeKind::DictType) return merge_entries(s, cell, a, b, branches);
  std::set<std::string> names;
  for (const Content* content : {a, b})
    if (content)
      for (const auto& [name, abstract] : content->attributes) names.insert(name);
  const auto& type = cell.type->expectRef<c10::ClassType>();
  const auto look = [&](const Content* content, const std::string& name) {
    if (!content) return undefined;
    const auto found = content->attributes.find(name);
    return found != content->attributes.end() ? found->second : load_attribute(s, cell, name);
  };
  for (const std::string& name : names)
    out.attributes[name] = merge(s, look(a, name), look(b, name), type.findAttribute(name), branches);
  return out;
}

void on_if(LoweringState& s, const JitNode& node) {
  const Abstract condition = s.in(node, 0);
  const auto result = [&](const torch::jit::Block& block, std::size_t i) {
    return s.frames.back().at(block.outputs()[i]);
  };
  if (const auto known = condition.is_literal() ? condition.arg.boolean() : std::nullopt) {
    const torch::jit::Block& block = *node.blocks()[*known ? 0 : 1];
    lower_block(s, block);
    for (std::size_t i = 0; i < node.outputs().size(); ++i) s.out(node, result(block, i), i);
    return;
  }
  ir::Node* made = s.emit("prim.if", {to_arg(s, condition)});
  const Branches branches{made, {made->add_region(), made->add_region()}};
  ir::Graph* const outer = s.graph;
  const std::size_t mark = s.log.size();
  const int born = s.births;
  std::vector<Abstract> results[2];
  Changes changes[2];
  bool ends[2];
  for (std::size_t b = 0; b < 2; ++b) {
    const torch::jit::Block& block = *node.blocks()[b];
    s.graph = branches.graphs[b];
    ends[b] = raises(block);
    lower_block(s, block);
    for (std::size_t i = 0; i < node.outputs().size(); ++i)
      results[b].push_back(ends[b] ? Abstract{.kind = Abstract::Kind::undefined} : result(block, i));
    changes[b] = s.take_changes(mark, born);
  }
  s.graph = outer;
  for (std::size_t i = 0; i < node.outputs().size(); ++i)
    s.out(node, merge(s, results[0][i], results[1][i], node.output(i)->type(), branches), i);
  Changes all = changes[0];
  all.insert(changes[1].begin(), changes[1].end());
  if (ends[0] && ends[1]) return;
  for (const auto& [birth, entry] : all) {
    const auto& cell = entry.first;
    const auto content = [&](int b) -> const Content* {
      if (ends[b]) return nullptr;
      const auto found = changes[b].find(birth);
      return found != changes[b].end() ? &found->second.second : &cell->content;
    };
    Content merged = merge(s, *cell, content(0), content(1), branches);
    s.change(cell, std::move(merged));
  }
}

// ---- loops --------------------------------------------------------------------------------------------------------

// A loop over a known small number of iterations is straight-line code.
bool unroll(LoweringState& s, const JitNode& node) {
  const Abstract &count = s.in(node, 0), &condition = s.in(node, 1);
  const torch::jit::Block& body = *node.blocks()[0];
  if (!count.is_literal() || !count.arg.integer() || !condition.is_literal()) return false;
  if (condition.arg.boolean() == false) {
    for (std::size_t i = 0; i < node.outputs().size(); ++i) s.out(node, s.in(node, i + 2), i);
    return true;
  }
  const std::int64_t trips = *count.arg.integer();
  if (!is_constant_true(body.outputs()[0]) || trips > max_unrolled_nodes ||
      trips * count_nodes(body) > max_unrolled_nodes)
    return false;
  std::vector<Abstract> carried;
  for (std::size_t i = 2; i < node.inputs().size(); ++i) carried.push_back(s.in(node, i));
  for (std::int64_t trip = 0; trip < trips; ++trip) {
    Env& env = s.frames.back();
    env[body.inputs()[0]] = Abstract{.arg = trip};
    for (std::size_t i = 0; i < carried.size(); ++i) env[body.inputs()[i + 1]] = carried[i];
    lower_block(s, body);
    for (std::size_t i = 0; i < carried.size(); ++i) carried[i] = s.frames.back().at(body.outputs()[i + 1]);
  }
  for (std::size_t i = 0; i < carried.size(); ++i) s.out(node, carried[i], i);
  return true;
}

// What is carried through a loop: the slots beside what TorchScript carries; which of all these are dicts that get
// other keys there, and so are one value.
struct Carried {
  std::vector<Slot> slots = {};
  std::set<std::size_t> whole_dicts = {};
};

bool is_other_dict(const Abstract& abstract, const Abstract& shape) {
  return shape.kind == Abstract::Kind::dict &&
         (abstract.kind != Abstract::Kind::dict ||
          (!shape.cell->content.value && !same_keys(abstract.cell->content, shape.cell->content)));
}

// The run-time parts of a value: tuples and dicts are taken apart, modules and functions have none.
void flatten(LoweringState& s, const Abstract& abstract, const Abstract& shape, std::vector<Arg>& args) {
  if (shape.kind == Abstract::Kind::object || shape.kind == Abstract::Kind::function) {
    if (!(abstract == shape)) s.unsupported("a loop that replaces a module or function");
  } else if (shape.kind == Abstract::Kind::tuple) {
    if (abstract.kind != Abstract::Kind::tuple || abstract.items.size() != shape.items.size())
      s.unsupported("a loop that carries a tuple of changing size");
    for (std::size_t i = 0; i < abstract.items.size(); ++i) flatten(s, abstract.items[i], shape.items[i], args);
  } else if (shape.kind == Abstract::Kind::dict && !shape.cell->content.value) {
    if (is_other_dict(abstract, shape)) s.unsupported("a loop that changes the keys of a dict within another value");
    for (std::size_t i = 0; i < shape.cell->content.entries.size(); ++i)
      flatten(s, abstract.cell->content.entries[i].second, shape.cell->content.entries[i].second, args);
  } else {
    args.push_back(to_arg(s, abstract));
  }
}

Abstract unflatten(LoweringState& s, const Abstract& shape, const c10::TypePtr& type,
                   const std::function<ir::Value*(Type)>& next) {
  if (shape.kind == Abstract::Kind::object || shape.kind == Abstract::Kind::function) return shape;
  if (shape.kind == Abstract::Kind::tuple) {
    Abstract tuple{.kind = Abstract::Kind::tuple};
    for (std::size_t i = 0; i < shape.items.size(); ++i)
      tuple.items.push_back(unflatten(s, shape.items[i], element_type(type, i), next));
    return tuple;
  }
  if (shape.kind == Abstract::Kind::dict && !shape.cell->content.value) {
    Content content;
    for (const auto& [key, item] : shape.cell->content.entries)
      content.entries.emplace_back(
          key, unflatten(s, item, shape.cell->type->expectRef<c10::DictType>().getValueType(), next));
    return s.make_dict(std::move(content), shape.cell->type);
  }
  ir::Value* value = next(type ? ir_type(type) : type_of(shape.arg));
  if (type && type->kind() == c10::TypeKind::OptionalType) s.maybe_none.insert(value);
  return s.from_value(value, type);
}

Abstract slot_value(LoweringState& s, const Slot& slot) {
  if (!slot.attribute.empty()) return attribute(s, slot.cell, slot.attribute);
  const bool dict = slot.cell->type->kind() == c10::TypeKind::DictType;
  return Abstract{.kind = dict ? Abstract::Kind::dict : Abstract::Kind::list, .cell = slot.cell};
}

// The value with the keys that it has now, whatever the body does to its dicts.
Abstract form_of(LoweringState& s, const Abstract& abstract) {
  Abstract out = abstract;
  for (Abstract& item : out.items) item = form_of(s, item);
  if (abstract.kind != Abstract::Kind::dict) return out;
  Content content = abstract.cell->content;
  for (auto& [key, item] : content.entries) item = form_of(s, item);
  return s.make_dict(std::move(content), abstract.cell->type);
}

// The value as a dict whose keys nobody knows.
Abstract whole_dict(LoweringState& s, const Abstract& dict) {
  return s.make_dict({.value = dict_value(s, *dict.cell)}, dict.cell->type);
}

void set_slot(LoweringState& s, const Slot& slot, const Abstract& abstract) {
  Content content = slot.cell->content;
  if (slot.attribute.empty())
    content = abstract.cell->content;
  else
    content.attributes.insert_or_assign(slot.attribute, abstract);
  s.change(slot.cell, std::move(content));
}

c10::TypePtr slot_type(const Slot& slot) {
  return slot.attribute.empty() ? slot.cell->type
                                : slot.cell->type->expectRef<c10::ClassType>().findAttribute(slot.attribute);
}

// What changed in a loop's body beyond `slots`.
void add_slots(const Changes& changes, std::vector<Slot>& slots) {
  const auto add = [&](Slot slot) {
    if (std::find(slots.begin(), slots.end(), slot) == slots.end()) slots.push_back(std::move(slot));
  };
  for (const auto& [birth, entry] : changes) {
    const auto& [cell, content] = entry;
    if (cell->type->kind() == c10::TypeKind::ListType || cell->type->kind() == c10::TypeKind::DictType) {
      add({cell, ""});
    } else {
      for (const auto& [name, abstract] : content.attributes) {
        const auto before = cell->content.attributes.find(name);
        if (before != cell->content.attributes.end() && !(before->second == abstract)) add({cell, name});
      }
    }
  }
}

// Lowers the loop with `also` carried beside what TorchScript carries. Where the body changes more than that, nothing
// is left behind and `also` has grown.
bool try_loop(LoweringState& s, const JitNode& node, Carried& also) {
  std::vector<Slot>& slots = also.slots;
  const torch::jit::Block& body = *node.blocks()[0];
  const std::size_t carried = node.inputs().size() - 2, mark = s.log.size();
  const int born = s.births;
  std::vector<Arg> args = {to_arg(s, s.in(node, 0)), to_arg(s, s.in(node, 1))};
  std::vector<Abstract> shapes;
  for (std::size_t i = 0; i < carried; ++i) shapes.push_back(form_of(s, s.in(node, i + 2)));
  for (const Slot& slot : slots) shapes.push_back(form_of(s, slot_value(s, slot)));
  for (const std::size_t i : also.whole_dicts) shapes[i] = whole_dict(s, shapes[i]);
  for (const Abstract& shape : shapes) flatten(s, shape, shape, args);
  const auto shape_type = [&](std::size_t i) {
    return i < carried ? node.output(i)->type() : slot_type(slots[i - carried]);
  };

  ir::Graph* const outer = s.graph;
  ir::Node* made = s.emit("prim.loop", std::move(args));
  ir::Graph* region = s.graph = made->add_region();
  const auto add_input = [&](Type type) { return region->add_input(std::move(type), region->unique_name("carried")); };
  s.frames.back()[body.inputs()[0]] =
      Abstract{.arg = region->add_input(Type::integer(), region->unique_name("iteration"))};
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const Abstract inside = unflatten(s, shapes[i], shape_type(i), add_input);
    if (i < carried)
      s.frames.back()[body.inputs()[i + 1]] = inside;
    else
      set_slot(s, slots[i - carried], inside);
  }
  const std::size_t inner_mark = s.log.size();
  lower_block(s, body);
  Changes inner;
  for (std::size_t i = inner_mark; i < s.log.size(); ++i)
    if (s.log[i].cell->born < born) inner.try_emplace(s.log[i].cell->born, s.log[i].cell, s.log[i].cell->content);
  std::vector<Arg> results = {to_arg(s, s.frames.back().at(body.outputs()[0]))};
  const std::size_t before = slots.size() + also.whole_dicts.size();
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const Abstract after = i < carried ? s.frames.back().at(body.outputs()[i + 1]) : slot_value(s, slots[i - carried]);
    if (is_other_dict(after, shapes[i]))
      also.whole_dicts.insert(i);
    else
      flatten(s, after, shapes[i], results);
  }
  s.take_changes(mark, born);
  add_slots(inner, slots);
  s.graph = outer;
  if (slots.size() + also.whole_dicts.size() != before) {
    s.graph->erase(made);
    return false;
  }
  for (Arg& result : results) region->add_output(std::move(result));
  const auto add_result = [&](Type type) { return made->add_result(std::move(type), s.graph->unique_name("loop")); };
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const Abstract after = unflatten(s, shapes[i], shape_type(i), add_result);
    if (i < carried)
      s.out(node, after, i);
    else
      set_slot(s, slots[i - carried], after);
  }
  return true;
}

void on_loop(LoweringState& s, const JitNode& node) {
  if (unroll(s, node)) return;
  Carried also;
  for (int attempt = 0; !try_loop(s, node, also); ++attempt)
    if (attempt > 16) s.unsupported("a loop whose state ttc cannot follow");
}

}  // namespace

void add_control_handlers(Handlers& handlers) {
  handlers["prim::If"] = on_if;
  handlers["prim::Loop"] = on_loop;
}

}  // namespace ttc::ts
