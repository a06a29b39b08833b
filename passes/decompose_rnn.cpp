// LSTM, GRU and plain recurrent networks over a sequence of known length, and their cells, written out as linear layers
// and element-wise functions. What the inputs contribute is one matrix product for all steps; a step then has one of
// its own, with the state. Gates are in PyTorch's order: i f g o of an LSTM, r z n of a GRU (torch.nn documentation).
#include "decompose.h"
#include "shapes/shape_prop.h"

namespace ttc {
namespace {

constexpr std::string_view pass = "decompose-rnn";
constexpr std::int64_t max_steps = max_recurrent_steps;

using ir::Arg;
using ir::Node;
using ir::SymExpr;
using ir::Type;
using ir::Value;

enum class Kind { lstm, gru, tanh, relu };

std::int64_t gates(Kind kind) { return kind == Kind::lstm ? 4 : kind == Kind::gru ? 3 : 1; }

// Parameters of one layer and direction.
struct Weights {
  Value *input = nullptr, *state = nullptr;
  Arg input_bias, state_bias;
};

struct State {
  Value *h = nullptr, *c = nullptr;
};

bool typed(const Value* v) { return v != nullptr && v->type.is_tensor() && v->type.has_shape && v->type.has_dtype; }

class Cell {
 public:
  Cell(Decomposer& make, Kind kind) : make_(make), kind_(kind) {}

  // `given` = x W_ih^T + b_ih of this step.
  State step(Value* given, const State& state, const Weights& weights) {
    Value* recurrent = make_.linear(state.h, weights.state, weights.state_bias);
    if (kind_ == Kind::gru) return gru(given, recurrent, state);
    Value* sum = make_.emit_like("aten.add.Tensor", {given, recurrent, 1}, given);
    if (kind_ == Kind::tanh) return {function("tanh", sum), nullptr};
    if (kind_ == Kind::relu) return {function("relu", sum), nullptr};
    const auto gate = make_.split(sum, sum->type.rank() - 1, 4);
    Value* c =
        add(mul(function("sigmoid", gate[1]), state.c), mul(function("sigmoid", gate[0]), function("tanh", gate[2])));
    return {mul(function("sigmoid", gate[3]), function("tanh", c)), c};
  }

 private:
  State gru(Value* given, Value* recurrent, const State& state) {
    const auto x = make_.split(given, given->type.rank() - 1, 3),
               h = make_.split(recurrent, recurrent->type.rank() - 1, 3);
    Value *r = function("sigmoid", add(x[0], h[0])), *z = function("sigmoid", add(x[1], h[1]));
    Value* n = function("tanh", add(x[2], mul(r, h[2])));
    // (1 - z) n + z h = n + z (h - n)
    return {add(n, mul(z, make_.emit_like("aten.sub.Tensor", {state.h, n, 1}, n))), nullptr};
  }
  Value* function(const std::string& name, Value* x) { return make_.emit_like("aten." + name + ".default", {x}, x); }
  Value* add(Value* a, Value* b) { return make_.emit_like("aten.add.Tensor", {a, b, 1}, a); }
  Value* mul(Value* a, Value* b) { return make_.emit_like("aten.mul.Tensor", {a, b}, a); }

