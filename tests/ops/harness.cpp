// See harness.h.
#include "harness.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include "torch/cpu_op.h"
#include "device/formats.h"
#include "ir/model.h"
#include "ops/rules.h"
#include "support/error.h"

namespace ttrt::test {
namespace {

namespace ir = ttc::ir;

struct TorchReference : Reference {
  std::vector<RtValue> call(std::string_view op, std::vector<RtValue> args) override {
    const CpuOp* cpu = CpuOp::find(op);
    if (cpu == nullptr) throw ttc::usage_error("LibTorch has no operator " + std::string(op));
    std::vector<RtValue> results;
    cpu->call(args, results);
    return results;
  }
};

HostTensor host_of(const RtValue& value) {
  const auto* host = value.get_if<HostTensor>();
  if (host == nullptr) throw ttc::usage_error("not a host tensor");
  return contiguous(*host);
}

// ---- inputs

float draw(std::string_view range, std::mt19937& random) {
  std::normal_distribution<float> normal;
  const float x = normal(random);
  if (range == "positive") return std::fabs(x) + 0.05F;
  if (range == "unit") return std::uniform_real_distribution<float>(0.0F, 0.999F)(random);
  if (range == "wide") return x * std::exp2(std::uniform_real_distribution<float>(-8.0F, 8.0F)(random));
  return x;
}

constexpr std::int64_t index_limit = 50;

HostTensor make_input(const ir::Type& type, std::string_view range, std::mt19937& random) {
  HostTensor out = empty_host(type.dtype, type.static_sizes());
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    switch (type.dtype) {
      case DType::f32:
        out.as<float>()[i] = draw(range, random);
        break;
      case DType::boolean:
        out.as<bool>()[i] = random() % 3 != 0;
        break;
      case DType::i64:
        out.as<std::int64_t>()[i] = static_cast<std::int64_t>(random() % index_limit);
        break;
      default:
        throw ttc::usage_error("inputs of cases are f32, bool or i64");
    }
  }
  return out;
}

// ---- the walk

struct State {
  HostTensor aten;  // float32, bool or integers
  RtValue reference;
  std::optional<DeviceTensor> device;
};

class Walk {
 public:
  Walk(const OpCase& c, const Config& config, Device& device)
      : case_(c), config_(config), device_(device), model_(ir::parse(std::string(c.graph), std::string(c.name))) {}

  CaseRun run() {
    std::mt19937 random(7);
    for (const ir::GraphInput& input : model_->graph->inputs()) {
      State& state = states_[input.value.get()];
      if (const ir::Weight* weight = model_->weight_of(input.value.get())) {
        state.aten = empty_host(weight->dtype, weight->sizes);
        std::memcpy(state.aten.data, weight->data(), weight->nbytes());
      } else {
        state.aten = make_input(input.value->type, case_.range, random);
        if (state.aten.dtype == DType::f32) state.aten = rounded(state.aten, config_.activation);
      }
      state.reference = state.aten;
    }
    for (const auto& node : model_->graph->nodes()) {
      if (!run_node(*node)) return std::move(result_);
    }
    for (const ir::GraphOutput& output : model_->graph->outputs()) collect(states_.at(output.arg.value()));
    return std::move(result_);
  }

 private:
  static HostTensor rounded(const HostTensor& tensor, DataType format) {
    return format == DataType::bfloat16 ? convert(convert(tensor, DType::bf16), DType::f32) : tensor;
  }

  bool run_node(const ir::Node& node) {
    const LowerOptions options{.activation = config_.activation,
                               .weight = config_.weight,
                               .fidelity = config_.fidelity,
                               .fp32_acc = config_.fp32_acc};
    const LowerContext context{node, options};
    if (const OpRecord* record = find_op(node.op()))
      return execute(node, *record, Lowered{.args = node.args(), .results = {}});
    for (const auto& [record, lowering] : lowerings_of(node.op())) {
      LowerResult lowered = lowering->lower(context);
      if (const auto* reason = std::get_if<ttc::Reason>(&lowered)) {
        result_.refusals.push_back(std::string(record->name) + ": " + reason->text());
        continue;
      }
      return execute(node, *record, std::get<Lowered>(lowered));
    }
    result_.refusals.push_back(node.op() + ": no lowering takes it");
    return false;
  }

  // ---- the device's side

  DataType format_for(OperandKind kind, DType dtype) const {
    if (kind == OperandKind::index || ttc::is_integral(dtype)) return DataType::int32;
    if (kind == OperandKind::exact) return DataType::float32;
    return config_.activation;
  }

