// Turns operators that write a tensor in place into operators that return a new one. What is written to a view is
// scattered into the tensor behind it, and views taken before are taken again from the new tensor. A parameter, buffer
// or user input that was written becomes a mutation output of the graph. What cannot be followed (control flow, views
// of unknown kind, shared memory) stays in place, with a reason.
#include <algorithm>

#include "aliases.h"
#include "effects.h"
#include "match/kinds.h"
#include "pass/rewriter.h"

namespace ttc::functionalize_pass {
namespace {

constexpr std::string_view pass = "functionalize", detach = "aten.detach_.default";

using ir::Arg;
using ir::Node;
using ir::Type;
using ir::Value;

Node* make(Node* position, const Node& like, std::string op, std::vector<Arg> args, Type type, std::string_view stem) {
  Node* node = position->graph()->insert_before(position, std::move(op), std::move(args));
  node->provenance = like.provenance;
  type.strides.clear();
  node->add_result(std::move(type), position->graph()->unique_name(stem));
  return node;
}

// The sizes of `value` as an argument: numbers, or aten.sym_size nodes before `position`.
Arg sizes_of(Value* value, Node* position) {
  Arg::List sizes;
  for (int i = 0; i < value->type.rank(); ++i) {
    const ir::SymExpr& size = value->type.sizes[static_cast<std::size_t>(i)];
    if (size.is_number())
      sizes.emplace_back(size.number());
    else
      sizes.emplace_back(
          make(position, *position, "aten.sym_size.int", {value, i}, Type::integer(size), "size")->result());
  }
  return sizes;
}

class Functionalizer {
 public:
  explicit Functionalizer(PassContext& context) : context_(context), aliases_(context.model) {}

  void run() {
    note_refusals();
    graph(*context_.model.graph);
    add_outputs();
    for (auto it = gone_.rbegin(); it != gone_.rend(); ++it) erase(*it);
  }

 private:
  struct State {
    Value* now = nullptr;  // the tensor with all writes so far
    int version = 0;
    std::map<std::vector<Node*>, std::pair<int, Value*>> views;  // by chain: the version they show, and the view
  };

  bool follows(Value* base) const { return aliases_.is_written(base) && !aliases_.refusal(base); }

  void note_refusals() {
    ir::walk(*context_.model.graph, [&](Node* node) {
      if (!mutates(*node)) return;
      for (std::size_t i = 0; i < node->args().size(); ++i) {
        if (!node->schema()->args[i].mutated || !node->operand(i)) continue;
        if (const Refusal& why = aliases_.refusal(aliases_.view_of(node->operand(i)).base))
          return context_.refuse(pass, *node, *why);
        if (const Refusal why = dtype_refusal(*node)) stop_following(*node, i, *why);
      }
    });
  }

  // In place, the result keeps the dtype of what is written; a new tensor would take the common dtype.
  static Refusal dtype_refusal(const Node& node) {
    static constexpr std::string_view arithmetic[] = {"aten.add_.", "aten.sub_.",     "aten.mul_.",    "aten.div_.",
                                                      "aten.pow_.", "aten.addcmul_.", "aten.addcdiv_."};
    if (std::none_of(std::begin(arithmetic), std::end(arithmetic),
                     [&](std::string_view p) { return node.op().starts_with(p); }))
      return {};
    const Type& self = node.operand(0)->type;
    for (const Value* value : node.operands()) {
      const Type& other = value->type;
      if (other.is_tensor() && self.has_dtype && other.has_dtype && other.dtype != self.dtype &&
          !(other.has_shape && other.rank() == 0))
        return Reason{ReasonCode::DtypeUnsupported, "it writes " + std::string(to_string(self.dtype)) + " from " +
                                                        std::string(to_string(other.dtype))};
    }
    return {};
  }

  void stop_following(const Node& node, std::size_t i, const Reason& why) {
    dropped_.push_back(aliases_.view_of(node.operand(i)).base);
    context_.refuse(pass, node, why);
  }
  // All writes to a tensor are replaced or none: a write left in place would reach what a replaced one passed on.
  bool active(Value* base) {
    if (!follows(base) || std::find(dropped_.begin(), dropped_.end(), base) != dropped_.end()) return false;
    const auto known = allowed_.find(base);
    if (known != allowed_.end()) return known->second;
    std::vector<std::string> writes;
    ir::walk(*context_.model.graph, [&](Node* node) {
      if (writes_to(*node, base)) writes.push_back(node_name(*node));
    });
    const bool allowed =
        !writes.empty() && Rewriter(context_, pass, base->def()).commit_edit("writes", [] {}, base->name, writes);
    return allowed_.emplace(base, allowed).first->second;
  }
  // By a node that write() can replace.
  bool writes_to(const Node& node, const Value* base) const {
    const int i = mutates(node) && node.op() != detach ? Aliases::written_argument(node) : -1;
    return i >= 0 && node.results().size() == 1 && node.operand(static_cast<std::size_t>(i)) &&
           aliases_.view_of(node.result()).base == base;
  }

