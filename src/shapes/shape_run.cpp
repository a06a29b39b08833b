// Follows a model node by node, as the executor would: branches and loops whose course the sample decides, and state
// from call to call. What a node gives is asked of meta_op.
#include "shapes/shape_run.h"

#include <ATen/Functions.h>

#include <algorithm>

#include "ops/literals.h"
#include "shapes/meta_op.h"
#include "shapes/shape_prop.h"
#include "support/error.h"
#include "torch/scalar_ops.h"
#include "torch/torch_bridge.h"

namespace ttc {
namespace {

using ir::Arg;
using ir::Node;
using ir::Value;
using shapes::as_tensor;
using shapes::tensor_arg;
using shapes::to_meta;
using shapes::Unknown;
using shapes::wrap;
using ttrt::RtValue;

constexpr std::int64_t max_trips = 64;  // of a loop that is followed step by step
constexpr int max_state_calls = 6;      // two with values, then values and at last shapes become unknown

// Buffers between two calls of the model, by target; nullopt where nothing is known any more.
using StateValues = std::map<std::string, std::optional<at::Tensor>, std::less<>>;

bool same_tensor(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type() || a.is_meta() != b.is_meta()) return false;
  return a.is_meta() || a.equal(b);
}

class Runner {
 public:
  Runner(const ir::Model& model, ShapeRun& out, const StateValues& state) : model_(model), out_(out), state_(state) {}

  void run(const ShapeSample& sample) {
    const ir::Graph& graph = *model_.graph;
    for (const ir::GraphInput& input : graph.inputs()) {
      const Value* value = input.value.get();
      if (const auto kept = state_.find(input.target); kept != state_.end() && ir::is_weight(value)) {
        if (kept->second)
          set(value, wrap(kept->second->clone()));
        else
          forget(value);
      } else if (const ir::Weight* weight = model_.weight_of(value)) {
        set(value, wrap(weight_tensor(*weight)));
      } else if (const auto number = sample.integers.find(value->name); number != sample.integers.end()) {
        set(value, RtValue(number->second));
      } else if (const auto given = sample.inputs.find(value->name); given != sample.inputs.end()) {
        const auto options =
            at::TensorOptions().device(c10::kMeta).dtype(static_cast<c10::ScalarType>(c10_code(given->second.first)));
        set(value, wrap(at::empty(given->second.second, options)));
      } else if (input.literal) {
        set(value, literal(*input.literal));
      }
    }
    run_graph(graph);
  }

  // What the next call starts from. True where it differs from what this one started from. `widen`: values that still
  // change become unknown, then their shapes.
  bool next_state(StateValues& state, int call) {
    bool changed = false;
    std::map<std::string, const Arg*, std::less<>> outputs;
    for (const ir::GraphOutput& output : model_.graph->outputs())
      if (output.kind == ir::OutputKind::buffer_mutation) outputs[output.target] = &output.arg;
    for (const ir::GraphInput& input : model_.graph->inputs()) {
      if (input.kind != ir::InputKind::buffer || !model_.weight_of(input.value.get())) continue;
      const auto kept = state_.find(input.target);
      if (kept != state_.end() && !kept->second) continue;
      const at::Tensor before =
          kept != state_.end() ? *kept->second : weight_tensor(*model_.weight_of(input.value.get()));
      const auto output = outputs.find(input.target);
      std::optional<at::Tensor> after =
          output != outputs.end() ? tensor_of(*output->second) : tensor_of(Arg(input.value.get()));
      if (after && same_tensor(before, *after)) continue;
      changed = true;
      const bool same_shape = after && after->sizes() == before.sizes() && after->scalar_type() == before.scalar_type();
      if (after && same_shape && call >= 2) after = to_meta(*after);
      if (after && !same_shape && call >= 2) after.reset();
      state[input.target] = after;
    }
    return changed;
  }

