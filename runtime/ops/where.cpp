// tt.where and tt.logical_not: choosing by a mask of 0 and 1. Masks are float tensors on the device; not is 1 - mask,
// so a mask read back as bool is the one ATen has.
#include <bit>
#include <cmath>

#include "ops/emit.h"
#include "ops/integers.h"
#include "ops/rules.h"
#include "ops/simd.h"

namespace ttrt::ops::where_op {
namespace {

using ttc::Reason;
using ttc::ReasonCode;
namespace ir = ttc::ir;

// ---- lowering

// A tensor operand, or None and a number.
struct Choice {
  ir::Arg tensor;
  double number = 0.0;
};
std::variant<Choice, Reason> choice(const ir::Arg& arg, bool integers) {
  const ir::Value* value = arg.value();
  if (value != nullptr && value->type.is_tensor()) {
    if (is_integer(value) != integers)
      return Reason{ReasonCode::DtypeUnsupported,
                    "%" + value->name + " is " + std::string(ttc::torch_name(value->type.dtype))};
    return Choice{arg, 0.0};
  }
  if (const auto* set = arg.get_if<bool>()) return Choice{{}, *set ? 1.0 : 0.0};
  if (!arg.number()) return unsupported("a number computed at run time");
  if (integers && std::fabs(*arg.number()) > 2147483647.0)
    return Reason{ReasonCode::DtypeUnsupported, "the number does not fit int32"};
  return Choice{{}, *arg.number()};
}

LowerResult lower_with(const LowerContext& context, const ir::Arg& mask, const ir::Arg& yes, const ir::Arg& no) {
  const ir::Value* condition = mask.value();
  if (condition == nullptr || !condition->type.has_dtype || condition->type.dtype != DType::boolean) {
    return Reason{ReasonCode::DtypeUnsupported, "the mask is not bool"};
  }
  if (!condition->type.has_shape) return Reason{ReasonCode::DynamicShape, "the mask's rank is not known"};
  if (auto refusal = check_values(context)) return *refusal;
  const bool integers = is_integer(context.node.result());
  const auto a = choice(yes, integers), b = choice(no, integers);
  if (const auto* reason = std::get_if<Reason>(&a)) return *reason;
  if (const auto* reason = std::get_if<Reason>(&b)) return *reason;
  return Lowered{.args = {mask, std::get<Choice>(a).tensor, std::get<Choice>(b).tensor, std::get<Choice>(a).number,
                          std::get<Choice>(b).number}};
}

LowerResult lower_where(const LowerContext& context) {
  return lower_with(context, context.node.arg(0), context.node.arg(1), context.node.arg(2));
}

// Of two numbers: a float where one of them is.
LowerResult lower_numbers(const LowerContext& context) {
  if (is_integer(context.node.result()))
    return Reason{ReasonCode::DtypeUnsupported, "two integers to choose from, neither of them a tensor"};
  return lower_where(context);
}

LowerResult lower_masked_fill(const LowerContext& context) {
  return lower_with(context, context.node.arg(1), context.node.arg(2), context.node.arg(0));
}

LowerResult lower_not(const LowerContext& context) {
  const ir::Value* x = context.node.operand(0);
  if (x == nullptr || !x->type.has_dtype || x->type.dtype != DType::boolean)
    return Reason{ReasonCode::DtypeUnsupported, "the operand is not bool"};
  if (!x->type.has_shape) return Reason{ReasonCode::DynamicShape, "the mask's rank is not known"};
  return Lowered{.args = {context.node.arg(0)}};
}

// ---- tt.where

std::vector<TensorSpec> infer(const OpCall& call) {
  Shape out = spec_of(call, "mask").logical;
  std::vector<TensorSpec> values;
  for (const char* name : {"a", "b"}) {
    const TensorSpec* spec = call.tensor(name);
    if (spec == nullptr) continue;
    out = broadcast(call, out, spec->logical);
    values.push_back(*spec);
  }
  const DataType dtype = values.empty() ? spec_of(call, "mask").dtype : promoted(values);
  return {tiled(std::move(out), dtype)};
}

struct WhereTile {
  [[gnu::always_inline]] static inline void run(const float* mask, const float* a, const float* b, float* out) {
    for (int i = 0; i < tile_elements; ++i) {
      const float x = a[i], y = b[i];
      out[i] = mask[i] != 0.0F ? x : y;
    }
  }
};

bool of_integers(const OpCall& call) { return infer(call)[0].dtype == DataType::int32; }

ttc::Refusal supports(const OpCall& call) {
  if (auto no = any_tiles(call)) return no;
  const TensorSpec *a = call.tensor("a"), *b = call.tensor("b");
  const auto integers = [](const TensorSpec* spec) { return spec->dtype == DataType::int32; };
  if (!is_float_format(spec_of(call, "mask").dtype)) return Reason{ReasonCode::DtypeUnsupported, "the mask is no mask"};
  if (a != nullptr && b != nullptr && integers(a) != integers(b))
    return Reason{ReasonCode::DtypeUnsupported, "an integer and a float to choose from"};
  return std::nullopt;
}

// A number as an element of the result has it; integers by their bits.
float number_in(const OpCall& call, std::string_view name) {
  const double value = call.number(name);
  return of_integers(call) ? std::bit_cast<float>(static_cast<std::int32_t>(value)) : static_cast<float>(value);
}

// Choosing computes nothing: exact and fast are one, and integers are moved by their bits.
Kernel prepare(const OpCall& call, const PrepareContext&) {
  const TensorSpec spec = as_bits(infer(call)[0]);
  const TileGroups out{TileGrid(spec)};
  const BroadcastOperand mask(spec_of(call, "mask"), spec);
  std::optional<BroadcastOperand> choices[2];
  float numbers[2];
  int at[2];
  for (int i = 0; i < 2; ++i) {
    const std::string_view name = i == 0 ? "a" : "b";
    at[i] = call.tensor_index(name);
    if (const TensorSpec* tensor = call.tensor(name)) choices[i].emplace(as_bits(*tensor), spec);
    numbers[i] = number_in(call, i == 0 ? "a_number" : "b_number");
  }
  return [=, a = choices[0], b = choices[1], at_a = at[0], at_b = at[1], number_a = numbers[0],
          number_b = numbers[1]](const KernelArgs& args) {
    const std::byte* pm = args.in[0]->data();
    const std::byte* pa = a ? args.in[static_cast<std::size_t>(at_a)]->data() : nullptr;
    const std::byte* pb = b ? args.in[static_cast<std::size_t>(at_b)]->data() : nullptr;
    std::byte* po = args.out[0]->data();
    parallel_for(out.count(), 32, [&](std::int64_t group) {
      alignas(64) float m[tile_elements], x[tile_elements], y[tile_elements];
      mask.load(pm, out, group, m);
      if (a)
        a->load(pa, out, group, x);
      else
        std::fill_n(x, tile_elements, number_a);
      if (b)
        b->load(pb, out, group, y);
      else
        std::fill_n(y, tile_elements, number_b);
      vectorised<WhereTile, const float*, const float*, const float*, float*>(m, x, y, x);
      out.store(Rounding::even, x, group, po, args.out[0]->padding_is_zero);
    });
  };
}

std::vector<RtValue> reference(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  const RtValue mask = aten.call("aten.ne.Scalar", {as_float(args[0]), 0.0})[0];
  const DType dtype = of_integers(call) ? DType::i64 : DType::f32;
  const auto side = [&](std::size_t i, std::string_view number) {
    return args[i].is_none() ? aten.call("aten.scalar_tensor.default", {call.number(number), dtype})[0]
                             : as_wide(as_float(args[i]));
  };
  return aten.call("aten.where.self", {mask, side(1, "a_number"), side(2, "b_number")});
}

Work work(const OpCall& call) { return vector_work(call, 5); }

// ---- tt.logical_not

struct NotTile {
  [[gnu::always_inline]] static inline void run(float* v) {
    for (int i = 0; i < tile_elements; ++i) v[i] = v[i] != 0.0F ? 0.0F : 1.0F;
  }
};

Kernel prepare_not(const OpCall& call, const PrepareContext&) {
  const TileGrid grid(spec_of(call, "x"));
  return [=](const KernelArgs& args) {
    const std::byte* in = args.in[0]->data();
    std::byte* out = args.out[0]->data();
    parallel_for(grid.tiles(), 32, [&](std::int64_t t) {
      alignas(64) float v[tile_elements];
      load_tile(grid.dtype, in + t * grid.bytes, v);
      vectorised<NotTile, float*>(v);
      zero_outside(v, grid.rows_in(t), grid.cols_in(t));
      store_tile(grid.dtype, Rounding::even, v, out + t * grid.bytes);
    });
  };
}

std::vector<RtValue> reference_not(Reference& aten, const OpCall&, std::span<const RtValue> args) {
  const RtValue out = aten.call("aten.logical_not.default", {as_float(args[0])})[0];
  return {as_dtype(out, DType::f32)};
}

ttc::Refusal emit(PythonCall& to) {
  Python made("ttnn.where");
  made.arg(to.operand("mask"));
  for (const char* name : {"a", "b"}) {
    const std::string tensor = to.operand(name);
    made.arg(!tensor.empty() ? tensor : python_number(to.call.number(std::string(name) + "_number")));
  }
  to.result(made.key("memory_config", to.memory_config()));
  return std::nullopt;
}

const OpRecord where{
    .name = "tt.where",
    .summary = "a where the mask is set, else b; each a tensor or a number",
    .schema = "(Tensor mask, Tensor? a=None, Tensor? b=None, float a_number=0.0, float b_number=0.0) -> Tensor",
    .lowers = {{"aten.where.self", lower_where},
               {"aten.where.ScalarOther", lower_where},
               {"aten.where.Scalar", lower_numbers},
               {"aten.where.ScalarSelf", lower_where},
               {"aten.masked_fill.Scalar", lower_masked_fill},
               {"aten.masked_fill.Tensor", lower_masked_fill}},
    .operands = {{"mask", OperandKind::boolean}, {"a", OperandKind::any}, {"b", OperandKind::any}},
    .infer = infer,
    .supports = supports,
    .prepare = prepare,
    .reference = reference,
    .work = work,
    .tolerance = equal_results,
    .cases = {{"two tensors", R"(graph main(%m: bool[3, 40] user, %a: f32[3, 40] user, %b: f32[3, 40] user) {
  %y: f32[3, 40] = aten.where.self(%m, %a, %b)
  return %y
})"},
              {"a mask that broadcasts, a tensor of one element",
               R"(graph main(%m: bool[5, 1] user, %a: f32[2, 5, 64] user, %b: f32[] user) {
  %y: f32[2, 5, 64] = aten.where.self(%m, %a, %b)
  return %y
})"},
              {"a number", R"(graph main(%m: bool[1, 7, 33] user, %a: f32[1, 7, 33] user) {
  %y: f32[1, 7, 33] = aten.where.ScalarOther(%m, %a, -2.0)
  return %y
})"},
              {"integers", R"(graph main(%m: bool[3, 40] user, %a: i64[3, 40] user, %b: i64[40] user) {
  %n: i64[3, 40] = aten.sub.Tensor(%a, 30)
  %y: i64[3, 40] = aten.where.self(%m, %n, %b)
  return %y
})"},
              {"an integer and a number", R"(graph main(%m: bool[1, 7, 33] user, %a: i64[1, 7, 33] user) {
  %y: i64[1, 7, 33] = aten.where.ScalarOther(%m, %a, -7)
  return %y
})"},
              {"booleans", R"(graph main(%m: bool[3, 40] user, %a: bool[3, 40] user, %b: bool[40] user) {
  %y: bool[3, 40] = aten.where.self(%m, %a, %b)
  return %y
})"},
              {"numbers", R"(graph main(%m: bool[3, 40] user) {
  %y: f32[3, 40] = aten.where.Scalar(%m, -1.5, 2)
  return %y
})"},
              {"masked fill", R"(graph main(%m: bool[2, 1, 64] user, %a: f32[2, 5, 64] user) {
  %y: f32[2, 5, 64] = aten.masked_fill.Scalar(%a, %m, -100.0)
  return %y
})"}},
    .emit = emit,
};
TTRT_REGISTER_OP(where);

