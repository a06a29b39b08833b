// The table of decompositions, in order, and the one loop that applies it.
#include "decompose.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "aliases.h"
#include "written_memory.h"

namespace ttc {

bool known_tensors(const ir::Node& node) {
  const auto known = [](const ir::Type& type) { return !type.is_tensor() || (type.has_shape && type.has_dtype); };
  const auto operands = node.operands();
  return !operands.empty() && !node.results().empty() &&
         std::all_of(operands.begin(), operands.end(), [&](const ir::Value* x) { return known(x->type); }) &&
         std::all_of(node.results().begin(), node.results().end(),
                     [&](const auto& x) { return x->type.is_tensor() && known(x->type); });
}

bool same_floats(const ir::Node& node) {
  if (!known_tensors(node)) return false;
  const DType dtype = node.result()->type.dtype;
  if (!is_floating(dtype)) return false;
  const auto operands = node.operands();
  return std::all_of(operands.begin(), operands.end(),
                     [&](const ir::Value* x) { return !x->type.is_tensor() || x->type.dtype == dtype; }) &&
         std::all_of(node.results().begin(), node.results().end(),
                     [&](const auto& x) { return x->type.dtype == dtype; });
}

bool is_empty(const ir::Value* x) {
  return x->type.is_tensor() && x->type.has_shape &&
         std::any_of(x->type.sizes.begin(), x->type.sizes.end(),
                     [](const ir::SymExpr& n) { return n == ir::SymExpr(0); });
}

bool has_elements(const ir::Node& node) {
  const auto operands = node.operands();
  return std::none_of(operands.begin(), operands.end(), is_empty) &&
         std::none_of(node.results().begin(), node.results().end(), [](const auto& x) { return is_empty(x.get()); });
}

bool of_reals(const ir::Node& node) {
  const auto operands = node.operands();
  return std::none_of(operands.begin(), operands.end(),
                      [](const ir::Value* x) { return x->type.is_tensor() && is_complex(x->type.dtype); });
}

std::optional<int> dim_of(const ir::Node& node, std::string_view name, int rank) {
  const ir::Arg* arg = node.arg(name);
  const auto dim = arg ? arg->integer() : std::nullopt;
  if (!dim || *dim < -rank || *dim >= rank) return std::nullopt;
  return static_cast<int>(*dim < 0 ? *dim + rank : *dim);
}

double number_of(const ir::Node& node, std::string_view name, double absent) {
  const ir::Arg* arg = node.arg(name);
  return arg ? arg->number().value_or(absent) : absent;
}

bool flag_of(const ir::Node& node, std::string_view name) {
  const ir::Arg* arg = node.arg(name);
  return arg && arg->boolean() == true;
}

std::optional<std::vector<std::int64_t>> dims_of(const ir::Arg& arg) {
  const auto one = arg.integer();
  return one ? std::optional(std::vector<std::int64_t>{*one}) : arg.integers();
}

bool declare_operators(std::initializer_list<std::string_view> schemas, std::string_view library) {
  for (const std::string_view schema : schemas)
    ir::register_schema(ir::parse_schema(std::string(library) + "::" + std::string(schema)));
  return true;
}

namespace {

constexpr std::string_view pass = "decompose";

const std::vector<RulePart>& table() {
  static const std::vector<RulePart> parts{quantized_rules(), prims_rules(),    check_rules(),     transformer_rules(),
                                           rnn_rules(),       spectrum_rules(), transform_rules(), complex_rules(),
                                           layout_rules(),    function_rules(), selection_rules(), special_rules(),
                                           algebra_rules(),   move_rules(),     product_rules()};
  return parts;
}

// The casts that PyTorch makes of operands of other dtypes.
void promote(PassContext& context, ir::Node* node) {
  if (!known_tensors(*node) || !is_floating(node->result()->type.dtype)) return;
  const DType dtype = node->result()->type.dtype;
  for (std::size_t i = 0; i < node->args().size(); ++i) {
    ir::Value* x = node->arg(i).value();
    if (x == nullptr || !x->type.is_tensor() || x->type.dtype == dtype || is_complex(x->type.dtype)) continue;
    Rewriter r(context, pass, node);
    ir::Value* made = r.cast(x, dtype);
    r.commit_edit("promoted", [&] { node->set_arg(i, made); }, made->name);
  }
}

// Whether what the schema calls a tensor is one: rules read it as such. A number in its place is LibTorch's to refuse, but
// for arithmetic, where PyTorch has them too (Decomposition::numbers_too).
bool tensors_given(const ir::Node& node) {
  if (node.schema() == nullptr) return true;
  const auto& args = node.schema()->args;
  const auto is_tensor = [](const ir::Arg& arg) { return arg.value() != nullptr || arg.is_none(); };
  for (std::size_t i = 0; i < std::min(args.size(), node.args().size()); ++i) {
    if (!args[i].type.starts_with("Tensor")) continue;
    const ir::Arg::List* items = node.arg(i).list();
    if (items ? !std::ranges::all_of(*items, is_tensor) : !is_tensor(node.arg(i))) return false;
  }
  return true;
}

// True where the node was written out.
bool apply(PassContext& context, const RulePart& part, const Decomposition& rule, ir::Node* node) {
  // Rules divide by sizes, take the largest of elements and reshape: there has to be something to do that with.
  if (!part.empty_too && !has_elements(*node)) return false;
  if (!rule.numbers_too && !tensors_given(*node)) return false;
  if (rule.guard == same_floats && !same_floats(*node)) promote(context, node);
  if ((part.guard && !part.guard(*node)) || (rule.guard && !rule.guard(*node))) return false;
  Rewriter r(context, pass, node);
  const Values made = rule.write(r, node);
  if (r.committed() || made.empty()) return r.committed();
  for (std::size_t i = 0; i < node->results().size(); ++i) {
    ir::Value* value = i < made.size() ? made[i] : nullptr;
    if (value ? part.exact_types && !r.fits(value, node->result(i)) : node->result(i)->has_uses()) return false;
  }
  return r.commit(made);
}

// Views of memory that the graph writes stay views: what a rule makes of them may be a copy.
class WrittenViews {
 public:
  explicit WrittenViews(const ir::Graph& graph) : graph_(graph) {}
  bool contains(const ir::Node& node) {
    if (view_kind(node) == ViewKind::none) return false;
    if (!written_) written_.emplace(graph_);
    return written_->touches(node);
  }
  void changed() {
    if (written_ && !written_->empty()) written_.reset();
  }

