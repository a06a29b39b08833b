// Replay of element-wise functions of one tensor. What has an op record runs its kernels under the record's name, with
// the case's parameters as arguments of that name; the vector unit itself gives the approximate modes and the functions
// without a record: bfloat16 tensors go through a 16-bit Dest, float32 tensors through a 32-bit one, block formats come
// out of the unpacker as bfloat16.
#include <algorithm>

#include "device/tile_formats_device.h"
#include "device/sfpu.h"
#include "ops/unary.h"
#include "replay/records.h"
#include "replay/replay.h"
#include "replay/tiles.h"

namespace ttrt::replay {
namespace {

using sfpu::Function;

// Functions of the vector unit that no record is, with their parameters in order.
struct Plain {
  std::string_view op;
  Function function;
  std::vector<std::pair<std::string_view, float>> params = {};  // name and default
};

const std::vector<Plain>& without_record() {
  static const std::vector<Plain> all{
      {"cbrt", Function::cbrt},
      {"celu", Function::celu, {{"alpha", 1.0F}}},
      {"deg2rad", Function::deg2rad},
      {"digamma", Function::digamma},
      {"eqz", Function::eqz},
      {"gez", Function::gez},
      {"gtz", Function::gtz},
      {"hardmish", Function::hardmish},
      {"hardshrink", Function::hardshrink, {{"lambd", 0.5F}}},
      {"heaviside", Function::heaviside, {{"value", 0.0F}}},
      {"i0", Function::i0},
      {"i1", Function::i1},
      {"isfinite", Function::isfinite},
      {"isinf", Function::is_infinite},
      {"isnan", Function::is_nan},
      {"lez", Function::lez},
      {"logical_not", Function::zero_bits},
      {"logit", Function::logit},
      {"ltz", Function::ltz},
      {"nez", Function::nez},
      {"polygamma", Function::polygamma, {{"k", 1.0F}}},
      {"rad2deg", Function::rad2deg},
      {"selu", Function::selu, {{"scale", 1.0507F}, {"alpha", 1.67326F}}},
      {"signbit", Function::signbit},
      {"softshrink", Function::softshrink, {{"lambd", 0.5F}}},
      {"softsign", Function::softsign},
      {"tanhshrink", Function::tanhshrink},
      {"threshold", Function::threshold, {{"threshold", 0.0F}, {"value", 0.0F}}},
      {"xielu", Function::xielu, {{"alpha_p", 0.8F}, {"alpha_n", 0.8F}}},
  };
  return all;
}

// Functions of the cases that a record serves with other parameters.
struct Alias {
  std::string_view op, record;
  std::string_view parameter = "", argument = "";                       // of the case and of the record
  std::span<const std::pair<std::string_view, double>> otherwise = {};  // arguments that the case does not give
};
constexpr std::pair<std::string_view, double> up_to_six[] = {{"min_val", 0.0}, {"max_val", 6.0}};
constexpr Alias aliases[] = {{"relu6", "tt.hardtanh", "upper_limit", "max_val", up_to_six}};

constexpr const char* fast_mode = "fast_and_approximate_mode";
ttc::Reason unknown(std::string text) { return {ttc::ReasonCode::Unimplemented, std::move(text)}; }

// The function of another mode than the record's; nullopt for its own.
std::variant<std::optional<Function>, ttc::Reason> mode_of(const Case& c) {
  const ttc::Json* fast = ttc::find_member(c.params, fast_mode);
  if (fast != nullptr && (!fast->is_boolean() || fast->get<bool>())) {
    if (c.op == "gelu") return Function::gelu_approx;
    if (c.op == "exp") return Function::exp_approx;
    if (c.op == "sqrt") return Function::sqrt_fast;
    if (c.op == "rsqrt") return Function::rsqrt_fast;
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
Outcome run_tiles(const Tensor& x, const Tensor& expected, Function function, const sfpu::Params& params = {}) {
  const Dest dest = x.dtype == DataType::float32 ? Dest::bits32 : Dest::bits16;
  const std::vector<std::byte> in = to_tiles(x, DataType::float32);
  const std::int64_t count = extent_of(x.shape).tiles();
  std::vector<std::byte> out(static_cast<std::size_t>(count * tile_bytes(expected.dtype)));
  for (std::int64_t t = 0; t < count; ++t) {
    alignas(64) float values[tile_elements];
    unpack_tile(DataType::float32, in.data() + t * tile_bytes(DataType::float32), values);
    sfpu::run(function, params, dest, values);
    pack_dest(expected.dtype, dest, values, out.data() + t * tile_bytes(expected.dtype));
  }
  return Outputs{from_tiles(out, expected.dtype, expected.shape)};
}

Outcome run_record(const Case& c, const Alias& alias, Numerics numerics) {
  RecordCall call(alias.record, c.arch);
  call.tensor("x", c.inputs[0]);
  for (const auto& [argument, value] : alias.otherwise) call.set(argument, value);
  for (const auto& [name, value] : c.params.items()) {
    if (name == fast_mode || name == "mode") continue;
    const std::string_view argument = name == alias.parameter ? alias.argument : std::string_view(name);
    if (argument == "x" || !call.has(argument)) return unknown("parameter " + name);
    call.set(argument, ttc::as_double(value));
  }
  return record_outcome(call, c.expected, numerics);
}

Outcome run_plain(const Case& c, const Plain& plain) {
  sfpu::Params params{};
  for (std::size_t i = 0; i < plain.params.size(); ++i) params.at(i) = plain.params[i].second;
  for (const auto& [name, value] : c.params.items()) {
    const auto at = std::ranges::find(plain.params, name, &std::pair<std::string_view, float>::first);
    if (at == plain.params.end()) return unknown("parameter " + name);
    params.at(static_cast<std::size_t>(at - plain.params.begin())) = static_cast<float>(ttc::as_double(value));
  }
  return run_tiles(c.inputs[0], c.expected.at(0), plain.function, params);
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
  const auto plain = std::ranges::find(without_record(), c.op, &Plain::op);
  if (plain != without_record().end()) return run_plain(c, *plain);
  const auto* alias = std::ranges::find(aliases, c.op, &Alias::op);
  const std::string own = "tt." + c.op;
  return run_record(c, alias != std::end(aliases) ? *alias : Alias{.op = c.op, .record = own}, numerics);
}

const bool unary_registered = [] {
  for (const Plain& plain : without_record()) register_runner(plain.op, unary);
  for (const Alias& alias : aliases) register_runner(alias.op, unary);
  watch_ops([](const OpRecord& record) {
    const std::string_view op = record.name.substr(3);
    const bool plain = std::ranges::find(without_record(), op, &Plain::op) != without_record().end();
    if (ops::find_unary(record.name) != nullptr && !plain) register_runner(op, unary);
  });
  return true;
}();

}  // namespace
}  // namespace ttrt::replay
