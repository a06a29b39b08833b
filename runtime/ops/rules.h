// What op records share: shape rules, checks of ATen arguments while lowering, and pieces of references.
#pragma once

#include <initializer_list>
#include <string>

#include "ops/op.h"

namespace ttrt::ops {

// ---- shapes --------------------------------------------------------------------------------------------------------

// TILE layout, interleaved DRAM.
TensorSpec tiled(Shape shape, DataType dtype);
// dim in [-rank, rank) -> [0, rank) (rank 0 counts as 1). Throws ttc::Error naming `call`.
std::int64_t wrap_dim(const OpCall& call, std::int64_t dim, std::size_t rank);
// A set of dims, wrapped, sorted, each once; an empty list means all.
std::vector<std::int64_t> wrap_dims(const OpCall& call, const std::vector<std::int64_t>& dims, std::size_t rank);
// The shape both broadcast to. Throws ttc::Error where they do not.
Shape broadcast(const OpCall& call, const Shape& a, const Shape& b);
// `sizes` with its -1 filled in so that the volume is `numel`. Throws where that cannot be.
Shape resolve_sizes(const OpCall& call, const Shape& sizes, std::int64_t numel);
[[noreturn]] void bad_call(const OpCall& call, const std::string& what);

const TensorSpec& spec_of(const OpCall& call, std::string_view name);  // of a tensor that must be there
std::vector<TensorSpec> same_as_x(const OpCall& call);                 // one result like argument "x"
// float32 where an operand is, else bfloat16; int32 where all operands are.
DataType promoted(std::span<const TensorSpec> specs);

// ---- limits of kernels ---------------------------------------------------------------------------------------------

// Every operand tiled and bfloat16 or float32.
ttc::Refusal float_tiles(const OpCall& call);
// Every operand tiled and int32.
bool all_int32(const OpCall& call);
// float_tiles, or all operands int32 in tiles.
ttc::Refusal float_or_int_tiles(const OpCall& call);
// The refusal of a sum of nothing: a product with an inner dim of 0, a reduction over one.
ttc::Reason no_terms();
// Every operand tiled, in any format.
ttc::Refusal any_tiles(const OpCall& call);

// ---- lowering ------------------------------------------------------------------------------------------------------

// The arguments of an ATen node by name; None where the schema has no such argument.
class AtenArgs {
 public:
  explicit AtenArgs(const LowerContext& context) : node_(context.node) {}
  const ttc::ir::Arg& operator[](std::string_view name) const;
  const ttc::ir::Arg& at(std::size_t i) const { return node_.arg(i); }
  const ttc::ir::Node& node() const { return node_; }
  std::optional<std::int64_t> integer(std::string_view name) const { return (*this)[name].integer(); }
  std::optional<double> number(std::string_view name) const { return (*this)[name].number(); }
  bool given(std::string_view name) const { return !(*this)[name].is_none(); }
  // A literal that is absent, None, or equal to this number or bool.
  bool is(std::string_view name, double value) const;
  const ttc::ir::Type* type(std::string_view name) const;  // of a tensor operand; nullptr for other arguments
  std::optional<int> rank(std::string_view name) const;

 private:
  const ttc::ir::Node& node_;
};

ttc::Reason unsupported(std::string detail);
// float32, bfloat16 and float16 run in the activation format, float64 in float32; complex numbers and integers do not.
bool is_device_float(DType dtype);
// nullopt where the value is a float tensor of known rank.
ttc::Refusal check_float(const ttc::ir::Value& value, std::string_view what);
// nullopt where every tensor operand and every used result is one. Boolean and integer operands named in `except`
// (schema names) are let through.
ttc::Refusal check_floats(const LowerContext& context, std::initializer_list<std::string_view> except = {});
ttc::Refusal check_float_operands(const LowerContext& context, std::initializer_list<std::string_view> except = {});
// nullopt where every tensor operand and every used result is a float, a boolean or an integer, all of one kind where
// `alike`; what moves values without reading them takes. Booleans are floats of 0 and 1, integers int32.
ttc::Refusal check_values(const LowerContext& context);
ttc::Refusal check_alike(const LowerContext& context);
// True where this operand, or the result, is a tensor of integers.
bool is_integer(const ttc::ir::Value* value);
bool is_boolean(const ttc::ir::Value* value);
// nullopt where a dtype= argument is None or keeps the operand's kind: a wider dtype asks for precision that the
// activation format has already given up, which is only harmless where the result is as wide as the operand.
ttc::Refusal check_dtype_argument(const LowerContext& context);
// nullopt where results from `first` on have no uses.
ttc::Refusal check_unused(const ttc::ir::Node& node, std::size_t first);

// ---- references ----------------------------------------------------------------------------------------------------

// A float tensor as float32; everything else as it is.
RtValue as_float(const RtValue& value);
// An integer tensor as int64, in which sums of int32 cannot wrap; everything else as it is.
RtValue as_wide(const RtValue& value);
std::vector<RtValue> as_floats(std::span<const RtValue> values);
RtValue int_list(const std::vector<std::int64_t>& values);
// In another dtype. Tensors that are not the host's are left: LibTorch's tracers run references for the sizes alone, on
// tensors without elements, whose sizes may be symbols.
RtValue as_dtype(const RtValue& value, DType dtype);
bool has_elements(const RtValue& value);
// x padded by ATen's list, whose negative sizes cut.
std::vector<RtValue> padded(Reference& aten, RtValue x, const RtValue& pad, double value);

// ---- work ----------------------------------------------------------------------------------------------------------

// Every operand is read and every result written; the pieces are the tiles of the largest result.
Work moving_work(const OpCall& call);
// The same through unpacker and packer.
Work tile_work(const OpCall& call);
// tile_work, and this many vector instructions on each element of the largest result: a load and a store are two.
Work vector_work(const OpCall& call, double instructions);
// tile_work of a matrix product: that many products of tiles of the formats a and b. Its flops are the caller's to set.
Work product_work(const OpCall& call, double tile_products, DataType a, DataType b);

// ---- FLOPs ---------------------------------------------------------------------------------------------------------

// A dim of a value (negative: from behind) and its volume; nullopt where the binding does not say.
std::optional<double> dim_of(const ttc::ir::Value* value, int dim, const ttc::ir::SymBinding& shapes);
std::optional<double> volume_of(const ttc::ir::Value* value, const ttc::ir::SymBinding& shapes);
// Each element of the result is a sum over the last dim of this operand.
double product_flops(const ttc::ir::Node& node, const ttc::ir::Value* operand, const ttc::ir::SymBinding& shapes);
// Of a product whose first operand is the left matrix.
double matmul_flops(const ttc::ir::Node& node, const ttc::ir::SymBinding& shapes);

}  // namespace ttrt::ops