 private:
  std::optional<at::Tensor> tensor_of(const Arg& arg) const {
    try {
      const RtValue value = literal(arg);
      if (const at::Tensor* tensor = as_tensor(value)) return *tensor;
    } catch (const Unknown&) {
    }
    return std::nullopt;
  }

  at::Tensor weight_tensor(const ir::Weight& weight) const {
    const auto type = static_cast<c10::ScalarType>(c10_code(weight.dtype));
    if (weight.numel() <= shapes::max_followed && weight.data() && weight.is_contiguous())
      return at::from_blob(const_cast<std::byte*>(weight.data()), weight.sizes, at::TensorOptions().dtype(type))
          .clone();
    return at::empty_strided(weight.sizes, weight.strides, at::TensorOptions().device(c10::kMeta).dtype(type));
  }

  RtValue literal(const Arg& arg) const {
    if (arg.get_if<ir::RegionArg>() != nullptr) throw Unknown("a nested graph");
    return ttrt::literal_value(arg, [&](const Value& value) {
      const auto found = values_.find(&value);
      if (found == values_.end()) throw Unknown("%" + value.name + " is unknown");
      return found->second;
    });
  }

  void set(const Value* value, RtValue known) {
    if (const at::Tensor* tensor = as_tensor(known)) {
      const auto dtype = dtype_from_c10(static_cast<int>(tensor->scalar_type()));
      if (dtype && tensor->layout() == c10::kStrided)
        observe(value,
                {.tensor = true, .dtype = *dtype, .sizes = tensor->sizes().vec(), .strides = tensor->strides().vec()});
    } else if (const auto* number = known.get_if<std::int64_t>()) {
      observe(value, {.sizes = {*number}, .strides = {}});
    }
    values_.insert_or_assign(value, std::move(known));
  }

  // A value may come to be more than once: in another call, another iteration. Only what always holds is kept.
  void observe(const Value* value, Observed seen) {
    if (out_.conflicting.contains(value)) return;
    const auto [known, fresh] = out_.observed.try_emplace(value, seen);
    if (fresh ||
        (known->second.tensor == seen.tensor && known->second.dtype == seen.dtype && known->second.sizes == seen.sizes))
      return;
    out_.observed.erase(known);
    out_.conflicting.insert(value);
  }

  void forget(const Value* value) {
    values_.erase(value);
    out_.observed.erase(value);
    out_.conflicting.insert(value);
  }

  void run_graph(const ir::Graph& graph) {
    for (const auto& node : graph.nodes()) {
      try {
        for (const auto& result : node->results()) values_.erase(result.get());
        run_node(*node);
      } catch (const Unknown& why) {
        for (const auto& result : node->results()) forget(result.get());
        if (std::string_view(why.what()).find("is unknown") == std::string_view::npos)
          out_.failures[node.get()] = why.what();
      } catch (const std::exception& error) {
        for (const auto& result : node->results()) forget(result.get());
        out_.failures[node.get()] = ttrt::first_line(error);
      }
    }
  }

  void run_node(const Node& node) {
    if (node.op() == "prim.if") return run_if(node);
    if (node.op() == "prim.loop") return run_loop(node);
    if (!node.regions().empty()) {
      for (const auto& region : node.regions()) run_graph(*region);
      throw Unknown("the result of " + node.op() + " is decided at run time");
    }
    if (node.op() == "prim.RaiseException") throw Unknown("the model raises an exception");
    std::vector<RtValue> args;
    for (const Arg& arg : node.args()) args.push_back(literal(arg));
    if (node.op().starts_with("_operator.") || node.op().starts_with("torch.") || node.op().starts_with("math."))
      return run_arithmetic(node, args);
    if (node.op() == "prim.dtype")
      return set(node.result(), static_cast<std::int64_t>(tensor_arg(args, 0).scalar_type()));
    if (node.op() == "aten.dim.default") return set(node.result(), tensor_arg(args, 0).dim());
    if (node.op() == "aten.size.default") {
      RtValue::List sizes;
      for (const std::int64_t n : tensor_arg(args, 0).sizes()) sizes.emplace_back(n);
      return set(node.result(), std::move(sizes));
    }
    if (node.op() == "aten.len.Tensor") return set(node.result(), tensor_arg(args, 0).size(0));
    if (const auto shape = shapes::shape_by_rule(node, args)) return set(node.result(), wrap(*shape));
    note_steps(node, args);
    set_results(node, shapes::call_operator(node, args));
  }