  Decomposer& make_;
  Kind kind_;
};

std::optional<Kind> sequence_kind(const std::string& op) {
  if (op == "aten.lstm.input") return Kind::lstm;
  if (op == "aten.gru.input") return Kind::gru;
  if (op == "aten.rnn_tanh.input") return Kind::tanh;
  return op == "aten.rnn_relu.input" ? std::optional(Kind::relu) : std::nullopt;
}

std::optional<Kind> cell_kind(const std::string& op) {
  if (op == "aten.lstm_cell.default") return Kind::lstm;
  if (op == "aten.gru_cell.default") return Kind::gru;
  if (op == "aten.rnn_tanh_cell.default") return Kind::tanh;
  return op == "aten.rnn_relu_cell.default" ? std::optional(Kind::relu) : std::nullopt;
}

bool reject(PassContext& context, const Node& node, ReasonCode code, std::string detail) {
  context.refuse(pass, node, {code, std::move(detail)});
  return false;
}

// ---- one step -----------------------------------------------------------------------------------------------------

bool cell(PassContext& context, Node* node, Kind kind) {
  State state;
  if (const Arg::List* items = node->arg(1).list(); kind == Kind::lstm && items && items->size() == 2)
    state = {(*items)[0].value(), (*items)[1].value()};
  else
    state = {node->operand(1), nullptr};
  const Weights weights{
      .input = node->operand(2), .state = node->operand(3), .input_bias = node->arg(4), .state_bias = node->arg(5)};
  if (!typed(node->operand(0)) || !typed(state.h) || !typed(weights.input) || !typed(weights.state) ||
      (kind == Kind::lstm && !typed(state.c)))
    return reject(context, *node, ReasonCode::DynamicShape, "the shapes of its operands are not known");
  if (!weights.state->type.is_static())
    return reject(context, *node, ReasonCode::DynamicShape, "the number of its gates is not known");
  if (!context.allow_rewrite()) return false;
  Decomposer make(node);
  const State next =
      Cell(make, kind).step(make.linear(node->operand(0), weights.input, weights.input_bias), state, weights);
  finish_decomposition(context, pass, node, {next.h, next.c});
  return true;
}

// ---- sequences ----------------------------------------------------------------------------------------------------

struct Network {
  Kind kind = Kind::lstm;
  Value* x = nullptr;
  State start;                   // [layers * directions, batch, hidden], or [layers * directions, hidden]
  std::vector<Weights> weights;  // layer 0 forwards, layer 0 backwards, layer 1 ...
  std::int64_t layers = 0, directions = 1, steps = 0;
  bool batch_first = false;
};

std::variant<Network, Reason> network_of(const Node& node, Kind kind) {
  Network n{.kind = kind, .x = node.operand(0), .start = {}, .weights = {}};
  if (kind == Kind::lstm) {
    const Arg::List* state = node.arg(1).list();
    if (!state || state->size() != 2) return Reason{ReasonCode::Unsupported, "its state is not two tensors"};
    n.start = {(*state)[0].value(), (*state)[1].value()};
  } else {
    n.start.h = node.operand(1);
  }
  const auto biases = node.arg(3).boolean(), train = node.arg(6).boolean(), both = node.arg(7).boolean(),
             batch_first = node.arg(8).boolean();
  const auto layers = node.arg(4).integer();
  const auto dropout = node.arg(5).number();
  const Arg::List* params = node.arg(2).list();
  if (!biases || !layers || !train || !both || !batch_first || !params)
    return Reason{ReasonCode::Unsupported, "its settings are not literals"};
  if (*train && dropout.value_or(1) > 0)
    return Reason{ReasonCode::Unsupported, "dropout between layers while training"};
  n.layers = *layers, n.directions = *both ? 2 : 1, n.batch_first = *batch_first;
  const auto each = static_cast<std::size_t>(*biases ? 4 : 2);
  if (n.layers < 1 || n.layers > max_steps ||
      params->size() != each * static_cast<std::size_t>(n.layers * n.directions))
    return Reason{ReasonCode::Unsupported, "a projection of the hidden state (proj_size)"};
  for (std::size_t i = 0; i < params->size(); i += each) {
    Weights w{.input = (*params)[i].value(), .state = (*params)[i + 1].value(), .input_bias = {}, .state_bias = {}};
    if (*biases) w.input_bias = (*params)[i + 2], w.state_bias = (*params)[i + 3];
    if (!typed(w.input) || !typed(w.state) || !w.input->type.is_static() || !w.state->type.is_static())
      return Reason{ReasonCode::DynamicShape, "the shapes of its weights are not known"};
    if (w.state->type.dim(0) != gates(kind) * w.state->type.dim(1).value_or(0))
      return Reason{ReasonCode::Unsupported, "a projection of the hidden state (proj_size)"};
    n.weights.push_back(w);
  }
  if (!typed(n.x) || !typed(n.start.h) || (kind == Kind::lstm && !typed(n.start.c)))
    return Reason{ReasonCode::DynamicShape, "the shapes of its operands are not known"};
  if (n.x->type.rank() != 3 || n.start.h->type.rank() != 3)
    return Reason{ReasonCode::RankUnsupported, "a sequence without a batch dim"};
  const auto steps = n.x->type.dim(n.batch_first ? 1 : 0);
  if (!steps) return Reason{ReasonCode::DynamicShape, "the number of time steps is known at run time only"};
  n.steps = *steps;
  if (n.steps < 1 || n.steps > max_steps / (n.layers * n.directions))
    return Reason{ReasonCode::Unsupported,
                  std::to_string(n.steps) + " time steps of " + std::to_string(n.layers * n.directions) +
                      " layers and directions; up to " + std::to_string(max_steps) + " in all are written out"};
  return n;
}

class Sequence {
 public:
  Sequence(Node* node, Network network) : make_(node), n_(std::move(network)) {}

