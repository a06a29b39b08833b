// Computes ahead of time what depends on constants only: position tables, masks of static graphs, weights that the
// model builds from other weights, tensors without elements and what is made of such. Views of a weight stay views of
// its memory. What a fold adds to the model is bounded, so that folding never makes a file much bigger; parameters that
// a matrix product, convolution or norm reads are left to it.
#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "aliases.h"
#include "torch/cpu_op.h"
#include "effects.h"
#include "pass/rewriter.h"
#include "support/error.h"

namespace ttc::fold_constants_pass {
namespace {

constexpr std::string_view pass = "fold-constants";
constexpr std::int64_t max_step_bytes = std::int64_t{256} << 20;  // of one intermediate result
constexpr std::int64_t small = 4096;                              // results up to this many bytes are always welcome

using ir::Node;
using ir::Value;
using ttrt::HostTensor;
using ttrt::RtValue;

// Views that give a part of their operand, or the same elements in the same order: they fold without a copy.
bool is_plain_view(const Node& node) {
  static constexpr std::string_view names[] = {
      "aten.slice.Tensor",      "aten.select.int",      "aten.split_with_sizes.default",
      "aten.split.Tensor",      "aten.chunk.default",   "aten.unbind.int",
      "aten.narrow.default",    "aten.reshape.default", "aten.view.default",
      "aten.unsqueeze.default", "aten.squeeze.dim",     "aten.squeeze.dims"};
  return std::find(std::begin(names), std::end(names), node.op()) != std::end(names);
}

// Left to those who recognise them: the order of a weight's dims, and broadcasts, which cost nothing as they are.
bool is_shape_only(const Node& node) {
  static constexpr std::string_view names[] = {"aten.transpose.int",  "aten.permute.default", "aten.t.default",
                                               "aten.expand.default", "aten.to.dtype",        "aten.repeat.default"};
  return std::find(std::begin(names), std::end(names), node.op()) != std::end(names);
}

std::int64_t bytes_of(const ir::Type& type) {
  std::int64_t n = size_of(type.dtype);
  for (const ir::SymExpr& size : type.sizes)
    if (__builtin_mul_overflow(n, size.number(), &n)) return max_step_bytes + 1;
  return n;
}

bool is_sized_tensor(const ir::Type& type) { return type.is_static() && type.has_dtype; }

// There is nothing in it that could depend on anything.
bool is_empty(const Value* value) {
  const ir::Type& type = value->type;
  return is_sized_tensor(type) && std::find(type.sizes.begin(), type.sizes.end(), ir::SymExpr(0)) != type.sizes.end();
}

// LibTorch's Meta kernels may give 0 for sizes that depend on values: only what reads nothing, or is a view, is
// believed.
bool gives_nothing(const Node& node) {
  const auto operands = node.operands();
  const bool views =
      node.schema() && std::ranges::find(node.schema()->returns_alias, true) != node.schema()->returns_alias.end();
  if (!views && std::none_of(operands.begin(), operands.end(), is_empty)) return false;
  return std::all_of(node.results().begin(), node.results().end(), [](const auto& r) { return is_empty(r.get()); });
}

HostTensor empty_tensor(const ir::Type& type) {
  HostTensor out;
  out.dtype = type.dtype;
  for (const std::int64_t size : type.static_sizes()) out.sizes.push_back(size);
  for (const std::int64_t stride : ir::contiguous_strides(type.static_sizes())) out.strides.push_back(stride);
  return out;
}

RtValue to_runtime(const ir::Arg& arg, const std::unordered_map<const Value*, RtValue>& values);

struct Converter {
  const std::unordered_map<const Value*, RtValue>& values;
  RtValue operator()(Value* value) const { return values.at(value); }
  RtValue operator()(const ir::Arg::List& list) const {
    RtValue::List out;
    for (const ir::Arg& item : list) out.push_back(to_runtime(item, values));
    return out;
  }
  RtValue operator()(ir::RegionArg) const { return {}; }
  // Tables are made where the compiler runs, whatever device the model was exported on.
  RtValue operator()(const ir::DeviceArg&) const { return ir::DeviceArg{"cpu", {}}; }
  template <typename T>
  RtValue operator()(const T& literal) const {
    return RtValue(literal);
  }
  RtValue operator()(std::monostate) const { return {}; }
};

RtValue to_runtime(const ir::Arg& arg, const std::unordered_map<const Value*, RtValue>& values) {
  return std::visit(Converter{values}, arg.v);
}

class Folder {
 public:
  explicit Folder(PassContext& context) : context_(context), graph_(*context.model.graph), aliases_(context.model) {
    for (const ir::GraphOutput& output : graph_.outputs()) written_.insert(output.target);
    std::int64_t total = 0;
    for (const auto& [name, weight] : context.model.weights) total += static_cast<std::int64_t>(weight.nbytes());
    budget_ = std::max<std::int64_t>(std::int64_t{1} << 20, total / 8);
  }