  // The device's values as float32, integers by way of int64.
  static HostTensor as_floats(const DeviceTensor& tensor) {
    if (is_float_format(tensor.spec.dtype)) return to_host(tensor, DType::f32);
    return convert(to_host(tensor, DType::i64), DType::f32);
  }

  DeviceTensor upload(const HostTensor& host, OperandKind kind) {
    TensorSpec spec;
    spec.logical = host.sizes;
    spec.dtype = format_for(kind, host.dtype);
    const bool is_mask = host.dtype == DType::boolean && is_float_format(spec.dtype);
    return to_device(is_mask ? convert(host, DType::f32) : host, device_, spec);
  }

  static OperandKind kind_of(const OpRecord& record, std::string_view name) {
    for (const Operand& operand : record.operands) {
      if (operand.name == name) return operand.kind;
    }
    return OperandKind::activation;
  }

  OpArg literal(const ir::Arg& arg) {
    if (const auto* b = arg.get_if<bool>()) return *b;
    if (const auto* i = arg.get_if<std::int64_t>()) return *i;
    if (const auto* d = arg.get_if<double>()) return *d;
    if (const auto* s = arg.get_if<std::string>()) return *s;
    if (const auto* d = arg.get_if<DType>()) return *d;
    if (const auto ints = arg.integers()) return *ints;
    if (const ir::Arg::List* list = arg.list()) {
      std::vector<double> numbers;
      for (const ir::Arg& item : *list) numbers.push_back(item.number().value());
      return numbers;
    }
    return {};
  }

  // Appends the tensor of one operand; packed weights follow when the call's literals are known.
  TensorRef operand(const OpRecord& record, const std::string& name, const ir::Value* value, OpCall& call) {
    State& state = states_.at(value);
    const OperandKind kind = kind_of(record, name);
    if (kind == OperandKind::packed) {
      call.tensors.emplace_back();
      inputs_.push_back({});
      packed_.emplace_back(name, value);
    } else {
      if (!state.device) state.device = upload(state.aten, kind);
      call.tensors.push_back(state.device->spec);
      inputs_.push_back(*state.device);
    }
    return {static_cast<int>(call.tensors.size()) - 1};
  }

  void pack(const OpRecord& record, OpCall& call) {
    for (const auto& [name, value] : packed_) {
      for (const Packed& rule : record.packed) {
        if (rule.name != name) continue;
        const auto i = static_cast<std::size_t>(call.tensor_index(name));
        call.tensors[i] = rule.spec(call);
        HostTensor host = states_.at(value).aten;
        if (rule.form == Packed::Form::transposed) {
          std::swap(host.sizes[0], host.sizes[1]);
          std::swap(host.strides[0], host.strides[1]);
        } else if (rule.form == Packed::Form::row) {
          host.sizes = {1, host.sizes.at(0)};
          host.strides = {0, 1};
        } else if (rule.form == Packed::Form::arranged) {
          host = rule.arrange(host, call.tensors[i]);
        }
        host = packed_values(contiguous(host), rule, call.tensors[i]);
        inputs_[i] = to_device(host, device_, call.tensors[i]);
        // ATen gets what the format could hold.
        HostTensor held = to_host(inputs_[i], DType::f32);
        unpacked_[value] = held;
        if (rule.form == Packed::Form::transposed) {
          std::swap(held.sizes[0], held.sizes[1]);
          std::swap(held.strides[0], held.strides[1]);
        } else if (rule.form == Packed::Form::row) {
          held.sizes = {held.sizes.at(1)};
          held.strides = {1};
        } else if (rule.form == Packed::Form::arranged) {
          held = rule.restore(held, states_.at(value).aten.sizes);
        }
        states_.at(value).aten = contiguous(held);
      }
    }
  }

  OpCall make_call(const OpRecord& record, const Lowered& lowered) {
    inputs_.clear();
    packed_.clear();
    OpCall call;
    call.op = &record;
    const ir::OpSchema* schema = ir::find_schema(record.name);
    for (std::size_t i = 0; i < schema->args.size(); ++i) {
      const ir::SchemaArg& formal = schema->args[i];
      const ir::Arg arg = i < lowered.args.size() ? lowered.args[i] : formal.default_value.value_or(ir::Arg());
      if (const ir::Value* value = arg.value()) {
        call.args.emplace_back(operand(record, formal.name, value, call));
      } else if (arg.has_values()) {
        std::vector<TensorRef> refs;
        for (const ir::Arg& item : *arg.list()) refs.push_back(operand(record, formal.name, item.value(), call));
        call.args.emplace_back(refs);
      } else {
        call.args.push_back(literal(arg));
      }
    }
    pack(record, call);
    return call;
  }

