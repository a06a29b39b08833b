// Checks a model against what graph.h and model.h promise. Every message names the node and where it comes from.
#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "ir/model.h"

namespace ttc::ir {
namespace {

constexpr std::size_t max_messages = 100;

bool is_kind(const Arg& arg, std::initializer_list<TypeKind> kinds) {
  const Value* value = arg.value();
  if (value == nullptr) return false;
  // What TorchScript calls Any, and values whose type nobody gave, may stand for anything.
  if (value->type.kind == TypeKind::object || value->type.kind == TypeKind::none) return true;
  return std::find(kinds.begin(), kinds.end(), value->type.kind) != kinds.end();
}

// Whether `arg` may be passed where a schema says `type`. Types that only TorchScript knows accept anything.
bool accepts(std::string_view type, const Arg& arg) {
  if (type.ends_with("?")) return arg.is_none() || accepts(type.substr(0, type.size() - 1), arg);
  if (type.ends_with("[]")) {
    const std::string_view element = type.substr(0, type.size() - 2);
    if (const Arg::List* items = arg.list())
      return std::all_of(items->begin(), items->end(), [&](const Arg& item) { return accepts(element, item); });
    return is_kind(arg, {TypeKind::list, TypeKind::tuple});
  }
  const bool number =
      arg.number().has_value() || is_kind(arg, {TypeKind::integer, TypeKind::floating, TypeKind::boolean});
  const bool complex = arg.get_if<std::complex<double>>() != nullptr;
  if (type == "Tensor") return number || complex || is_kind(arg, {TypeKind::tensor});  // ATen wraps numbers
  if (type == "int" || type == "SymInt")
    return arg.integer() || is_kind(arg, {TypeKind::integer, TypeKind::boolean, TypeKind::tensor});
  if (type == "float" || type == "SymFloat") return number;
  if (type == "Scalar" || type == "number" || type == "complex")
    return number || complex || is_kind(arg, {TypeKind::tensor});
  if (type == "bool" || type == "SymBool") return arg.boolean() || is_kind(arg, {TypeKind::boolean, TypeKind::integer});
  if (type == "str") return arg.get_if<std::string>() || is_kind(arg, {TypeKind::string});
  if (type == "ScalarType") return arg.get_if<DType>() || is_kind(arg, {TypeKind::integer});
  if (type == "MemoryFormat") return arg.get_if<MemoryFormatArg>() || is_kind(arg, {TypeKind::integer});
  if (type == "Layout") return arg.get_if<LayoutArg>() || is_kind(arg, {TypeKind::integer});
  if (type == "Device") return arg.get_if<DeviceArg>() || is_kind(arg, {TypeKind::device});
  return true;
}

bool result_fits(std::string_view type, const Type& is) {
  if (is.kind == TypeKind::none || is.kind == TypeKind::object) return true;
  if (type.ends_with("[]")) return is.kind == TypeKind::list || is.kind == TypeKind::tuple;
  if (type == "Tensor" || type == "Tensor?") return is.kind == TypeKind::tensor;
  if (type == "int" || type == "SymInt") return is.kind == TypeKind::integer;
  return true;
}

class Verifier {
 public:
  explicit Verifier(const Model& model) : model_(model) {}

  std::vector<std::string> run() {
    graph(*model_.graph, nullptr);
    use_counts();
    weights();
    mutation_targets();
    return std::move(messages_);
  }

 private:
  void report(std::string message) {
    if (messages_.size() < max_messages) messages_.push_back(std::move(message));
  }
  void report(const Node& node, const std::string& what) {
    std::string where = node.op();
    if (!node.results().empty()) where = "%" + node.result()->name + " = " + where;
    const Provenance& p = *node.provenance;
    std::string origin = p.module_path;
    if (!p.source.empty()) origin += (origin.empty() ? "" : ", ") + p.source;
    report(where + ": " + what + (origin.empty() ? "" : " (" + origin + ")"));
  }