 private:
  const ir::Graph& graph_;
  std::optional<WrittenMemory> written_;
};

void run(PassContext& context) {
  WrittenViews written(*context.model.graph);
  for (const RulePart& part : table()) {
    if (!context.wants(part.name)) continue;
    std::unordered_map<std::string_view, std::vector<const Decomposition*>> rules;
    for (const Decomposition& rule : part.rules)
      for (const std::string_view op : rule.ops) rules[op].push_back(&rule);
    for_each_node(*context.model.graph, [&](ir::Node* node) {
      const auto found = rules.find(node->op());
      if (found == rules.end() || written.contains(*node)) return;
      for (const Decomposition* rule : found->second)
        if (apply(context, part, *rule, node)) return written.changed();
    });
  }
}

}  // namespace

bool has_rule(std::string_view op) {
  static const auto ops = [] {
    std::set<std::string_view> out;
    for (const RulePart& part : table())
      for (const Decomposition& rule : part.rules) out.insert(rule.ops.begin(), rule.ops.end());
    return out;
  }();
  return ops.contains(op);
}

}  // namespace ttc

TTC_REGISTER_PASS({"decompose",
                   "Write operators out as those they are made of, by one table of rules",
                   ttc::run,
                   {"quantized", "prims", "checks", "transformer", "rnn", "spectra", "transforms", "complex", "layout",
                    "functions", "selections", "special", "algebra", "moves", "products"}});