  void run() {
    std::vector<Node*> nodes;
    for (const auto& node : graph_.nodes()) {
      if (!is_constant(*node)) continue;
      nodes.push_back(node.get());
      for (const auto& result : node->results()) constant_.insert(result.get());
    }
    // Backwards: users first, so that a result only folded nodes read is never made.
    for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) fold(*it);
  }

 private:
  bool is_constant_operand(const Value* value) const {
    if (constant_.contains(value)) return true;
    const ir::Weight* weight = context_.model.weight_of(value);
    if (!weight && is_empty(value)) return !aliases_.is_written(aliases_.view_of(const_cast<Value*>(value)).base);
    return weight && weight->storage && !weight->storage->absent() && !aliases_.is_written(value) &&
           !written_.contains(ir::weight_input(value)->target);
  }

  bool is_constant(const Node& node) const {
    if (!node.regions().empty() || has_effects(node) || !node.schema() || node.schema()->varargs ||
        !node.op().starts_with("aten."))
      return false;
    for (const auto& result : node.results()) {
      if (!is_sized_tensor(result->type) || bytes_of(result->type) > max_step_bytes) return false;
      if (aliases_.is_written(aliases_.view_of(result.get()).base)) return false;
    }
    if (node.results().empty()) return false;
    if (gives_nothing(node)) return true;
    for (const Value* value : node.operands())
      if (!is_constant_operand(value)) return false;
    return ttrt::CpuOp::find(node.op()) != nullptr;
  }

  void fold(Node* node) {
    const bool used =
        std::any_of(node->results().begin(), node->results().end(), [](const auto& r) { return r->has_uses(); });
    if (!used) return;  // its users were folded; dce drops it
    Rewriter r(context_, pass, node);
    if (const Refusal why = refusal(*node)) {
      if (why->code != ReasonCode::MultiUse) r.refuse(*why);
      return;
    }
    try {
      evaluate(node);
    } catch (const Error& error) {
      r.refuse({ReasonCode::Unsupported, std::string("LibTorch could not compute it: ") + error.what()});
      return;
    }
    const auto to_constants = [&] {
      for (const auto& result : node->results())
        if (result->has_uses()) replace(*result);
    };
    r.commit_edit(node->op(), to_constants, node->result()->name);
  }

  // The parameters and constants that `node` depends on, and whether only plain views lie between.
  struct Sources {
    std::unordered_set<const Value*> weights;
    bool views_only = true;
    bool shape_only = true;
  };
  void collect(const Node& node, Sources& out, std::unordered_set<const Node*>& seen) const {
    if (!seen.insert(&node).second) return;
    out.views_only = out.views_only && is_plain_view(node);
    out.shape_only = out.shape_only && (is_plain_view(node) || is_shape_only(node));
    if (gives_nothing(node)) return;
    for (const Value* value : node.operands()) {
      if (ir::is_weight(value))
        out.weights.insert(value);
      else if (!is_empty(value))
        collect(*value->def(), out, seen);
    }
  }

  // MultiUse stands for "not worth it, and nobody needs to hear of it".
  Refusal refusal(const Node& node) {
    Sources sources;
    std::unordered_set<const Node*> seen;
    collect(node, sources, seen);
    const Reason leave{ReasonCode::MultiUse, "left to its users"};
    bool parameters = false;
    std::int64_t in = 0, out = 0;
    for (const Value* weight : sources.weights) {
      const auto kind = ir::weight_input(weight)->kind;
      parameters = parameters || kind == ir::InputKind::parameter;
      in += bytes_of(weight->type);
    }
    for (const auto& result : node.results())
      if (result->has_uses()) out += bytes_of(result->type);
    if (sources.views_only && !sources.weights.empty()) return {};
    // Patterns ask for the number of a fill; broadcasts are one row, cheaper as they are than as data.
    if (node.op() == "aten.full.default") return leave;
    if (sources.shape_only && !sources.weights.empty() && out > small) return leave;
    if (parameters && out > std::max(small, in / 4) && !sole_readers(sources, seen)) return leave;
    if (out <= small || (parameters && out <= in && sole_readers(sources, seen))) return {};
    if (out > budget_)
      return Reason{ReasonCode::Unsupported,
                    "its " + std::to_string(out) + " bytes would add too much to the model's weights"};
    budget_ -= out;
    return {};
  }

  // Whether the parameters are read by folded nodes only, so that the result takes their place.
  static bool sole_readers(const Sources& sources, const std::unordered_set<const Node*>& seen) {
    for (const Value* weight : sources.weights) {
      if (weight->output_uses() > 0) return false;
      for (const Node* user : weight->users())
        if (!seen.contains(user)) return false;
    }
    return true;
  }

  // ---- evaluation ----

