// Operator schemas: argument names, types and defaults, whoever registered the operator.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/arg.h"

namespace ttc::ir {

struct SchemaArg {
  std::string name;
  std::string type;  // as in the schema text without alias annotation: "Tensor", "Tensor?", "SymInt[]", "Scalar"
  bool kwarg_only = false;
  bool mutated = false;  // Tensor(a!)
  std::optional<Arg> default_value;
};

struct OpSchema {
  std::string op;  // IR name: "aten.add.Tensor", "aten.linear.default", "tt.linear"
  std::vector<SchemaArg> args;
  std::vector<std::string> returns;  // types: "Tensor", "Tensor[]", "SymInt"
  std::vector<bool> returns_alias;   // result i aliases an argument (a view or an in-place result)
  bool varargs = false;              // accepts any operands (prim.* and higher-order operators)
  // What ATen's tags say beyond the signature; false for operators without tags.
  bool random = false;          // nondeterministic_seeded, takes a generator, or gives memory as it finds it
  bool inplace_view = false;    // changes the shape or strides of the tensor that it writes
  bool maybe_aliasing = false;  // may return an argument itself, whatever the signature says: dropout in inference
  bool transfer = false;        // moves its operand between host and device and computes nothing

  int index_of(std::string_view name) const;  // -1 where there is none
  bool mutates() const;                       // any argument is written
};

// Reads "ns::op.overload(Tensor a, *, int b=1) -> (Tensor, Tensor)" or the same without a name (`op` then gives it).
// Throws ttc::Error on malformed text.
OpSchema parse_schema(std::string_view text, std::string op = {});

// The schema of an operator by IR name; nullptr where nobody knows it. The pointer stays valid for the process.
// Asks the registered schemas first, then the resolver, which bridges to LibTorch's operator registry. Names that start
// with prim., higher_order., _operator., math. or torch. and are registered nowhere get a schema with `varargs` set.
const OpSchema* find_schema(std::string_view op);
// Under schema.op; the first registration of a name stays, and is what it gives.
const OpSchema* register_schema(OpSchema schema);
using SchemaResolver = std::function<std::optional<OpSchema>(std::string_view op)>;
void set_schema_resolver(SchemaResolver resolver);

// "aten.add.Tensor" <-> ("aten::add", "Tensor"); overload "default" is "" in LibTorch. tt ops and prim ops have no
// overload in the IR.
std::pair<std::string, std::string> torch_op_name(std::string_view op);

}  // namespace ttc::ir