  void run_if(const Node& node) {
    const auto decided = [&]() -> std::optional<bool> {
      try {
        const RtValue condition = literal(node.arg(0));
        if (const auto* flag = condition.get_if<bool>()) return *flag;
        if (const auto* number = condition.get_if<std::int64_t>()) return *number != 0;
      } catch (const Unknown&) {
      }
      return std::nullopt;
    }();
    if (!decided) {
      for (const auto& region : node.regions()) run_graph(*region);
      bool all = true;
      for (std::size_t i = 0; i < node.results().size(); ++i) all = merge(node, i) && all;
      if (!all) throw Unknown("which branch of the if runs is decided at run time");
      return;
    }
    const ir::Graph& taken = *node.regions().at(*decided ? 0 : 1);
    run_graph(taken);
    for (std::size_t i = 0; i < node.results().size(); ++i) set(node.result(i), literal(taken.outputs().at(i).arg));
  }

  static bool raises(const ir::Graph& graph) {
    return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                       [](const auto& node) { return node->op() == "prim.RaiseException"; });
  }

  // Result i of an if that is decided at run time: what both branches give, where that is the same. A branch that
  // raises gives nothing.
  bool merge(const Node& node, std::size_t i) {
    std::optional<RtValue> given[2];
    for (std::size_t b = 0; b < 2; ++b) {
      if (raises(*node.regions().at(b))) continue;
      try {
        given[b] = literal(node.regions().at(b)->outputs().at(i).arg);
      } catch (const Unknown&) {
        return false;
      }
    }
    if (!given[0] && !given[1]) return false;
    const RtValue &a = given[0] ? *given[0] : *given[1], &b = given[1] ? *given[1] : *given[0];
    if (!same_value(a, b)) return false;
    const at::Tensor *first = as_tensor(a), *second = as_tensor(b);
    set(node.result(i), first && second && !same_tensor(*first, *second) ? wrap(to_meta(*first)) : a);
    return true;
  }

  // Numbers of equal value, tensors of equal shape.
  static bool same_value(const RtValue& a, const RtValue& b) {
    const at::Tensor *first = as_tensor(a), *second = as_tensor(b);
    if (first && second) return first->sizes() == second->sizes() && first->scalar_type() == second->scalar_type();
    if (first || second || a.v.index() != b.v.index()) return false;
    if (const auto* n = a.get_if<std::int64_t>()) return *n == *b.get_if<std::int64_t>();
    if (const auto* flag = a.get_if<bool>()) return *flag == *b.get_if<bool>();
    if (const auto* x = a.get_if<double>()) return *x == *b.get_if<double>();
    return a.is_none();
  }