  void evaluate(Node* last) {
    std::vector<Node*> order;
    std::unordered_set<const Node*> seen;
    gather(last, order, seen);
    for (Node* node : order) {
      std::vector<RtValue> args, results;
      if (gives_nothing(*node)) {
        for (const auto& result : node->results()) values_.emplace(result.get(), empty_tensor(result->type));
        continue;
      }
      for (const Value* value : node->operands())
        if (!values_.contains(value)) values_.emplace(value, load(*value));
      for (const ir::Arg& arg : node->args()) args.push_back(to_runtime(arg, values_));
      ttrt::CpuOp::find(node->op())->call(args, results);
      if (results.size() == 1 && node->results().size() != 1)
        if (RtValue::List* items = results[0].get_if<RtValue::List>()) results = RtValue::List(*items);
      if (results.size() != node->results().size())
        throw Error(Exit::check_failed, "", "another number of results than expected");
      for (std::size_t i = 0; i < results.size(); ++i) check_and_keep(*node->result(i), std::move(results[i]));
    }
  }

  // Nodes whose values are missing, operands first; a stack, as chains can be long.
  void gather(Node* last, std::vector<Node*>& order, std::unordered_set<const Node*>& seen) const {
    std::vector<std::pair<Node*, bool>> stack{{last, false}};
    while (!stack.empty()) {
      auto [node, ready] = stack.back();
      stack.pop_back();
      if (ready) {
        order.push_back(node);
        continue;
      }
      if (values_.contains(node->result()) || !seen.insert(node).second) continue;
      stack.emplace_back(node, true);
      if (gives_nothing(*node)) continue;
      for (const Value* value : node->operands())
        if (value->def() && !is_empty(value)) stack.emplace_back(value->def(), false);
    }
  }

  void check_and_keep(const Value& value, RtValue result) {
    const HostTensor* tensor = result.get_if<HostTensor>();
    const bool fits =
        tensor && tensor->dtype == value.type.dtype &&
        ir::Arg::ints({tensor->sizes.begin(), tensor->sizes.end()}) == ir::Arg::ints(value.type.static_sizes());
    if (!fits) throw Error(Exit::check_failed, "", "the result is no " + value.type.str());
    values_.emplace(&value, std::move(result));
  }

  RtValue load(const Value& value) const {
    if (!context_.model.weight_of(&value)) return empty_tensor(value.type);
    const ir::Weight& weight = *context_.model.weight_of(&value);
    const auto [owner, data] = weight.storage->load();
    HostTensor tensor;
    tensor.dtype = weight.dtype;
    tensor.sizes.assign(weight.sizes.begin(), weight.sizes.end());
    tensor.strides.assign(weight.strides.begin(), weight.strides.end());
    tensor.owner = std::const_pointer_cast<void>(owner);
    // Operators that write are never folded.
    tensor.data = const_cast<std::byte*>(data) + weight.storage_offset * size_of(weight.dtype);
    return tensor;
  }

  // ---- results ----

  void replace(Value& value) {
    const HostTensor& tensor = *values_.at(&value).get_if<HostTensor>();
    std::optional<ir::Weight> view = as_view(tensor);
    if (!view) {
      const HostTensor dense = ttrt::contiguous(tensor);
      const auto bytes = static_cast<std::size_t>(dense.nbytes());
      std::vector<std::byte> copy(bytes);
      if (bytes > 0) std::memcpy(copy.data(), dense.data, bytes);
      view = ir::make_weight(dense.dtype, {dense.sizes.begin(), dense.sizes.end()}, std::move(copy));
    }
    Value* constant = context_.model.add_constant(value.name, std::move(*view));
    constant_.insert(constant);
    value.replace_all_uses_with(constant);
    std::swap(value.name, constant->name);
  }

  // The tensor as a view of a weight's memory, where it lies there.
  std::optional<ir::Weight> as_view(const HostTensor& tensor) const {
    for (const auto& [name, weight] : context_.model.weights) {
      const std::byte* begin = weight.storage ? weight.storage->data : nullptr;
      if (!begin || tensor.data < begin || tensor.data >= begin + weight.storage->bytes) continue;
      ir::Weight view;
      view.dtype = tensor.dtype;
      view.sizes.assign(tensor.sizes.begin(), tensor.sizes.end());
      view.strides.assign(tensor.strides.begin(), tensor.strides.end());
      const auto offset = tensor.data - begin;
      if (offset % size_of(tensor.dtype) != 0) return std::nullopt;
      view.storage_offset = offset / size_of(tensor.dtype);
      view.storage = weight.storage;
      if (view.fits_storage()) return view;
    }
    return std::nullopt;
  }

  PassContext& context_;
  ir::Graph& graph_;
  const Aliases aliases_;
  std::unordered_set<std::string> written_;  // targets of mutations
  std::unordered_set<const Value*> constant_;
  std::unordered_map<const Value*, RtValue> values_;
  std::int64_t budget_ = 0;
};

void run(PassContext& context) { Folder(context).run(); }

}  // namespace
}  // namespace ttc::fold_constants_pass

TTC_REGISTER_PASS({"fold-constants", "Compute what depends on constants only", ttc::fold_constants_pass::run});
