// Element-wise functions of one tensor. Each is a UnaryOp, stated once beside its functions: in a table of unary_*.cpp,
// or in a file of its own. unary.cpp makes the op's record of it: shape rule, kernels, reference, cases.
//
// Fast kernels widen a tile to float32, apply the function and round to nearest even, as the vector unit's kernels do;
// exact ones take the vector unit's own functions (device/sfpu.h). The result's padding is zero whatever f(0) is.
#pragma once

#include <array>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ops/emit.h"
#include "ops/exact_util.h"
#include "ops/op.h"
#include "ops/simd.h"

namespace ttrt::ops {

// ---- functions -----------------------------------------------------------------------------------------------------

using Params = std::array<float, 4>;  // the call's numbers in schema order
// Applies a function to 1024 values in place; `p` holds the Params.
using TileFunction = void (*)(float* values, const float* p);
using Scalar = float (*)(float x, const float* p);

template <Scalar f>
struct Map {
  [[gnu::always_inline]] static inline void run(float* v, const float* params) {
    const float p[4] = {params[0], params[1], params[2], params[3]};
    for (int i = 0; i < tile_elements; ++i) v[i] = f(v[i], p);
  }
};
// Compiled for every instruction set; f and all it calls must be always_inline.
template <Scalar f>
void vectorised(float* v, const float* p) {
  vectorised<Map<f>>(v, p);
}
// One value after the other: functions of the C library.
template <Scalar f>
void plain(float* v, const float* p) {
  for (int i = 0; i < tile_elements; ++i) v[i] = f(v[i], p);
}

// Exact numerics: turns values as they lie in Dest of this width into what the kernel leaves there, in place. May be
// called from several threads. Empty where there is no such function for a call.
using ExactFunction = std::function<void(Dest dest, std::span<float> values)>;
inline ExactFunction vector_unit(sfpu::Function function, const sfpu::Params& params) {
  return [=](Dest dest, std::span<float> values) { sfpu::run(function, params, dest, values); };
}
// For UnaryOp::exact: the vector unit's function that takes the call's numbers as they are.
template <sfpu::Function function>
ExactFunction by_vector_unit(const OpCall&, const Params& params) {
  return vector_unit(function, params);
}

using IntegerFunction = std::function<std::int64_t(std::int64_t)>;
// For UnaryOp::integers: a function that needs nothing of the call.
template <std::int64_t (*f)(std::int64_t)>
IntegerFunction of_integers(const OpCall&) {
  return f;
}

// ---- lowering ------------------------------------------------------------------------------------------------------

// The ATen node's arguments in its own order, numbers as floats. Integers are taken too: the op's limits say by which
// functions.
LowerResult lower_unary(const LowerContext& context);

// ---- ops -----------------------------------------------------------------------------------------------------------

// An ATen operator that is this op, and the arguments that its test cases give after the tensor.
struct Spelling {
  std::string_view aten;
  LowerResult (*lower)(const LowerContext&) = lower_unary;
  std::string_view case_args = "";
};

// The op as an activation that layers compute on their sums, under a name of its own. Where the ATen operator has
// several forms, a literal tells which one this is.
struct Activation {
  std::string_view name;
  TileFunction function;
  sfpu::Function exact;
  std::string_view literal = "", value = "";
};

// What the op library's function of the op's name computes otherwise than the record, in exact numerics.
struct Mode {
  std::string_view name;  // "fast": its fast_and_approximate_mode; another: its `mode`; "": whatever it is asked for
  std::optional<sfpu::Function> function;  // nullopt: as the record
};

// Another function of the op library that is this op: a parameter under a name of its own, and numbers that are fixed.
struct Alias {
  std::string_view name, parameter, argument;
  std::vector<std::pair<std::string_view, double>> otherwise;
};

struct UnaryOp {
  std::string_view name;     // "tt.relu"
  std::string_view summary;  // a formula
  std::vector<Spelling> spellings;
  std::string_view schema = "(Tensor x) -> Tensor";
  TileFunction function = nullptr;
  TileFunction (*choose)(const OpCall&) = nullptr;  // instead, where the call decides
  Params (*params)(const OpCall&) = nullptr;        // instead of the call's float arguments in schema order
  ExactFunction (*exact)(const OpCall&, const Params&) = nullptr;
  std::optional<sfpu::Function> exact_blackhole = std::nullopt;  // instead of it on that chip
  std::string_view no_exact_kernel = "";                         // why `exact` is nullptr, or empty for some calls
  IntegerFunction (*integers)(const OpCall&) = nullptr;
  std::string_view integer_case_args = "";
  bool whole_numbers = false;  // the call's numbers are ATen's ints
  std::vector<Activation> activations = {};
  Tolerance tolerance = {.pcc = 0.9999, .exact_max_rel = 0.006};
  std::string_view range = "normal";     // of the cases' values
  double instructions = 12;              // of the vector unit, load and store included
  bool special = false;                  // reads float32 only, and gives its result in any numerics alike
  bool angle = false;                    // OpRecord::angle
  std::vector<Words> words = {};         // OpRecord::words
  std::string_view special_values = "";  // OpRecord::special_values
  // nullptr: the function of the record's name, where TT-NN's kernel of it is known.
  ttc::Refusal (*emit)(PythonCall& to) = nullptr;
  std::vector<Mode> modes = {};
  // |x| from which on the op library's kernel, as it was recorded, leaves what the vector unit held before: its
  // compiler dropped the value that the source has there (device/numerics.md, Open).
  float recorded_up_to = std::numeric_limits<float>::infinity();
  bool fast_behind = false;  // behind a product or sum that names it, the op library takes the fast mode
  std::vector<Alias> aliases = {};
};

void register_unary(const UnaryOp& op);
void register_unary(std::span<const UnaryOp> ops);

const UnaryOp* find_unary(std::string_view op);  // nullptr where there is none

// The activation of this name and the op that has it; nullptr where there is none.
struct FoundActivation {
  const UnaryOp* op = nullptr;
  const Activation* activation = nullptr;
};
FoundActivation find_activation(std::string_view name);
// The same of an ATen node.
FoundActivation activation_behind(const ttc::ir::Node& aten);

}  // namespace ttrt::ops

// `table`: a UnaryOp or an array of them, of static storage.
#define TTRT_REGISTER_UNARY(table)                                            \
  namespace {                                                                 \
  const bool registered_##table = (::ttrt::ops::register_unary(table), true); \
  }
