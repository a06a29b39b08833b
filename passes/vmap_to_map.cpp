// Exports from before decomposition hold torch.vmap as it was called: a mark where it begins, each batched tensor
// without its dim, the operators of one row, each result with its dim again, a mark where it ends. That is a map over
// rows, which every reader of the graph knows.
#include <set>
#include <unordered_map>

#include "common.h"
#include "ir/copy.h"

namespace ttc::vmap_to_map_pass {
namespace {

constexpr std::string_view pass = "vmap-to-map";

bool is(const ir::Node& node, std::string_view function) {
  constexpr std::string_view scope = "torch._functorch.predispatch.";
  return node.op().starts_with(scope) && std::string_view(node.op()).substr(scope.size()) == function;
}

// The type with the dim `from` in the place of the dim `to`.
ir::Type moved(ir::Type type, std::int64_t from, std::int64_t to) {
  const ir::SymExpr size = type.sizes.at(static_cast<std::size_t>(from));
  type.sizes.erase(type.sizes.begin() + from);
  type.sizes.insert(type.sizes.begin() + to, size);
  type.strides.clear();
  return type;
}

// The literal dim, from the front.
std::optional<std::int64_t> dim_of(const ir::Node& node, std::size_t argument, int rank) {
  if (argument >= node.args().size()) return std::nullopt;
  const auto dim = node.arg(argument).integer();
  if (!dim || *dim < -rank || *dim >= rank) return std::nullopt;
  return *dim < 0 ? *dim + rank : *dim;
}

// One call of vmap in which there is no other.
struct Call {
  ir::Node *begin = nullptr, *end = nullptr;
  std::vector<ir::Node*> taken = {}, body = {}, given = {};  // tensors that lose their dim, the operators, results that get it back
};

class Outliner {
 public:
  Outliner(PassContext& context, const Call& call) : call_(call), r_(context, pass, call.begin) {}

  bool run() {
    for (const auto* list : {&call_.taken, &call_.body})
      for (const ir::Node* node : *list)
        for (const auto& result : node->results()) inside_.insert(result.get());
    if (!take()) return r_.refuse({ReasonCode::Unsupported, "a batched tensor of vmap is made inside it"});
    node_ = r_.insert("higher_order.map_impl", {ir::RegionArg{0}, rows_, ir::Arg::List()});
    region_ = node_->add_region();
    for (const ir::Node* one : call_.taken) mapped_[one->result()] = input_of(*one->result());
    capture();
    ir::copy_nodes(call_.body, *region_, mapped_);
    if (!give()) return r_.refuse({ReasonCode::Unsupported, "a result of vmap has its dim in no place that is known"});
    return r_.commit_edit("vmap", [&] { replace(); });
  }

 private:
  bool take() {
    for (const ir::Node* one : call_.taken) {
      ir::Value* x = one->operand(0);
      const auto dim = x ? dim_of(*one, 1, x->type.rank()) : std::nullopt;
      if (!dim || inside_.contains(x)) return false;
      rows_.emplace_back(*dim == 0 ? x : r_.emit("aten.movedim.int", {x, *dim, 0}, moved(x->type, *dim, 0)));
    }
    return !rows_.empty();
  }

  ir::Value* input_of(const ir::Value& value) {
    return region_->add_input(value.type, region_->unique_name(value.name));
  }

  // What the operators read from outside becomes an operand.
  void capture() {
    ir::Arg::List read;
    const auto add = [&](ir::Value* value) {
      if (inside_.contains(value) || mapped_.contains(value)) return;
      mapped_[value] = input_of(*value);
      read.emplace_back(value);
    };
    for (const ir::Node* one : call_.body)
      for (ir::Value* value : one->operands()) add(value);
    for (const ir::Node* one : call_.given)
      if (one->operand(0)) add(one->operand(0));
    node_->set_arg(2, std::move(read));
  }

  bool give() {
    for (ir::Node* one : call_.given) {
      const ir::Type& type = one->result()->type;
      const auto dim = one->operand(0) ? dim_of(*one, 3, type.rank()) : std::nullopt;
      if (!dim) return false;
      region_->add_output(mapped_.at(one->operand(0)));
      ir::Value* all = node_->add_result(moved(type, *dim, 0), "map");
      results_.push_back(*dim == 0 ? all : r_.emit("aten.movedim.int", {all, 0, *dim}, moved(type, *dim, *dim)));
    }
    return !results_.empty();
  }

  void replace() {
    for (std::size_t i = 0; i < results_.size(); ++i) {
      call_.given[i]->result()->replace_all_uses_with(results_[i]);
      call_.given[i]->graph()->erase(call_.given[i]);
    }
    for (const auto* list : {&call_.body, &call_.taken})
      for (auto node = list->rbegin(); node != list->rend(); ++node) (*node)->graph()->erase(*node);
    for (ir::Node* mark : {call_.end, call_.begin}) mark->graph()->erase(mark);
  }

  const Call& call_;
  Rewriter r_;
  ir::Node* node_ = nullptr;
  ir::Graph* region_ = nullptr;
  std::set<const ir::Value*> inside_;
  ir::Arg::List rows_;
  std::unordered_map<const ir::Value*, ir::Arg> mapped_;
  std::vector<ir::Value*> results_;
};

// Innermost calls first: what they become is a node of the one around it.
std::optional<Call> innermost(const ir::Graph& graph) {
  std::optional<Call> call;
  for (const auto& node : graph.nodes()) {
    if (is(*node, "_vmap_increment_nesting")) call = Call{.begin = node.get()};
    if (!call || call->begin == node.get()) continue;
    if (is(*node, "_vmap_decrement_nesting")) {
      call->end = node.get();
      return call;
    }
    (is(*node, "_add_batch_dim")      ? call->taken
     : is(*node, "_remove_batch_dim") ? call->given
                                      : call->body)
        .push_back(node.get());
  }
  return std::nullopt;
}

void run(PassContext& context) {
  ir::Graph& graph = *context.model.graph;
  graph.for_each([&](ir::Node* node) {
    if (!is(*node, "lazy_load_decompositions")) return;
    graph.erase(node);  // what Python has to do first
    context.changed = true;
  });
  while (const auto call = innermost(graph))
    if (!Outliner(context, *call).run()) return;
}

}  // namespace
}  // namespace ttc::vmap_to_map_pass

TTC_REGISTER_PASS({"vmap-to-map", "Write torch.vmap as a map over rows", ttc::vmap_to_map_pass::run});
