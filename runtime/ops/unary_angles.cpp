// Circular and hyperbolic functions and their inverses. In sine, cosine and tangent the device's range reduction
// decides most of the results of large angles (its sine of 1e9 is 1e37), so the fast kernels run the vector unit's
// functions too.
#include <cmath>

#include "ops/rules.h"
#include "ops/unary.h"

namespace ttrt::ops::unary_angles_op {
namespace {

using sfpu::Function;

// NOLINTBEGIN: one line each, all of the same form
float f_asin(float x, const float*) { return std::asin(x); }
float f_acos(float x, const float*) { return std::acos(x); }
float f_atan(float x, const float*) { return std::atan(x); }
float f_sinh(float x, const float*) { return std::sinh(x); }
float f_cosh(float x, const float*) { return std::cosh(x); }
float f_asinh(float x, const float*) { return std::asinh(x); }
float f_acosh(float x, const float*) { return std::acosh(x); }
float f_atanh(float x, const float*) { return std::atanh(x); }
float f_sinc(float x, const float*) {
  const double z = 3.14159265358979323846 * static_cast<double>(x);
  return x == 0.0F ? 1.0F : static_cast<float>(std::sin(z) / z);
}
// NOLINTEND

// By the width of Dest: a table for bfloat16.
template <Function function, Dest dest>
void of_vector_unit(float* v, const float*) {
  sfpu::run(function, {}, dest, {v, static_cast<std::size_t>(tile_elements)});
}
template <Function function>
TileFunction choose_width(const OpCall& call) {
  const bool wide = call.tensors.at(0).dtype == DataType::float32;
  return wide ? of_vector_unit<function, Dest::bits32> : of_vector_unit<function, Dest::bits16>;
}

// ---- ops

constexpr std::string_view arguments_end = "no argument is reduced beyond 1.4e13";

const UnaryOp angles[]{
    {.name = "tt.sin",
     .summary = "sine",
     .spellings = {{"aten.sin.default"}},
     .choose = choose_width<Function::sin>,
     .exact = by_vector_unit<Function::sin>,
     .angle = true,
     .special_values = arguments_end},
    {.name = "tt.cos",
     .summary = "cosine",
     .spellings = {{"aten.cos.default"}},
     .choose = choose_width<Function::cos>,
     .exact = by_vector_unit<Function::cos>,
     .angle = true,
     .special_values = arguments_end},
    {.name = "tt.tan",
     .summary = "tangent",
     .spellings = {{"aten.tan.default"}},
     .choose = choose_width<Function::tan>,
     .exact = by_vector_unit<Function::tan>,
     .range = "unit",
     .special_values = arguments_end},
    {.name = "tt.asin",
     .summary = "inverse sine",
     .spellings = {{"aten.asin.default"}},
     .function = plain<f_asin>,
     .exact = by_vector_unit<Function::asin>,
     .range = "unit",
     .recorded_up_to = 1},
    {.name = "tt.acos",
     .summary = "inverse cosine",
     .spellings = {{"aten.acos.default"}},
     .function = plain<f_acos>,
     .exact = by_vector_unit<Function::acos>,
     .range = "unit",
     .recorded_up_to = 1},
    {.name = "tt.atan",
     .summary = "inverse tangent",
     .spellings = {{"aten.atan.default"}},
     .function = plain<f_atan>,
     .exact = by_vector_unit<Function::atan>},
    {.name = "tt.sinh",
     .summary = "hyperbolic sine",
     .spellings = {{"aten.sinh.default"}},
     .function = plain<f_sinh>,
     .exact = by_vector_unit<Function::sinh>},
    {.name = "tt.cosh",
     .summary = "hyperbolic cosine",
     .spellings = {{"aten.cosh.default"}},
     .function = plain<f_cosh>,
     .exact = by_vector_unit<Function::cosh>},
    {.name = "tt.asinh",
     .summary = "inverse hyperbolic sine",
     .spellings = {{"aten.asinh.default"}},
     .function = plain<f_asinh>,
     .exact = by_vector_unit<Function::asinh>},
    {.name = "tt.acosh",
     .summary = "inverse hyperbolic cosine",
     .spellings = {{"aten.acosh.default"}},
     .function = plain<f_acosh>,
     .exact = by_vector_unit<Function::acosh>,
     .range = "positive"},
    {.name = "tt.atanh",
     .summary = "inverse hyperbolic tangent",
     .spellings = {{"aten.atanh.default"}},
     .function = plain<f_atanh>,
     .exact = by_vector_unit<Function::atanh>,
     .range = "unit"},
    {.name = "tt.sinc",
     .summary = "sin(pi x) / (pi x)",
     .spellings = {{"aten.sinc.default"}},
     .function = plain<f_sinc>,
     .no_exact_kernel = not_recorded},
};
TTRT_NOT_EMITTED(sinc, "tt.sinc", "TT-NN has no sinc")
TTRT_REGISTER_UNARY(angles);

}  // namespace
}  // namespace ttrt::ops::unary_angles_op