  bool execute(const ir::Node& node, const OpRecord& record, const Lowered& lowered) {
    if (record.prepare == nullptr) return transfer(node, record);
    const OpCall call = make_call(record, lowered);
    if (record.supports != nullptr) {
      if (const auto reason = record.supports(call)) {
        result_.refusals.push_back(std::string(record.name) + ": " + reason->text());
        return false;
      }
    }
    std::vector<const DeviceTensor*> in, constants;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      in.push_back(&inputs_[i]);
      bool constant = false;
      for (const auto& [name, value] : packed_) constant = constant || call.tensor_index(name) == static_cast<int>(i);
      constants.push_back(constant ? &inputs_[i] : nullptr);
    }
    const Kernel kernel = record.prepare(call, {.numerics = config_.numerics, .constants = constants});
    if (!kernel) {
      result_.refusals.push_back(std::string(record.name) + ": no kernel");
      return false;
    }
    std::vector<DeviceTensor> results;
    for (const TensorSpec& spec : record.infer(call)) {
      results.push_back(allocate(device_, spec));
      std::memset(results.back().data(), 0xA5, static_cast<std::size_t>(spec.nbytes()));
    }
    std::vector<DeviceTensor*> out;
    for (DeviceTensor& tensor : results) out.push_back(&tensor);
    kernel({.in = in, .out = out});
    result_.served.emplace(record.name);

    const std::vector<RtValue> reference = run_reference(record, call, lowered);
    const std::vector<RtValue> aten = run_aten(node, reference);
    for (std::size_t i = 0; i < results.size(); ++i) {
      const std::size_t at = lowered.results.empty() ? i : static_cast<std::size_t>(lowered.results[i]);
      states_[node.result(at)] = {host_of(aten.at(at)), reference.at(i), results[i]};
    }
    return true;
  }

  // tt.to_device and tt.to_host, which the executor runs itself.
  bool transfer(const ir::Node& node, const OpRecord& record) {
    const ir::Value* x = node.operand(0);
    OpCall call;
    call.op = &record;
    State state = states_.at(x);
    TensorSpec spec;
    spec.logical = state.aten.sizes;
    spec.dtype = state.aten.dtype == DType::bf16 ? DataType::bfloat16 : DataType::float32;
    call.args = {TensorRef{0}, literal(node.arg(1))};
    call.tensors = {spec};
    state.reference = record.reference(torch_, call, std::vector<RtValue>{state.aten}).at(0);
    state.aten = host_of(state.reference);
    if (record.name == "tt.to_device") {
      state.device = to_device(states_.at(x).aten, device_, record.infer(call).at(0));
    } else {
      state.device = to_device(to_host(*states_.at(x).device, *std::get_if<DType>(&call.args[1])), device_, spec);
    }
    result_.served.emplace(record.name);
    states_[node.result()] = std::move(state);
    return true;
  }

  // ---- ATen's side

  RtValue reference_value(const ir::Value* value) const {
    const auto it = unpacked_.find(value);
    return it != unpacked_.end() ? RtValue(it->second) : states_.at(value).reference;
  }

  std::vector<RtValue> run_reference(const OpRecord& record, const OpCall& call, const Lowered& lowered) {
    std::vector<RtValue> args;
    for (std::size_t i = 0; i < call.args.size(); ++i) {
      const ir::Arg arg = i < lowered.args.size() ? lowered.args[i] : ir::Arg();
      if (const ir::Value* value = arg.value()) {
        args.push_back(reference_value(value));
      } else if (arg.has_values()) {
        RtValue::List list;
        for (const ir::Arg& item : *arg.list()) list.push_back(reference_value(item.value()));
        args.emplace_back(std::move(list));
      } else {
        args.push_back(ops::literal(call.args[i]));
      }
    }
    // Masks reach references as the device has them: floats.
    for (RtValue& arg : args) {
      const auto* host = arg.get_if<HostTensor>();
      if (host != nullptr && host->dtype == DType::boolean) arg = convert(*host, DType::f32);
    }
    return record.reference(torch_, call, args);
  }

