// Replay of element-wise functions of one tensor. What has an op record runs its kernels under the record's name, with
// the case's parameters as arguments of that name; the vector unit itself gives the approximate modes and the functions
// without a record: bfloat16 tensors go through a 16-bit Dest, float32 tensors through a 32-bit one, block formats come
// out of the unpacker as bfloat16.
#include <algorithm>

#include "device/formats_device.h"
#include "device/sfpu.h"
#include "ops/unary.h"
#include "replay/records.h"
#include "replay/replay.h"
#include "replay/tiles.h"

namespace ttrt::replay {
namespace {

using sfpu::Function;

constexpr Function without_record[] = {Function::eqz, Function::gez, Function::gtz,     Function::lez,
                                       Function::ltz, Function::nez, Function::softsign};

// Operators of the cases that a record serves under another name.
struct Alias {
  std::string_view op, record;
  std::string_view parameter = "", argument = "";  // of the case and of the record
};
constexpr Alias aliases[] = {{"relu6", "tt.hardtanh", "upper_limit", "max_val"}, {"sigmoid_accurate", "tt.sigmoid"}};

constexpr const char* fast_mode = "fast_and_approximate_mode";
ttc::Reason unknown(std::string text) { return {ttc::ReasonCode::Unimplemented, std::move(text)}; }

// The function of another mode than the record's; nullopt for its own.
std::variant<std::optional<Function>, ttc::Reason> mode_of(const Case& c) {
  const ttc::Json* fast = ttc::find_member(c.params, fast_mode);
  if (fast != nullptr && (!fast->is_boolean() || fast->get<bool>())) {
    if (c.op == "gelu") return Function::gelu_approx;
    if (c.op == "exp") return Function::exp_approx;
    return unknown("fast mode of " + c.op);
  }
  const ttc::Json* mode = ttc::find_member(c.params, "mode");
  if (mode == nullptr) return std::nullopt;
  const std::string& name = ttc::as_string(*mode);
  if (c.op != "sigmoid") return unknown("mode of " + c.op);
  if (name == "Accurate") return std::nullopt;
  if (name == "AccurateWithFastExp") return Function::sigmoid_fast_exp;
  if (name == "FastApproximate") return Function::sigmoid_approx;
  return unknown("mode " + name);
}

// One tile at a time; block formats and bfloat16 use a 16-bit Dest.
Outcome run_tiles(const Tensor& x, const Tensor& expected, Function function) {
  const Dest dest = x.dtype == DataType::float32 ? Dest::bits32 : Dest::bits16;
  const std::vector<std::byte> in = to_tiles(x, DataType::float32);
  const std::int64_t count = extent_of(x.shape).tiles();
  std::vector<std::byte> out(static_cast<std::size_t>(count * tile_bytes(expected.dtype)));
  for (std::int64_t t = 0; t < count; ++t) {
    alignas(64) float values[tile_elements];
    unpack_tile(DataType::float32, in.data() + t * tile_bytes(DataType::float32), values);
    sfpu::run(function, {}, dest, values);
    pack_dest(expected.dtype, dest, values, out.data() + t * tile_bytes(expected.dtype));
  }
  return Outputs{from_tiles(out, expected.dtype, expected.shape)};
}

Outcome run_record(const Case& c, const Alias& alias, Numerics numerics) {
  RecordCall call(alias.record);
  call.tensor("x", c.inputs[0]);
  if (c.op == "relu6") call.set("min_val", 0.0).set("max_val", 6.0);
  for (const auto& [name, value] : c.params.items()) {
    if (name == fast_mode || name == "mode") continue;
    const std::string_view argument = name == alias.parameter ? alias.argument : std::string_view(name);
    if (argument == "x" || !call.has(argument)) return unknown("parameter " + name);
    call.set(argument, ttc::as_double(value));
  }
  return record_outcome(call, c.expected, numerics);
}

Outcome unary(const Case& c, Numerics numerics) {
  const auto mode = mode_of(c);
  if (const auto* reason = std::get_if<ttc::Reason>(&mode)) return *reason;
  if (c.inputs.empty()) return unknown("a case without input");
  const Tensor &x = c.inputs[0], &expected = c.expected.at(0);
  if (!is_float_format(x.dtype) || !is_float_format(expected.dtype))
    return ttc::Reason{ttc::ReasonCode::DtypeUnsupported, "functions are of float formats"};
  if (volume(x.shape) != volume(expected.shape)) return unknown("an output of another shape");
  // Fast numerics have the accurate function for every mode.
  const auto other = std::get<std::optional<Function>>(mode);
  if (other && numerics == Numerics::exact) return run_tiles(x, expected, *other);
  const auto function = sfpu::function_from_string(c.op);
  if (function && std::ranges::find(without_record, *function) != std::end(without_record)) {
    if (auto refusal = c.unknown_params({})) return *refusal;
    return run_tiles(x, expected, *function);
  }
  const auto* alias = std::ranges::find(aliases, c.op, &Alias::op);
  const std::string own = "tt." + c.op;
  return run_record(c, alias != std::end(aliases) ? *alias : Alias{.op = c.op, .record = own}, numerics);
}

const bool registered = [] {
  for (const Function function : without_record) register_runner(sfpu::to_string(function), unary);
  for (const Alias& alias : aliases) register_runner(alias.op, unary);
  watch_ops([](const OpRecord& record) {
    if (ops::find_unary(record.name) != nullptr) register_runner(record.name.substr(3), unary);
  });
  return true;
}();

}  // namespace
}  // namespace ttrt::replay
