// Replay of element-wise functions of one tensor. What has an op record runs its kernels under the record's name, with
// the case's parameters as arguments of that name; the vector unit itself gives the approximate modes and the functions
// without a record: bfloat16 tensors go through a 16-bit Dest, float32 tensors through a 32-bit one, block formats come
// out of the unpacker as bfloat16.
#include <algorithm>
#include <cmath>
#include <map>

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
      {"eqz", Function::eqz},
      {"gez", Function::gez},
      {"gtz", Function::gtz},
      {"hardmish", Function::hardmish},
      {"hardshrink", Function::hardshrink, {{"lambd", 0.5F}}},
      {"heaviside", Function::heaviside, {{"value", 0.0F}}},
      {"isfinite", Function::isfinite},
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

// Functions of the op library that a record serves, and its alias where they have another name.
struct Served {
  const ops::UnaryOp* op = nullptr;
  const ops::Alias* alias = nullptr;
};
std::map<std::string_view, Served>& served() {
  static auto* functions = new std::map<std::string_view, Served>;
  return *functions;
}

constexpr const char* fast_mode = "fast_and_approximate_mode";
ttc::Reason unknown(std::string text) { return {ttc::ReasonCode::Unimplemented, std::move(text)}; }

// The mode that a case asks for, by UnaryOp's name of it.
std::string mode_name(const Case& c) {
  const ttc::Json* fast = ttc::find_member(c.params, fast_mode);
  if (fast != nullptr && (!fast->is_boolean() || fast->get<bool>())) return "fast";
  const ttc::Json* mode = ttc::find_member(c.params, "mode");
  return mode != nullptr ? ttc::as_string(*mode) : "";
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

Outcome run_record(const Case& c, const Served& by, Numerics numerics) {
  RecordCall call(by.op->name, c.arch);
  call.tensor("x", c.inputs[0]);
  if (by.alias != nullptr)
    for (const auto& [argument, value] : by.alias->otherwise) call.set(argument, value);
  for (const auto& [name, value] : c.params.items()) {
    if (name == fast_mode || name == "mode") continue;
    const bool renamed = by.alias != nullptr && name == by.alias->parameter;
    const std::string_view argument = renamed ? by.alias->argument : std::string_view(name);
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
  if (c.inputs.empty()) return unknown("a case without input");
  const Tensor &x = c.inputs[0], &expected = c.expected.at(0);
  if (!is_float_format(x.dtype) || !is_float_format(expected.dtype))
    return ttc::Reason{ttc::ReasonCode::DtypeUnsupported, "functions are of float formats"};
  if (volume(x.shape) != volume(expected.shape)) return unknown("an output of another shape");
  const std::string mode = mode_name(c);
  const auto plain = std::ranges::find(without_record(), c.op, &Plain::op);
  if (plain != without_record().end())
    return mode.empty() ? run_plain(c, *plain) : unknown("mode " + mode + " of " + c.op);
  const Served& by = served().at(c.op);
  const auto other = std::ranges::find(by.op->modes, mode, &ops::Mode::name);
  if (other == by.op->modes.end() && !mode.empty()) return unknown("mode " + mode + " of " + c.op);
  // Fast numerics have the accurate function for every mode.
  if (other != by.op->modes.end() && other->function && (mode.empty() || numerics == Numerics::exact))
    return run_tiles(x, expected, *other->function);
  return run_record(c, by, numerics);
}

bool beyond_recorded(const Case& c, std::size_t element) {
  return !(std::fabs(c.inputs.at(0).values.at(element)) <= served().at(c.op).op->recorded_up_to);
}

void serve(std::string_view function, const Served& by) {
  served()[function] = by;
  register_runner(function, unary);
  if (std::isfinite(by.op->recorded_up_to))
    register_undetermined(function, beyond_recorded, "out of the domain the recording has what the unit held before");
}

const bool unary_registered = [] {
  for (const Plain& plain : without_record()) register_runner(plain.op, unary);
  watch_ops([](const OpRecord& record) {
    const ops::UnaryOp* op = ops::find_unary(record.name);
    if (op == nullptr) return;
    serve(record.name.substr(3), {.op = op});
    for (const ops::Alias& alias : op->aliases) serve(alias.name, {.op = op, .alias = &alias});
  });
  return true;
}();

}  // namespace

Case case_behind(const Case& c, std::string_view function, Tensor x) {
  Case out;
  out.id = c.id;
  out.op = function;
  out.arch = c.arch;
  const auto by = served().find(function);
  if (by != served().end() && by->second.op->fast_behind) out.params[fast_mode] = true;
  out.inputs.push_back(std::move(x));
  return out;
}

}  // namespace ttrt::replay