  RtValue aten_value(const ir::Arg& arg) const {
    if (const ir::Value* value = arg.value()) return states_.at(value).aten;
    if (const ir::Arg::List* list = arg.list()) {
      RtValue::List out;
      for (const ir::Arg& item : *list) out.push_back(aten_value(item));
      return out;
    }
    if (const auto* b = arg.get_if<bool>()) return *b;
    if (const auto* i = arg.get_if<std::int64_t>()) return *i;
    if (const auto* d = arg.get_if<double>()) return *d;
    if (const auto* s = arg.get_if<std::string>()) return *s;
    if (const auto* d = arg.get_if<DType>()) return *d;
    return {};
  }

  // tt nodes have no ATen spelling: their reference is all there is.
  std::vector<RtValue> run_aten(const ir::Node& node, const std::vector<RtValue>& reference) {
    if (node.op().starts_with("tt.")) return reference;
    std::vector<RtValue> args;
    for (const ir::Arg& arg : node.args()) args.push_back(aten_value(arg));
    std::vector<RtValue> out = torch_.call(node.op(), std::move(args));
    if (out.size() == 1) {
      if (auto* list = out[0].get_if<RtValue::List>()) return std::move(*list);
    }
    return out;
  }

  void collect(const State& state) {
    Output output;
    output.expected = convert(state.aten, DType::f32);
    output.reference = convert(host_of(state.reference), DType::f32);
    const DeviceTensor& tensor = state.device.value();
    output.device = as_floats(tensor);
    const auto* bytes = tensor.data();
    output.bytes.assign(bytes, bytes + tensor.spec.nbytes());
    TensorSpec whole = tensor.spec;
    whole.logical = tensor.spec.padded();
    HostTensor all = empty_host(is_float_format(whole.dtype) ? DType::f32 : DType::i64, whole.logical);
    untilize_to_host(whole, bytes, all);
    all = convert(all, DType::f32);
    const std::int64_t rows = tensor.spec.rows(), cols = tensor.spec.cols(), height = whole.rows(),
                       width = whole.cols();
    for (std::int64_t i = 0; i < all.numel(); ++i) {
      const bool inside = i / width % height < rows && i % width < cols;
      if (!inside && all.as<float>()[i] != 0.0F) output.padding_is_zero = false;
    }
    result_.outputs.push_back(std::move(output));
  }

  const OpCase& case_;
  const Config& config_;
  Device& device_;
  std::unique_ptr<ir::Model> model_;
  TorchReference torch_;
  std::map<const ir::Value*, State> states_;
  std::map<const ir::Value*, HostTensor> unpacked_;
  std::vector<DeviceTensor> inputs_;                              // of the node at hand
  std::vector<std::pair<std::string, const ir::Value*>> packed_;  // of the node at hand
  CaseRun result_;
};

}  // namespace

std::string to_string(const Config& config) {
  return "activations " + std::string(ttrt::to_string(config.activation)) + ", weights " +
         std::string(ttrt::to_string(config.weight)) + ", " + std::string(ttrt::to_string(config.fidelity)) +
         (config.fp32_acc ? "" : ", 16-bit Dest") + (config.numerics == Numerics::exact ? ", exact" : "");
}

CaseRun run_case(const OpCase& c, const Config& config, Device& device) { return Walk(c, config, device).run(); }

double pcc(const HostTensor& a, const HostTensor& b) {
  double n = 0, sa = 0, sb = 0, saa = 0, sbb = 0, sab = 0;
  bool equal = true;
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    const double x = a.as<float>()[i], y = b.as<float>()[i];
    if (!std::isfinite(x) || !std::isfinite(y)) continue;
    equal = equal && x == y;
    n += 1;
    sa += x;
    sb += y;
    saa += x * x;
    sbb += y * y;
    sab += x * y;
  }
  const double va = n * saa - sa * sa, vb = n * sbb - sb * sb;
  if (equal) return 1.0;
  if (n == 1) return 1.0 - std::pow((sa - sb) / std::max(std::fabs(sa), std::fabs(sb)), 2);
  if (va <= 0 || vb <= 0) return 0.0;
  return (n * sab - sa * sb) / std::sqrt(va * vb);
}

double max_abs_difference(const HostTensor& a, const HostTensor& b) {
  double worst = 0;
  for (std::int64_t i = 0; i < a.numel(); ++i)
    worst = std::max(worst, std::fabs(static_cast<double>(a.as<float>()[i]) - b.as<float>()[i]));
  return worst;
}

}  // namespace ttrt::test