  void graph(ir::Graph& g) {
    g.for_each([&](Node* node) {
      refresh_operands(node, node);
      for (const auto& region : node->regions()) refresh_captured(*region, node);
      for (const auto& region : node->regions()) graph(*region);
      if (node->op() == detach)
        drop_detach(node);
      else if (mutates(*node))
        write(node);
      else
        note_views(node);
    });
    for (std::size_t i = 0; i < g.outputs().size(); ++i) refresh_output(g, i, nullptr, &g);
  }

  void refresh_operands(Node* node, Node* position) {
    std::vector<Arg> args = node->args();
    bool stale = false;
    for (Arg& arg : args) stale = refresh(arg, position, position->graph()) || stale;
    if (stale) node->set_args(std::move(args));
  }

  // What regions use of the graph around them is made current before the node that has them.
  void refresh_captured(ir::Graph& region, Node* position) {
    for (const auto& inner : region.nodes()) {
      for (Value* value : inner->operands()) {
        Arg arg(value);
        if (value->graph() == position->graph() && refresh(arg, position, position->graph()))
          inner->replace_uses_of(value, arg.value());
      }
      for (const auto& nested : inner->regions()) refresh_captured(*nested, position);
    }
    for (std::size_t i = 0; i < region.outputs().size(); ++i) {
      bool captured = false;
      region.outputs()[i].arg.for_each_value(
          [&](const Value* value) { captured = captured || value->graph() == position->graph(); });
      if (captured) refresh_output(region, i, position, position->graph());
    }
  }

  void refresh_output(ir::Graph& of, std::size_t i, Node* position, ir::Graph* g) {
    Arg arg = of.outputs()[i].arg;
    if (refresh(arg, position, g)) of.set_output(i, std::move(arg));
  }

  // A view that was just taken shows the current state.
  void note_views(Node* node) {
    if (node->results().size() != 1) return;
    const View view = aliases_.view_of(node->result());
    const auto found = states_.find(view.base);
    if (found != states_.end() && !view.chain.empty())
      found->second.views[view.chain] = {found->second.version, node->result()};
  }

  bool refresh(Arg& arg, Node* position, ir::Graph* g) {
    if (Value* value = arg.value()) {
      Value* current = current_of(value, position, g);
      if (current == value) return false;
      arg = current;
      return true;
    }
    bool changed = false;
    if (Arg::List* items = arg.list())
      for (Arg& item : *items) changed = refresh(item, position, g) || changed;
    return changed;
  }

  // What `value` shows now: itself until the tensor behind it is written.
  Value* current_of(Value* value, Node* position, ir::Graph* g) {
    const View view = aliases_.view_of(value);
    const auto found = states_.find(view.base);
    if (view.fixed || found == states_.end() || !active(view.base)) return value;
    return through(found->second, view.chain, position, g);
  }

  Value* through(State& state, const std::vector<Node*>& chain, Node* position, ir::Graph* g) {
    if (chain.empty()) return state.now;
    if (const auto known = state.views.find(chain); known != state.views.end() && known->second.first == state.version)
      return known->second.second;
    Value* parent = through(state, {chain.begin(), chain.end() - 1}, position, g);
    const Node& step = *chain.back();
    std::vector<Arg> args = step.args();
    args[0] = parent;
    Node* again =
        position ? g->insert_before(position, step.op(), std::move(args)) : g->append(step.op(), std::move(args));
    again->provenance = step.provenance;
    Type type = step.result()->type;
    type.strides.clear();
    Value* out = again->add_result(std::move(type), g->unique_name(step.result()->name));
    state.views[chain] = {state.version, out};
    return out;
  }

  void drop_detach(Node* node) {
    const auto drop = [&] {
      node->result()->replace_all_uses_with(node->operand(0));
      gone_.push_back({node, nullptr});
    };
    Rewriter(context_, pass, node).commit_edit(node->op(), drop, node->operand(0)->name);
  }

  void write(Node* node) {
    // The operand may already be a current value; the node's result knows which view it was.
    const View view = node->results().size() == 1 ? aliases_.view_of(node->result()) : View{};
    if (!view.base || !writes_to(*node, view.base) || !active(view.base)) return;
    Value* target = node->operand(static_cast<std::size_t>(Aliases::written_argument(*node)));
    Value* written = functional(node, target);
    State& state = states_[view.base];
    if (!state.now) state.now = view.base;
    Value* whole = written;
    for (std::size_t k = view.chain.size(); k-- > 0;) {
      Value* parent = through(state, {view.chain.begin(), view.chain.begin() + static_cast<std::ptrdiff_t>(k)}, node,
                              node->graph());
      whole = scatter(*view.chain[k], parent, whole, node);
    }
    state.now = whole;
    ++state.version;
    if (!view.chain.empty()) state.views[view.chain] = {state.version, written};
    gone_.push_back({node, written});
  }

  // The new value of the written tensor.
  Value* functional(Node* node, Value* target) {
    if (node->op() == "aten.copy_.default") return copied(node, target);
    return make(node, *node, functional_name(node->op()), node->args(), target->type, node->result()->name)->result();
  }

