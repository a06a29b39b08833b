// The binder: a caller's arguments for an op record become a call that can be checked, priced, prepared and run. The
// compiler, the executor, the library for stock PyTorch, single operators, `ttc explain`, replay and the op harness
// all go through it; what each of them adds is where its arguments come from.
//
//   auto bound = bind_call(*find_op("tt.softmax"), std::vector<RtValue>{x, RtValue(std::int64_t{-1})});
//   if (const auto* reason = std::get_if<ttc::Reason>(&bound)) ...      // no call of this op
//   const auto& call = std::get<BoundCall>(bound);
//   if (const ttc::Refusal limits = call.refusal()) ...                 // no kernel: call.reference(torch, values)
//   auto y = call.run(args, device);                                    // uploads what is on the host
//
// An argument is an RtValue, in schema order; trailing defaults may be left out, arguments by name are put in order by
// schema_order(). Literals are converted as ops/literals.h says; None stays None. Of tensors binding reads only
//   DeviceTensor, ResidentTensor: the spec, which the operand keeps. No buffer is needed: DeviceTensor{.spec = s} says
//     "a tensor like this".
//   HostTensor: dtype and sizes, no bytes. On the device it has the format that operand_format() gives.
// A constant that the record packs gets the spec that its pack rule takes from the call's literals.
#pragma once

#include "device/device.h"
#include "ir/op_schema.h"
#include "ops/literals.h"

namespace ttrt {

using Keyword = std::pair<std::string, RtValue>;

// How an operand of `record` reaches the device, by the name it has in the schema.
OperandKind operand_kind(const OpRecord& record, std::string_view name);
// The format in which a host value of this dtype reaches an operand of this kind; nullopt where there is none.
std::optional<DataType> operand_format(OperandKind kind, DType dtype, DataType activation);
// The rule by which this operand is packed; nullptr for the others.
const Packed* pack_rule(const OpRecord& record, std::string_view name);
// A constant as its tiles hold it, in the spec's shape, and such values back in the constant's own sizes.
HostTensor packed_matrix(const HostTensor& constant, const Packed& rule, const TensorSpec& spec);
HostTensor unpacked_constant(const HostTensor& matrix, const Packed& rule, const Shape& sizes);

// The arguments of an operator in schema order, trailing ones left out where nobody gives them. A Reason where there
// are too many, one is given twice or has no such name, or one without a default is missing.
std::variant<std::vector<RtValue>, ttc::Reason> schema_order(const ttc::ir::OpSchema& schema,
                                                             std::span<const RtValue> args,
                                                             std::span<const Keyword> kwargs);
// The tensor on the device that this is; nullptr for everything else.
const DeviceTensor* device_tensor(const RtValue& value);
// The tensors among arguments, lists included, in order: parallel to the tensors of the call that they are bound to.
std::vector<const RtValue*> tensors_of(std::span<const RtValue> args);

struct BindOptions {
  DataType activation = DataType::bfloat16;  // the format of host values at operands of that kind
  Arch arch = Arch::wormhole;                // of which the op library's configuration is taken where the call has None
};

struct BoundOperand {
  OperandKind kind = OperandKind::activation;
  const Packed* packed = nullptr;  // the rule by which a constant becomes its tiles
};

struct BoundCall {
  OpCall call;                         // arguments in schema order, defaults filled in
  std::vector<BoundOperand> operands;  // parallel to call.tensors

  const OpRecord& record() const { return *call.op; }
  // Specs of the results. Throws ttc::Error on arguments that can never be right.
  std::vector<TensorSpec> results() const { return record().infer(call); }
  // Why the kernels do not serve the call: the record's limits, arguments that can never be right, or that the op is
  // no kernel of its own (tt.to_device).
  ttc::Refusal refusal() const;
  // The kernel, or that the record has none for these numerics. Precondition: no refusal().
  std::variant<Kernel, ttc::Reason> prepare(const PrepareContext& context) const;
  // The value of operand i on the device, in the call's spec: what is there stays, the rest is packed by its rule or
  // converted. RangeError where an integer does not fit.
  DeviceTensor upload(std::size_t i, const RtValue& value, Device& device) const;
  // Runs once on the arguments that were bound, or others of their dtypes and shapes, and gives the results; a Reason
  // where there is no kernel. Throws what upload() and allocate() throw.
  std::variant<std::vector<DeviceTensor>, ttc::Reason> run(std::span<const RtValue> args, Device& device,
                                                           Numerics numerics = Numerics::fast) const;
  // The record's CPU reference. `tensors`: host values parallel to call.tensors; packed constants unpacked, as float32
  // in their spec's shape. Throws ttc::Error where the record has none.
  std::vector<RtValue> reference(Reference& torch, std::span<const RtValue> tensors) const;
};

// A Reason where the arguments make no call of this op: one is missing, a tensor stands where a literal must or the
// other way round, a literal is not of the schema's type or a word that the record does not know, a dtype has no
// format.
std::variant<BoundCall, ttc::Reason> bind_call(const OpRecord& record, std::span<const RtValue> args,
                                               const BindOptions& options = {});

}  // namespace ttrt