  void define(const Value& value, const Graph& graph) {
    if (value.name.empty())
      report("a value of graph '" + graph.name + "' has no name");
    else if (!names_.insert(value.name).second)
      report("two values are named %" + value.name);
    if (value.graph() != &graph) report("%" + value.name + " claims to be of another graph");
    visible_.insert(&value);
    all_.push_back(&value);
  }

  void use(const Arg& arg) {
    arg.for_each_value([&](const Value* value) { ++uses_[value]; });
  }
  // The name of a value that is used but not defined here; empty where all is well.
  std::string undefined(const Arg& arg) const {
    std::string name;
    arg.for_each_value([&](const Value* value) {
      if (!visible_.contains(value))
        name = all_of_model(value) ? "%" + value->name : "a value of no graph of this model";
    });
    return name;
  }
  // Only values known to live may be asked for their name: those some graph of the model owns.
  bool all_of_model(const Value* value) const {
    if (owned_.empty()) collect(*model_.graph);
    return owned_.contains(value);
  }
  void collect(const Graph& g) const {
    for (const GraphInput& input : g.inputs()) owned_.insert(input.value.get());
    for (const auto& node : g.nodes()) {
      for (const auto& result : node->results()) owned_.insert(result.get());
      for (const auto& region : node->regions()) collect(*region);
    }
  }

  void graph(const Graph& g, const Node* parent) {
    if (g.parent() != parent) report("graph '" + g.name + "' claims another parent node");
    std::vector<const Value*> mine;
    for (std::size_t i = 0; i < g.inputs().size(); ++i) {
      const GraphInput& input = g.inputs()[i];
      define(*input.value, g);
      mine.push_back(input.value.get());
      if (input.value->index() != static_cast<int>(i) || input.value->def() != nullptr)
        report("input %" + input.value->name + " has a wrong index");
      if (parent != nullptr && is_weight(input.value.get()))
        report("%" + input.value->name + " is a weight, but an input of a region");
    }
    for (const auto& n : g.nodes()) {
      node(*n, g);
      for (const auto& result : n->results()) {
        define(*result, g);
        mine.push_back(result.get());
      }
    }
    for (const GraphOutput& output : g.outputs()) {
      if (const std::string name = undefined(output.arg); !name.empty())
        report("graph '" + g.name + "' returns " + name + ", which is not defined there");
      output.arg.for_each_value([&](const Value* value) { ++output_uses_[value]; });
    }
    for (const Value* value : mine) visible_.erase(value);
  }

  void node(const Node& n, const Graph& g) {
    if (n.graph() != &g) report(n, "claims to be of another graph");
    for (const Arg& a : n.args()) {
      if (const std::string name = undefined(a); !name.empty()) report(n, "uses " + name + " before it is defined");
      use(a);
      regions_of(n, a);
    }
    for (std::size_t i = 0; i < n.results().size(); ++i) {
      const Value& result = *n.result(i);
      if (result.def() != &n || result.index() != static_cast<int>(i))
        report(n, "result %" + result.name + " claims another node");
      if (result.type.kind == TypeKind::none && !result.users().empty())
        report(n, "result %" + result.name + " is used but has no type");
    }
    if (n.schema() != nullptr && !n.schema()->varargs) schema(n, *n.schema());
    if (!n.arg_names.empty() && n.arg_names.size() != n.args().size())
      report(n, "names " + std::to_string(n.arg_names.size()) + " of its arguments");
    for (const auto& region : n.regions()) graph(*region, &n);
  }

  void regions_of(const Node& n, const Arg& a) {
    if (const auto* region = a.get_if<RegionArg>())
      if (region->index < 0 || static_cast<std::size_t>(region->index) >= n.regions().size())
        report(n, "names region " + std::to_string(region->index) + " of " + std::to_string(n.regions().size()));
    if (const Arg::List* items = a.list())
      for (const Arg& item : *items) regions_of(n, item);
  }