  // prim.loop(trips, condition, carried...) { (i, carried...) -> (condition, carried...) }. A short loop of known
  // length is followed; of another one, what it carries has a known shape where the body keeps it.
  void run_loop(const Node& node) {
    const ir::Graph& body = *node.regions().at(0);
    std::optional<std::int64_t> trips;
    std::vector<RtValue> carried;
    try {
      const RtValue limit = literal(node.arg(0)), condition = literal(node.arg(1));
      const auto* go_on = condition.get_if<bool>();
      if (const auto* n = limit.get_if<std::int64_t>(); n && go_on && *go_on && *n <= max_trips) trips = *n;
    } catch (const Unknown&) {
    }
    for (std::size_t i = 2; i < node.args().size(); ++i) carried.push_back(literal(node.arg(i)));
    const auto iterate = [&](std::optional<std::int64_t> i) {
      if (i)
        set(body.inputs().at(0).value.get(), RtValue(*i));
      else
        forget(body.inputs().at(0).value.get());
      for (std::size_t k = 0; k < carried.size(); ++k) set(body.inputs().at(k + 1).value.get(), carried[k]);
      run_graph(body);
      std::vector<RtValue> next;
      for (std::size_t k = 0; k < carried.size(); ++k) next.push_back(literal(body.outputs().at(k + 1).arg));
      return next;
    };
    const auto goes_on = [&] { return body.outputs().at(0).arg.boolean() == true; };
    if (trips && goes_on()) {
      for (std::int64_t i = 0; i < *trips; ++i) carried = iterate(i);
    } else {
      for (RtValue& value : carried)
        if (const at::Tensor* tensor = as_tensor(value)) value = wrap(to_meta(*tensor));
      const std::vector<RtValue> next = iterate(std::nullopt);
      for (std::size_t k = 0; k < carried.size(); ++k)
        if (!same_value(carried[k], next[k])) throw Unknown("a loop changes the shape of what it carries");
    }
    for (std::size_t k = 0; k < carried.size(); ++k) set(node.result(k), carried[k]);
  }

  // ---- LibTorch's operators ----

  // (input, state, weights, has_biases, num_layers, dropout, train, bidirectional, batch_first)
  void note_steps(const Node& node, const std::vector<RtValue>& args) {
    static const std::set<std::string_view> recurrent = {"aten.lstm.input", "aten.gru.input", "aten.rnn_tanh.input",
                                                         "aten.rnn_relu.input"};
    if (!recurrent.contains(node.op()) || args.size() != 9) return;
    const auto* layers = args[4].get_if<std::int64_t>();
    const auto *both = args[7].get_if<bool>(), *batch_first = args[8].get_if<bool>();
    const at::Tensor* input = as_tensor(args[0]);
    if (!layers || !both || !batch_first || !input || input->dim() != 3) return;
    const std::int64_t steps = input->size(*batch_first ? 1 : 0);
    if (*layers > 0 && steps <= max_recurrent_steps / (*layers * (*both ? 2 : 1))) out_.steps[&node] = steps;
  }

  // TorchScript's operators on numbers and lists.
  void run_arithmetic(const Node& node, const std::vector<RtValue>& args) {
    const ttrt::ScalarFunction function = ttrt::find_scalar_op(node.op());
    if (function == nullptr) throw Unknown(node.op() + " has no shape function");
    std::vector<RtValue> results;
    try {
      function(args, results);
    } catch (const Error& error) {
      throw Unknown(error.what());
    }
    set_results(node, std::move(results));
  }

  void set_results(const Node& node, std::vector<RtValue> results) {
    // A list is one result of list type, or a result for each of its elements.
    if (results.size() == 1 && !node.results().empty())
      if (const auto* items = results[0].get_if<RtValue::List>()) {
        if (node.result()->type.kind == ir::TypeKind::list)
          out_.lists[&node].insert(items->size());
        else
          results = RtValue::List(*items);
      }
    if (results.size() != node.results().size()) throw Unknown("it has " + std::to_string(results.size()) + " results");
    for (std::size_t i = 0; i < results.size(); ++i) set(node.result(i), std::move(results[i]));
  }

  const ir::Model& model_;
  ShapeRun& out_;
  const StateValues& state_;
  std::unordered_map<const Value*, RtValue> values_;
};

}  // namespace

ShapeRun run_shapes(const ir::Model& model, const ShapeSample& sample) {
  ShapeRun out;
  StateValues state;
  for (int call = 0; call < max_state_calls; ++call) {
    const StateValues start = state;
    Runner runner(model, out, start);
    runner.run(sample);
    if (!runner.next_state(state, call)) break;
  }
  return out;
}

}  // namespace ttc
