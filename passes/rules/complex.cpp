// Complex arithmetic between view_as_complex and view_as_real, as rotary embeddings use it, on pairs of real numbers:
// a complex tensor of shape [..] is the real one of shape [.., 2]. Starts at each view_as_real and goes back as far as
// the operators are known; what lies before them stays complex and is viewed as real there.
#include <map>

#include "../decompose.h"

namespace ttc {
namespace {

using ir::Node;
using ir::SymExpr;
using ir::Type;
using ir::Value;

// Builds the pairs of complex values, each once per root.
class Pairs {
 public:
  explicit Pairs(Rewriter& r) : r_(r) {}

  // nullptr: nothing is known of the value but that it can be viewed as real.
  Value* known(Value* z) {
    const auto found = made_.find(z);
    if (found != made_.end()) return found->second;
    Value* made = z->def() && z->index() == 0 && z->type.has_shape ? build(*z->def()) : nullptr;
    return made_[z] = made;
  }

 private:
  Value* pair(Value* z) {
    if (Value* made = known(z)) return made;
    return made_[z] = r_.emit("aten.view_as_real.default", {z}, pair_type(z));
  }

  static Type pair_type(const Value* z) {
    Type type = z->type;
    type.dtype = z->type.dtype == DType::c128 ? DType::f64 : DType::f32;
    type.sizes.emplace_back(2);
    type.strides.clear();
    return type;
  }
  static Type part_type(const Value* z) {
    Type type = pair_type(z);
    type.sizes.pop_back();
    return type;
  }

  Value* part(Value* z, std::int64_t which) { return r_.emit("aten.select.int", {pair(z), -1, which}, part_type(z)); }

  Value* stacked(Value* re, Value* im, const Value* z) {
    return r_.emit("aten.stack.default", {ir::Arg::List{re, im}, -1}, pair_type(z));
  }

  Value* build(Node& node) {
    const std::string& op = node.op();
    Value* z = node.result();
    if (op == "aten.view_as_complex.default") return node.operand(0);
    if (op == "aten.polar.default") {
      const auto times = [&](const char* f) {
        Value* curve = r_.emit_like(f, {node.operand(1)}, node.operand(1));
        return r_.emit("aten.mul.Tensor", {node.operand(0), curve}, part_type(z));
      };
      return stacked(times("aten.cos.default"), times("aten.sin.default"), z);
    }
    if (op == "aten.mul.Tensor" && node.operand(0) && node.operand(1)) return product(node);
    return moved(node);
  }

  Value* product(Node& node) {
    Value *a = node.operand(0), *b = node.operand(1), *z = node.result();
    if (!is_complex(a->type.dtype) || !is_complex(b->type.dtype)) return nullptr;
    Value *ar = part(a, 0), *ai = part(a, 1), *br = part(b, 0), *bi = part(b, 1);
    const auto make = [&](const char* f, Value* x, Value* y) { return r_.emit(f, {x, y}, part_type(z)); };
    Value* re = make("aten.sub.Tensor", make("aten.mul.Tensor", ar, br), make("aten.mul.Tensor", ai, bi));
    Value* im = make("aten.add.Tensor", make("aten.mul.Tensor", ar, bi), make("aten.mul.Tensor", ai, br));
    return stacked(re, im, z);
  }

  // Operators that move elements do the same to pairs, the dim of the parts being one more at the end.
  Value* moved(Node& node) {
    const std::string& op = node.op();
    Value* z = node.result();
    if (!node.operand(0) || !is_complex(node.operand(0)->type.dtype)) return nullptr;
    const int rank = node.operand(0)->type.rank();
    std::vector<ir::Arg> args = node.args();
    if (op == "aten.unsqueeze.default" || op == "aten.slice.Tensor" || op == "aten.select.int") {
      const auto dim = match::dim_argument(&args[1], op == "aten.unsqueeze.default" ? rank + 1 : rank);
      if (!dim) return nullptr;
      args[1] = *dim;
    } else if (op == "aten.transpose.int") {
      for (std::size_t i = 1; i < 3; ++i) {
        const auto dim = match::dim_argument(&args[i], rank);
        if (!dim) return nullptr;
        args[i] = *dim;
      }
    } else if (op == "aten.reshape.default" || op == "aten.expand.default") {
      ir::Arg::List* sizes = args[1].list();
      if (!sizes) return nullptr;
      sizes->emplace_back(2);
    } else if (!match::is_identity(node)) {
      return nullptr;
    } else {
      return pair(node.operand(0));
    }
    args[0] = pair(node.operand(0));
    return r_.emit(op, std::move(args), pair_type(z));
  }

  Rewriter& r_;
  std::map<Value*, Value*> made_;
};

Values as_pair(Rewriter& r, Node* node) {
  Value* z = node->operand(0);
  return z->def() && z->type.has_shape ? Pairs(r).known(z) : nullptr;
}

}  // namespace

RulePart complex_rules() { return {"complex", nullptr, false, {{{"aten.view_as_real.default"}, as_pair}}}; }

}  // namespace ttc
