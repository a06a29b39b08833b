// LSTM, GRU and plain recurrent networks over a sequence of known length, and their cells, written out as linear layers
// and element-wise functions. What the inputs contribute is one matrix product for all steps; a step then has one of
// its own, with the state. Gates are in PyTorch's order: i f g o of an LSTM, r z n of a GRU (torch.nn documentation).
#include "../decompose.h"
#include "shapes/shape_prop.h"

namespace ttc {
namespace {

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

struct CellState {
  Value *h = nullptr, *c = nullptr;
};

bool typed(const Value* v) { return v != nullptr && v->type.is_tensor() && v->type.has_shape && v->type.has_dtype; }

class Cell {
 public:
  Cell(Rewriter& r, Kind kind) : r_(r), kind_(kind) {}

  // `given` = x W_ih^T + b_ih of this step.
  CellState step(Value* given, const CellState& state, const Weights& weights) {
    Value* recurrent = r_.linear(state.h, weights.state, weights.state_bias);
    if (kind_ == Kind::gru) return gru(given, recurrent, state);
    Value* sum = r_.emit_like("aten.add.Tensor", {given, recurrent, 1}, given);
    if (kind_ == Kind::tanh) return {function("tanh", sum), nullptr};
    if (kind_ == Kind::relu) return {function("relu", sum), nullptr};
    const auto gate = r_.split(sum, sum->type.rank() - 1, 4);
    Value* c =
        add(mul(function("sigmoid", gate[1]), state.c), mul(function("sigmoid", gate[0]), function("tanh", gate[2])));
    return {mul(function("sigmoid", gate[3]), function("tanh", c)), c};
  }

 private:
  CellState gru(Value* given, Value* recurrent, const CellState& state) {
    const auto x = r_.split(given, given->type.rank() - 1, 3), h = r_.split(recurrent, recurrent->type.rank() - 1, 3);
    Value *r = function("sigmoid", add(x[0], h[0])), *z = function("sigmoid", add(x[1], h[1]));
    Value* n = function("tanh", add(x[2], mul(r, h[2])));
    // (1 - z) n + z h = n + z (h - n)
    return {add(n, mul(z, r_.emit_like("aten.sub.Tensor", {state.h, n, 1}, n))), nullptr};
  }
  Value* function(const std::string& name, Value* x) { return r_.emit_like("aten." + name + ".default", {x}, x); }
  Value* add(Value* a, Value* b) { return r_.emit_like("aten.add.Tensor", {a, b, 1}, a); }
  Value* mul(Value* a, Value* b) { return r_.emit_like("aten.mul.Tensor", {a, b}, a); }

  Rewriter& r_;
  Kind kind_;
};

// ---- one step -----------------------------------------------------------------------------------------------------

Values cell(Rewriter& r, Node* node, Kind kind) {
  if (node->args().size() != 6) return {};
  CellState state;
  if (const Arg::List* items = node->arg(1).list(); kind == Kind::lstm && items && items->size() == 2)
    state = {(*items)[0].value(), (*items)[1].value()};
  else
    state = {node->operand(1), nullptr};
  const Weights weights{
      .input = node->operand(2), .state = node->operand(3), .input_bias = node->arg(4), .state_bias = node->arg(5)};
  if (!typed(node->operand(0)) || !typed(state.h) || !typed(weights.input) || !typed(weights.state) ||
      (kind == Kind::lstm && !typed(state.c)))
    return refused(r, {ReasonCode::DynamicShape, "the shapes of its operands are not known"});
  if (!weights.state->type.is_static())
    return refused(r, {ReasonCode::DynamicShape, "the number of its gates is not known"});
  const CellState next =
      Cell(r, kind).step(r.linear(node->operand(0), weights.input, weights.input_bias), state, weights);
  return {next.h, next.c};
}

// ---- sequences ----------------------------------------------------------------------------------------------------

struct Network {
  Kind kind = Kind::lstm;
  Value* x = nullptr;
  CellState start;               // [layers * directions, batch, hidden], or [layers * directions, hidden]
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
  Sequence(Rewriter& r, Network network) : r_(r), n_(std::move(network)) {}

  Values run() {
    Value* x = n_.batch_first ? r_.transpose(n_.x, 0, 1) : n_.x;
    for (std::int64_t layer = 0; layer < n_.layers; ++layer) {
      std::vector<Value*> outputs;
      for (std::int64_t d = 0; d < n_.directions; ++d)
        outputs.push_back(direction(x, layer * n_.directions + d, d == 1));
      x = outputs.size() == 1 ? outputs[0] : join(outputs, 2);
    }
    Value* h = join(last_h_, 0);
    Value* c = n_.kind == Kind::lstm ? join(last_c_, 0) : nullptr;
    return {n_.batch_first ? r_.transpose(x, 0, 1) : x, h, c};
  }

 private:
  // [steps, batch, hidden] of one layer and direction.
  Value* direction(Value* x, std::int64_t index, bool backwards) {
    const Weights& w = n_.weights[static_cast<std::size_t>(index)];
    Value* given = r_.linear(x, w.input, w.input_bias);
    CellState state{part(n_.start.h, index), n_.start.c ? part(n_.start.c, index) : nullptr};
    std::vector<Value*> outputs(static_cast<std::size_t>(n_.steps));
    Cell cell(r_, n_.kind);
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
  Value* part(Value* x, std::int64_t i) { return x->type.dim(0) == 1 ? x : r_.slice(x, 0, i, i + 1); }

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
    return r_.emit("aten.cat.default", {std::move(list), dim}, std::move(type));
  }

  Rewriter& r_;
  Network n_;
  std::vector<Value*> last_h_, last_c_;
};

Values sequence(Rewriter& r, Node* node, Kind kind) {
  if (node->args().size() != 9) return {};
  auto network = network_of(*node, kind);
  if (const Reason* why = std::get_if<Reason>(&network)) return refused(r, *why);
  return Sequence(r, std::get<Network>(std::move(network))).run();
}

template <Values (*write)(Rewriter&, Node*, Kind), Kind kind>
Values of(Rewriter& r, Node* node) {
  return write(r, node, kind);
}

}  // namespace

RulePart rnn_rules() {
  return {"rnn",
          nullptr,
          false,
          {{{"aten.lstm_cell.default"}, of<cell, Kind::lstm>},
           {{"aten.gru_cell.default"}, of<cell, Kind::gru>},
           {{"aten.rnn_tanh_cell.default"}, of<cell, Kind::tanh>},
           {{"aten.rnn_relu_cell.default"}, of<cell, Kind::relu>},
           {{"aten.lstm.input"}, of<sequence, Kind::lstm>},
           {{"aten.gru.input"}, of<sequence, Kind::gru>},
           {{"aten.rnn_tanh.input"}, of<sequence, Kind::tanh>},
           {{"aten.rnn_relu.input"}, of<sequence, Kind::relu>},
           {{"aten.lstm.data", "aten.gru.data", "aten.rnn_tanh.data", "aten.rnn_relu.data"}, [](Rewriter& r, Node*) {
              return refused(r, {ReasonCode::Unsupported, "a packed sequence: the batch shrinks from step to step"});
            }}}};
}

}  // namespace ttc