  Value* copied(Node* node, Value* target) {
    const Arg& source = node->arg(1);
    Value* from = source.value();
    if (!from || !from->type.is_tensor() || !from->type.has_dtype || !from->type.has_shape || !target->type.has_shape)
      return make(node, *node, "aten.copy.default", {target, source, false}, target->type, "copy")->result();
    if (from->type.dtype != target->type.dtype) {
      Type type = from->type;
      type.dtype = target->type.dtype;
      from = make(node, *node, "aten.to.dtype", {from, target->type.dtype}, type, "copy")->result();
    }
    // What stays in place may be written later: only its present content counts.
    Value* behind = aliases_.view_of(from).base;
    if (aliases_.is_written(behind) && !active(behind))
      from = make(node, *node, "aten.clone.default", {from}, from->type, "copy")->result();
    if (from->type.sizes == target->type.sizes) return from;
    return make(node, *node, "aten.expand.default", {from, sizes_of(target, node)}, target->type, "copy")->result();
  }

  // `parent` with `value` in the place that `step` views.
  Value* scatter(const Node& step, Value* parent, Value* value, Node* position) {
    const auto put = [&](std::string name, std::vector<Arg> args) {
      return make(position, *position, std::move(name), std::move(args), parent->type, "written")->result();
    };
    if (std::string scatters = scatter_name(step); !scatters.empty()) {
      std::vector<Arg> args = step.args();
      args[0] = parent;
      args.insert(args.begin() + 1, value);
      return put(std::move(scatters), std::move(args));
    }
    if (step.op() == "aten.narrow.default") return narrow(step, parent, value, position);
    if (const auto order = match::permutation(step)) {
      Arg::List inverse(order->size());
      for (std::size_t i = 0; i < order->size(); ++i)
        inverse[static_cast<std::size_t>((*order)[i])] = static_cast<std::int64_t>(i);
      return put("aten.permute.default", {value, std::move(inverse)});
    }
    return put("aten.reshape.default", {value, sizes_of(parent, position)});
  }

  Value* narrow(const Node& step, Value* parent, Value* value, Node* position) {
    const Arg &start = step.arg(2), &length = step.arg(3);
    Arg end;
    if (start.integer() && length.integer())
      end = *start.integer() + *length.integer();
    else
      end = make(position, step, "_operator.add", {start, length}, Type::integer(), "end")->result();
    return make(position, *position, "aten.slice_scatter.default", {parent, value, step.arg(1), start, end, 1},
                parent->type, "written")
        ->result();
  }

  struct Gone {
    Node* node;
    Value* written;  // what took its place; nullptr: its operand
  };
  // Values live until all is done: the maps above know them by address.
  void erase(const Gone& gone) {
    Value* result = gone.node->result();
    if (gone.written && gone.written->def() && gone.written->def()->op() == functional_name(gone.node->op()))
      gone.written->name = result->name;
    if (gone.written) result->replace_all_uses_with(gone.written);
    gone.node->graph()->erase(gone.node);
  }

  void add_outputs() {
    ir::Graph& g = *context_.model.graph;
    std::vector<ir::GraphOutput> old(g.outputs().begin(), g.outputs().end());
    std::vector<ir::GraphOutput> mutations;
    for (std::size_t i = 0; i < g.inputs().size(); ++i) {
      ir::GraphInput& input = g.input(i);
      const auto found = states_.find(input.value.get());
      if (found == states_.end() || found->second.now == input.value.get()) continue;
      // A constant that is written is state: a buffer in all but name.
      if (input.kind == ir::InputKind::constant) input.kind = ir::InputKind::buffer;
      const bool user = input.kind == ir::InputKind::user;
      const auto kind = user                                     ? ir::OutputKind::user_input_mutation
                        : input.kind == ir::InputKind::parameter ? ir::OutputKind::parameter_mutation
                                                                 : ir::OutputKind::buffer_mutation;
      mutations.push_back({found->second.now, kind, user ? input.value->name : input.target});
    }
    if (mutations.empty()) return;
    while (!g.outputs().empty()) g.remove_output(g.outputs().size() - 1);
    // Those that the file already had come first, then these, then what the user gets.
    const auto is_mutation = [](const ir::GraphOutput& o) {
      return o.kind != ir::OutputKind::user && o.kind != ir::OutputKind::other;
    };
    for (const auto& o : old)
      if (is_mutation(o)) g.add_output(o.arg, o.kind, o.target);
    for (const auto& o : mutations) g.add_output(o.arg, o.kind, o.target);
    for (const auto& o : old)
      if (!is_mutation(o)) g.add_output(o.arg, o.kind, o.target);
  }

  PassContext& context_;
  Aliases aliases_;
  std::map<Value*, State> states_;
  std::vector<Value*> dropped_;
  std::map<Value*, bool> allowed_;  // by the budget
  std::vector<Gone> gone_;
};

void run(PassContext& context) {
  if (any_mutation(*context.model.graph)) Functionalizer(context).run();
}

}  // namespace
}  // namespace ttc::functionalize_pass

TTC_REGISTER_PASS({"functionalize", "Replace operators that write in place by ones that return new tensors",
                   ttc::functionalize_pass::run});
