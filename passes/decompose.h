// Building the operators that one fused operator stands for.
#pragma once

#include <string>
#include <vector>

#include "common.h"

namespace ttc {

// Inserts nodes before the one that is decomposed; they take its provenance.
class Decomposer {
 public:
  explicit Decomposer(ir::Node* fused) : fused_(fused) {}

  ir::Value* emit(std::string op, std::vector<ir::Arg> args, ir::Type type);
  // Of the type of `like`.
  ir::Value* emit_like(std::string op, std::vector<ir::Arg> args, const ir::Value* like) {
    return emit(std::move(op), std::move(args), like->type);
  }
  // With a result for each of those of `like`, of their types.
  std::vector<ir::Value*> emit_all(std::string op, std::vector<ir::Arg> args, const ir::Node& like);
  // x w^T + b over the last dim; `bias` may be none.
  ir::Value* linear(ir::Value* x, ir::Value* weight, const ir::Arg& bias);
  ir::Value* reshape(ir::Value* x, const std::vector<ir::SymExpr>& sizes);
  ir::Value* transpose(ir::Value* x, int a, int b);
  // x[..., begin:end, ...]
  ir::Value* slice(ir::Value* x, int dim, std::int64_t begin, std::int64_t end);
  std::vector<ir::Value*> split(ir::Value* x, int dim, std::int64_t parts);

 private:
  ir::Node* fused_;
};

// Puts `values` in the place of the node's results and erases it; nullptr for results that nobody uses.
void finish_decomposition(PassContext& context, std::string_view pass, ir::Node* node,
                          const std::vector<ir::Value*>& values);

}  // namespace ttc