  void schema(const Node& n, const OpSchema& s) {
    if (n.args().size() != s.args.size()) {
      report(n, "has " + std::to_string(n.args().size()) + " arguments, its schema " + std::to_string(s.args.size()));
    } else {
      for (std::size_t i = 0; i < s.args.size(); ++i)
        if (!accepts(s.args[i].type, n.arg(i))) report(n, "argument '" + s.args[i].name + "' is no " + s.args[i].type);
    }
    // A list may come as one value or as its elements (split, unbind, chunk, a slice of sizes).
    const std::string element =
        s.returns.size() == 1 && s.returns[0].ends_with("[]") ? s.returns[0].substr(0, s.returns[0].size() - 2) : "";
    const bool unpacked = !element.empty() && std::all_of(n.results().begin(), n.results().end(),
                                                          [&](const auto& r) { return result_fits(element, r->type); });
    if (unpacked) return;
    if (n.results().size() != s.returns.size()) {
      report(n,
             "has " + std::to_string(n.results().size()) + " results, its schema " + std::to_string(s.returns.size()));
      return;
    }
    for (std::size_t i = 0; i < s.returns.size(); ++i)
      if (!result_fits(s.returns[i], n.result(i)->type))
        report(n,
               "result %" + n.result(i)->name + " is " + n.result(i)->type.str() + ", its schema says " + s.returns[i]);
  }

  void use_counts() {
    for (const Value* value : all_) {
      if (static_cast<int>(value->users().size()) != uses_[value])
        report("use list of %" + value->name + " has " + std::to_string(value->users().size()) + " entries for " +
               std::to_string(uses_[value]) + " uses");
      if (value->output_uses() != output_uses_[value])
        report("%" + value->name + " is counted in " + std::to_string(value->output_uses()) + " outputs, not " +
               std::to_string(output_uses_[value]));
    }
  }

  void weights() {
    std::set<std::string_view> targets;
    for (const GraphInput& input : model_.graph->inputs()) {
      const Value* value = input.value.get();
      if (!is_weight(value)) continue;
      const std::string label = "weight $" + value->name + " ('" + input.target + "')";
      if (!targets.insert(input.target).second) report(label + ": its target is another weight's too");
      const Weight* weight = model_.weight_of(value);
      if (weight == nullptr) {
        report(label + " is missing in the model");
      } else if (!value->type.has_shape && value->type.is_tensor() && input.kind == InputKind::buffer) {
        continue;  // state whose shape changes from call to call
      } else if (!(value->type == Type::tensor(weight->dtype, {weight->sizes.begin(), weight->sizes.end()}))) {
        report(label + " has another type than its input, which is " + value->type.str());
      } else if (weight->storage && !weight->fits_storage()) {
        report(label + " lies outside of its storage");
      }
    }
  }

  void mutation_targets() {
    std::set<std::string_view> user, weight;
    for (const GraphInput& input : model_.graph->inputs()) {
      if (is_weight(input.value.get()))
        weight.insert(input.target);
      else
        user.insert(input.value->name);
    }
    for (const GraphOutput& output : model_.graph->outputs()) {
      const bool of_weight =
          output.kind == OutputKind::buffer_mutation || output.kind == OutputKind::parameter_mutation;
      if (of_weight && !weight.contains(output.target))
        report("an output mutates '" + output.target + "', which is no weight");
      if (output.kind == OutputKind::user_input_mutation && !user.contains(output.target))
        report("an output mutates '" + output.target + "', which is no input");
    }
  }

  const Model& model_;
  std::vector<std::string> messages_;
  std::set<std::string> names_;
  std::unordered_set<const Value*> visible_;
  std::vector<const Value*> all_;
  std::unordered_map<const Value*, int> uses_, output_uses_;
  mutable std::unordered_set<const Value*> owned_;
};

}  // namespace

std::vector<std::string> verify(const Model& model) { return Verifier(model).run(); }

}  // namespace ttc::ir