  std::vector<Value*> run() {
    Value* x = n_.batch_first ? make_.transpose(n_.x, 0, 1) : n_.x;
    for (std::int64_t layer = 0; layer < n_.layers; ++layer) {
      std::vector<Value*> outputs;
      for (std::int64_t d = 0; d < n_.directions; ++d)
        outputs.push_back(direction(x, layer * n_.directions + d, d == 1));
      x = outputs.size() == 1 ? outputs[0] : join(outputs, 2);
    }
    Value* h = join(last_h_, 0);
    Value* c = n_.kind == Kind::lstm ? join(last_c_, 0) : nullptr;
    return {n_.batch_first ? make_.transpose(x, 0, 1) : x, h, c};
  }

 private:
  // [steps, batch, hidden] of one layer and direction.
  Value* direction(Value* x, std::int64_t index, bool backwards) {
    const Weights& w = n_.weights[static_cast<std::size_t>(index)];
    Value* given = make_.linear(x, w.input, w.input_bias);
    State state{part(n_.start.h, index), n_.start.c ? part(n_.start.c, index) : nullptr};
    std::vector<Value*> outputs(static_cast<std::size_t>(n_.steps));
    Cell cell(make_, n_.kind);
    for (std::int64_t i = 0; i < n_.steps; ++i) {
      const std::int64_t t = backwards ? n_.steps - 1 - i : i;
      state = cell.step(part(given, t), state, w);
      outputs[static_cast<std::size_t>(t)] = state.h;
    }
    last_h_.push_back(state.h);
    if (state.c) last_c_.push_back(state.c);
    return join(outputs, 0);
  }

  // x[i : i + 1]: the leading dim stays, so that steps are put together without another view.
  Value* part(Value* x, std::int64_t i) { return x->type.dim(0) == 1 ? x : make_.slice(x, 0, i, i + 1); }

  Value* join(const std::vector<Value*>& parts, int dim) {
    if (parts.size() == 1) return parts[0];
    Type type = parts[0]->type;
    SymExpr size(0);
    Arg::List list;
    for (Value* one : parts) {
      size = size + one->type.sizes[static_cast<std::size_t>(dim)];
      list.emplace_back(one);
    }
    type.sizes[static_cast<std::size_t>(dim)] = size;
    return make_.emit("aten.cat.default", {std::move(list), dim}, std::move(type));
  }

  Decomposer make_;
  Network n_;
  std::vector<Value*> last_h_, last_c_;
};

bool sequence(PassContext& context, Node* node, Kind kind) {
  auto network = network_of(*node, kind);
  if (const Reason* why = std::get_if<Reason>(&network)) return reject(context, *node, why->code, why->detail);
  if (!context.allow_rewrite()) return false;
  finish_decomposition(context, pass, node, Sequence(node, std::get<Network>(std::move(network))).run());
  return true;
}

bool run(PassContext& context) {
  bool changed = false;
  for_each_node(*context.model.graph, [&](Node* node) {
    if (const auto kind = cell_kind(node->op()); kind && node->args().size() == 6) {
      changed = cell(context, node, *kind) || changed;
    } else if (const auto many = sequence_kind(node->op()); many && node->args().size() == 9) {
      changed = sequence(context, node, *many) || changed;
    } else if (node->op() == "aten.lstm.data" || node->op() == "aten.gru.data" || node->op() == "aten.rnn_tanh.data" ||
               node->op() == "aten.rnn_relu.data") {
      reject(context, *node, ReasonCode::Unsupported, "a packed sequence: the batch shrinks from step to step");
    }
  });
  return changed;
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_PASS({"decompose-rnn", "Write out recurrent layers and cells as linear layers and element-wise functions",
                   ttc::run});
