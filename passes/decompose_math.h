// Formulas over tensors that broadcast, for passes that write one operator out as others.
#pragma once

#include <string>
#include <vector>

#include "decompose.h"

namespace ttc {

// Every tensor operand and the one result have known ranks and dtypes.
bool known_tensors(const ir::Node& node);
// Tensor operands and the result are of one float dtype that the device computes in some format.
bool same_floats(const ir::Node& node);

class Math : public Decomposer {
 public:
  explicit Math(ir::Node* node) : Decomposer(node) {}

  // f(x, numbers...), of the type of x.
  ir::Value* unary(const std::string& op, ir::Value* x, const std::vector<double>& numbers = {});
  // f(a, b), which broadcast; one of them may be a number. Of the dtype of the tensor.
  ir::Value* binary(const std::string& op, const ir::Arg& a, const ir::Arg& b);
  // The same with a mask as the result.
  ir::Value* compare(const std::string& op, const ir::Arg& a, const ir::Arg& b);
  // aten.where of this overload; of the dtype of the tensor among the two, float32 where there is none.
  ir::Value* choose(const std::string& op, ir::Value* mask, const ir::Arg& yes, const ir::Arg& no);
  ir::Value* reduce(const std::string& op, ir::Value* x, const std::vector<std::int64_t>& dims, bool keep);
  ir::Value* squeeze(ir::Value* x, const std::vector<std::int64_t>& dims);  // dims of size 1
  ir::Value* unsqueeze(ir::Value* x, int dim);

  // False where sizes met that do not broadcast, or the value is not of the type asked for.
  bool fits(const ir::Value* made, const ir::Value* wanted) const;

 private:
  std::vector<ir::SymExpr> common_sizes(std::initializer_list<const ir::Arg*> args);
  bool good_ = true;
};

}  // namespace ttc
