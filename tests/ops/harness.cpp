// The walk over a case's graph: arguments for the binder, kernels on the device, references and ATen beside them; how
// results are compared.
#include "harness.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <sstream>

#include "torch/cpu_op.h"
#include "device/tile_formats.h"
#include "device/metrics.h"
#include "ir/model.h"
#include "ops/bind.h"
#include "ops/library.h"
#include "support/error.h"

namespace ttrt::test {
namespace {

namespace ir = ttc::ir;

HostTensor host_of(const RtValue& value) {
  const auto* host = value.get_if<HostTensor>();
  if (host == nullptr) throw ttc::usage_error("not a host tensor");
  return contiguous(*host);
}

// ---- inputs

float draw(std::string_view range, std::mt19937& random) {
  constexpr float inf = std::numeric_limits<float>::infinity(), tiny = std::numeric_limits<float>::denorm_min();
  constexpr std::array<float, 8> rare{std::numeric_limits<float>::quiet_NaN(), inf, -inf, 0, -0.0F, tiny, -tiny, 1e38F};
  std::normal_distribution<float> normal;
  const float x = normal(random);
  if (range == "special" && random() % 4 == 0) return rare[random() % rare.size()];
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
    if (const OpRecord* record = find_op(node.op())) return execute(node, *record, Lowered{.args = node.args()});
    for (const auto& [record, lowering] : lowerings_of(node.op())) {
      LowerResult lowered = ops::lower_node(*record, *lowering, context);
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

  // The device's values as float32, integers by way of int64.
  static HostTensor as_floats(const DeviceTensor& tensor) {
    if (is_float_format(tensor.spec.dtype)) return to_host(tensor, DType::f32);
    return convert(to_host(tensor, DType::i64), DType::f32);
  }

  // What the binder takes: tensors on the device where they are there, else on the host; `values` in their order.
  std::vector<RtValue> arguments(const Lowered& lowered, std::vector<const ir::Value*>& values) {
    std::vector<RtValue> args;
    for (const ir::Arg& arg : lowered.args)
      args.push_back(literal_value(arg, [&](const ir::Value& value) -> RtValue {
        const State& state = states_.at(&value);
        values.push_back(&value);
        return state.device ? RtValue(*state.device) : RtValue(state.aten);
      }));
    return args;
  }

  // An operand on the device. ATen gets what the format of a packed constant could hold.
  DeviceTensor upload(const BoundCall& call, std::size_t i, const ir::Value* value) {
    State& state = states_.at(value);
    const Packed* packed = call.operands[i].packed;
    if (packed == nullptr) {
      if (!state.device) state.device = call.upload(i, state.aten, device_);
      return *state.device;
    }
    const DeviceTensor tiles = call.upload(i, state.aten, device_);
    unpacked_[value] = to_host(tiles, DType::f32);
    state.aten = unpacked_constant(unpacked_[value], *packed, state.aten.sizes);
    return tiles;
  }

  bool execute(const ir::Node& node, const OpRecord& record, const Lowered& lowered) {
    if (record.prepare == nullptr) return transfer(node, record);
    const auto refuse = [&](const std::string& why) {
      result_.refusals.push_back(std::string(record.name) + ": " + why);
      return false;
    };
    std::vector<const ir::Value*> values;
    const auto bound = bind_call(record, arguments(lowered, values), {.activation = config_.activation});
    if (const auto* reason = std::get_if<ttc::Reason>(&bound)) return refuse(reason->text());
    const auto& call = std::get<BoundCall>(bound);
    result_.calls.push_back(call.call);
    if (const auto reason = call.refusal()) return refuse(reason->text());
    std::vector<DeviceTensor> inputs;
    for (std::size_t i = 0; i < values.size(); ++i) inputs.push_back(upload(call, i, values[i]));
    std::vector<const DeviceTensor*> in, constants;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      in.push_back(&inputs[i]);
      constants.push_back(call.operands[i].packed != nullptr ? &inputs[i] : nullptr);
    }
    const auto kernel = call.prepare({.numerics = config_.numerics, .constants = constants});
    if (const auto* reason = std::get_if<ttc::Reason>(&kernel)) return refuse(reason->text());
    std::vector<DeviceTensor> results;
    for (const TensorSpec& spec : call.results()) {
      results.push_back(allocate(device_, spec));
      std::memset(results.back().data(), 0xA5, static_cast<std::size_t>(spec.nbytes()));
    }
    std::vector<DeviceTensor*> out;
    for (DeviceTensor& tensor : results) out.push_back(&tensor);
    std::get<Kernel>(kernel)({.in = in, .out = out});
    result_.served.emplace(record.name);

    const std::vector<RtValue> reference = run_reference(call, values);
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
    State state = states_.at(x);
    TensorSpec spec;
    spec.logical = state.aten.sizes;
    spec.dtype = state.aten.dtype == DType::bf16 ? DataType::bfloat16 : DataType::float32;
    const std::vector<RtValue> args{DeviceTensor{.spec = spec, .buffer = nullptr}, literal_value(node.arg(1))};
    const auto call = std::get<BoundCall>(bind_call(record, args));
    state.reference = call.reference(torch_, std::vector<RtValue>{state.aten}).at(0);
    state.aten = host_of(state.reference);
    if (record.name == "tt.to_device") {
      state.device = to_device(states_.at(x).aten, device_, call.results().at(0));
    } else {
      state.device = to_device(to_host(*states_.at(x).device, *args[1].get_if<DType>()), device_, spec);
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

  std::vector<RtValue> run_reference(const BoundCall& call, const std::vector<const ir::Value*>& values) {
    std::vector<RtValue> tensors;
    for (const ir::Value* value : values) {
      tensors.push_back(reference_value(value));
      // Masks reach references as the device has them: floats.
      const auto* host = tensors.back().get_if<HostTensor>();
      if (host != nullptr && host->dtype == DType::boolean) tensors.back() = convert(*host, DType::f32);
    }
    return call.reference(torch_, tensors);
  }

  // tt nodes have no ATen spelling: their reference is all there is.
  std::vector<RtValue> run_aten(const ir::Node& node, const std::vector<RtValue>& reference) {
    if (node.op().starts_with("tt.")) return reference;
    std::vector<RtValue> args;
    for (const ir::Arg& arg : node.args())
      args.push_back(literal_value(arg, [&](const ir::Value& value) -> RtValue { return states_.at(&value).aten; }));
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
    output.format = tensor.spec.dtype;
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
  CaseRun result_;
};

}  // namespace

Device& device() {
  static const std::shared_ptr<Device> shared = [] {
    install_torch_schemas();
    auto made = create_device(Arch::wormhole, 0);
    initialize_device(*made);
    return made;
  }();
  return *shared;
}

std::string to_string(const Config& config) {
  return "activations " + std::string(ttrt::to_string(config.activation)) + ", weights " +
         std::string(ttrt::to_string(config.weight)) + ", " + std::string(ttrt::to_string(config.fidelity)) +
         (config.fp32_acc ? "" : ", 16-bit Dest") + (config.numerics == Numerics::exact ? ", exact" : "");
}

CaseRun run_case(const OpCase& c, const Config& config, Device& device) { return Walk(c, config, device).run(); }

Tolerance allowed(const OpRecord& record, const Config& config) {
  Tolerance out = record.tolerance;
  const bool exact = config.numerics == Numerics::exact;
  if (exact && out.exact_max_rel > 0) out = {.pcc = std::min(out.pcc, 0.9995), .max_rel = out.exact_max_rel};
  if (out.max_rel == 0) return out;
  // Sums of 8 significant bits; products of 7 by 5; of 7 by 8.
  if (!config.fp32_acc) {
    out.pcc = std::min(out.pcc, exact ? 0.998 : 0.9995);
    out.max_rel = std::max(out.max_rel, exact ? 0.03 : 0.01);
  }
  if (config.fidelity == MathFidelity::LoFi && record.multiplies) {
    out.pcc = std::min(out.pcc, 0.998);
    out.max_rel = config.weight == DataType::bfloat4_b ? 0.01 : 0.08;
  }
  if (config.fidelity == MathFidelity::HiFi2 && record.multiplies) out.max_rel = 0.01;
  if (exact) return out;
  // Float32 all the way, but for the matrix unit's ten bits of an operand.
  if (config.activation == DataType::float32 && !record.multiplies) out = {.pcc = 0.9999999, .max_rel = 1e-5};
  return out;
}

HostTensor as_packed(const Output& output) {
  if (output.format == DataType::float32) return output.expected;
  HostTensor out = empty_host(DType::f32, output.expected.sizes);
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    const float device = output.device.as<float>()[i], value = output.expected.as<float>()[i];
    out.as<float>()[i] = std::isnan(value) && std::isinf(device) ? device : value;
  }
  return out;
}

std::string problem(const Output& output, const Tolerance& tolerance) {
  std::ostringstream out;
  if (output.device.sizes != output.expected.sizes) return "other sizes than ATen's";
  if (output.reference.sizes != output.expected.sizes) return "the reference has other sizes than ATen";
  const Metrics m = compare(output.device, as_packed(output)), r = compare(output.reference, output.expected);
  if (m.nan > 0) out << m.nan << " elements are NaN or infinite on one side only; ";
  if (!m.correlates(tolerance.pcc - 1e-12)) out << "pcc " << m.pcc << " < " << tolerance.pcc << "; ";
  if (m.max_rel > tolerance.max_rel) out << "max_rel " << m.max_rel << " > " << tolerance.max_rel << "; ";
  if (r.nan > 0 || r.max_rel > 1e-6) out << "the reference's max_rel " << r.max_rel << ", nan " << r.nan << "; ";
  if (!output.padding_is_zero) out << "padding is not zero; ";
  return out.str();
}

}  // namespace ttrt::test