const OpRecord logical_not{
    .name = "tt.logical_not",
    .summary = "1 where the mask is not set",
    .schema = "(Tensor x) -> Tensor",
    .lowers = {{"aten.logical_not.default", lower_not}, {"aten.bitwise_not.default", lower_not}},
    .operands = {{"x", OperandKind::boolean}},
    .infer = same_as_x,
    .supports = float_tiles,
    .prepare = prepare_not,
    .reference = reference_not,
    .work = work,
    .tolerance = equal_results,
    .cases = {{"logical", R"(graph main(%m: bool[3, 40] user, %a: f32[3, 40] user) {
  %n: bool[3, 40] = aten.logical_not.default(%m)
  %y: f32[3, 40] = aten.masked_fill.Scalar(%a, %n, 0.0)
  return %y
})"},
              {"bitwise, of bools", R"(graph main(%m: bool[1, 7, 33] user, %a: f32[1, 7, 33] user) {
  %n: bool[1, 7, 33] = aten.bitwise_not.default(%m)
  %y: f32[1, 7, 33] = aten.masked_fill.Scalar(%a, %n, 0.0)
  return %y
})"}},
    .special_values = "denormals are zeros",
    .emit = emit_plain,
};
TTRT_REGISTER_OP(logical_not);

}  // namespace
}  // namespace ttrt::ops::where_op
