// Complex arithmetic as that of real and imaginary parts: spectra, as products with matrices of sines and cosines
// (definitions_signals.cpp), rotary embeddings, what state-space models make of their poles. A rule starts where a
// complex value becomes real again (view_as_real, real, imag, abs, angle) and goes back as far as the operators are
// known; what lies before them stays complex and is viewed as real there. A complex tensor of shape [..] is two real
// ones of that shape, or the real one of shape [.., 2] that it was made of.
#include <algorithm>
#include <complex>
#include <map>
#include <set>

#include "../decompose.h"
#include "../replacement.h"

namespace ttc {
namespace {

using ir::Arg;
using ir::Node;
using ir::SymExpr;
using ir::Type;
using ir::Value;

// At least one member: parts, the pair, or both. No part: nothing is known but that the value can be viewed as real.
struct Complex {
  Value *re = nullptr, *im = nullptr, *pair = nullptr;
  explicit operator bool() const { return re != nullptr || pair != nullptr; }
};

bool complex_value(const Value* x) { return x != nullptr && x->type.is_tensor() && is_complex(x->type.dtype); }

DType part_dtype(const Value* z) { return z->type.dtype == DType::c128 ? DType::f64 : DType::f32; }

Type part_type(const Value* z) {
  Type type = z->type;
  type.dtype = part_dtype(z);
  type.strides.clear();
  return type;
}

Type pair_type(const Value* z) {
  Type type = part_type(z);
  type.sizes.emplace_back(2);
  return type;
}

// Operators that do to a complex tensor what they do to its real and its imaginary part.
bool is_linear_move(std::string_view op) {
  static const std::set<std::string_view> ops{"aten.unsqueeze.default",
                                              "aten.squeeze.dim",
                                              "aten.squeeze.dims",
                                              "aten.slice.Tensor",
                                              "aten.select.int",
                                              "aten.transpose.int",
                                              "aten.permute.default",
                                              "aten.reshape.default",
                                              "aten.expand.default",
                                              "aten.flatten.using_ints",
                                              "aten.unflatten.int",
                                              "aten.flip.default",
                                              "aten.index_select.default",
                                              "aten.index.Tensor",
                                              "aten.cat.default",
                                              "aten.stack.default",
                                              "aten.slice_scatter.default",
                                              "aten.select_scatter.default",
                                              "aten.constant_pad_nd.default",
                                              "aten.neg.default",
                                              "aten.where.self",
                                              "aten.sum.dim_IntList",
                                              "aten.sum.default",
                                              "aten.mean.dim",
                                              "aten.mean.default",
                                              "aten.cumsum.default"};
  return ops.contains(op);
}

// Builds the parts of complex values, each once per root.
class Parts {
 public:
  explicit Parts(Rewriter& r) : r_(r) {}

  Complex known(Value* z) {
    const auto found = made_.find(z);
    if (found != made_.end()) return found->second;
    const Complex made = z->def() && z->index() == 0 && z->type.has_shape ? build(*z->def()) : Complex{};
    return made_[z] = made;
  }
  Value* pair(Value* z) {
    Complex& known_z = parts_or_view(z);
    if (known_z.pair == nullptr)
      known_z.pair = r_.emit("aten.stack.default", {Arg::List{known_z.re, known_z.im}, -1}, pair_type(z));
    return known_z.pair;
  }
  Value* re(Value* z) { return part(z, 0); }
  Value* im(Value* z) { return part(z, 1); }

  // The square of the absolute value.
  Value* square(Value* z) { return sum(mul(re(z), re(z), z), mul(im(z), im(z), z), z); }

 private:
  Complex& parts_or_view(Value* z) {
    if (!known(z)) made_[z].pair = r_.emit("aten.view_as_real.default", {z}, pair_type(z));
    return made_[z];
  }
  Value* part(Value* z, std::int64_t which) {
    const Complex known_z = parts_or_view(z);
    if (known_z.re != nullptr) return which == 0 ? known_z.re : known_z.im;
    return r_.emit("aten.select.int", {known_z.pair, -1, which}, part_type(z));
  }

  Value* emit(const char* op, std::vector<Arg> args, const Value* z) {
    return r_.emit(op, std::move(args), part_type(z));
  }
  Value* mul(const Arg& a, const Arg& b, const Value* z) { return emit("aten.mul.Tensor", {a, b}, z); }
  Value* sum(const Arg& a, const Arg& b, const Value* z) { return emit("aten.add.Tensor", {a, b}, z); }
  Value* difference(const Arg& a, const Arg& b, const Value* z) { return emit("aten.sub.Tensor", {a, b}, z); }
  Value* zeros(Value* like, const Value* z) { return emit("aten.full_like.default", {like, 0.0, part_dtype(z)}, z); }
  // What broadcasts to the sizes of z, at these; nullptr where the graph has one of them nowhere.
  Value* spread(Value* x, const Value* z) {
    if (x == nullptr || match::same_shape(x->type, z->type)) return x;
    auto sizes = r_.sizes(z->type.sizes);
    return sizes ? emit("aten.expand.default", {x, std::move(*sizes)}, z) : nullptr;
  }

  // aten.mul.Tensor, or a product of matrices: each operand is complex or real, a number too where `op` takes one.
  Complex product(const char* op, const Arg& a, const Arg& b, Value* z) {
    Value *x = a.value(), *y = b.value();
    const auto make = [&](const Arg& p, const Arg& q) { return emit(op, {p, q}, z); };
    if (complex_value(x) && complex_value(y)) {
      Value *xr = re(x), *xi = im(x), *yr = re(y), *yi = im(y);
      return {.re = difference(make(xr, yr), make(xi, yi), z), .im = sum(make(xr, yi), make(xi, yr), z)};
    }
    if (const auto* number = b.get_if<std::complex<double>>(); number && x) return scaled(x, *number, z);
    if (complex_value(x)) return real_factor(a, b) ? Complex{.re = make(re(x), b), .im = make(im(x), b)} : Complex{};
    if (!complex_value(y) || !real_factor(b, a)) return {};
    return {.re = make(a, re(y)), .im = make(a, im(y))};
  }
  // A tensor of either kind times a complex number.
  Complex scaled(Value* x, std::complex<double> by, Value* z) {
    if (!complex_value(x)) {
      if (x->type.dtype != part_dtype(z)) x = r_.cast(x, part_dtype(z));
      return {.re = mul(x, by.real(), z), .im = mul(x, by.imag(), z)};
    }
    Value *xr = re(x), *xi = im(x);
    return {.re = difference(mul(xr, by.real(), z), mul(xi, by.imag(), z), z),
            .im = sum(mul(xr, by.imag(), z), mul(xi, by.real(), z), z)};
  }
  // Of the dtype of the other's parts, or a number: nothing is promoted here.
  static bool real_factor(const Arg& of, const Arg& arg) {
    if (!arg.value()) return arg.number().has_value();
    return arg.value()->type.is_tensor() && arg.value()->type.dtype == part_dtype(of.value());
  }

  Complex sum_or_difference(Node& node, Value* z) {
    if (number_of(node, "alpha", 1) != 1) return {};
    Value *x = node.arg(0).value(), *y = node.arg(1).value();
    const char* op = node.op() == "aten.add.Tensor" ? "aten.add.Tensor" : "aten.sub.Tensor";
    if (complex_value(x) && complex_value(y)) {
      Value *xr = re(x), *xi = im(x), *yr = re(y), *yi = im(y);
      return {.re = emit(op, {xr, yr}, z), .im = emit(op, {xi, yi}, z)};
    }
    const bool first = complex_value(x);
    if (const auto* number = node.arg(1).get_if<std::complex<double>>(); number && first)
      return {.re = emit(op, {re(x), number->real()}, z), .im = emit(op, {im(x), number->imag()}, z)};
    if ((!first && !complex_value(y)) || !real_factor(node.arg(first ? 0 : 1), node.arg(first ? 1 : 0))) return {};
    Value* other = im(first ? x : y);
    if (!first && node.op() == "aten.sub.Tensor") other = emit("aten.neg.default", {other}, other);
    Value* imaginary = spread(other, z);
    if (imaginary == nullptr) return {};
    const Arg left = first ? Arg(re(x)) : node.arg(0), right = first ? node.arg(1) : Arg(re(y));
    return {.re = emit(op, {left, right}, z), .im = imaginary};
  }

  Complex quotient(Node& node, Value* z) {
    if (node.args().size() > 2 && !node.arg(2).is_none()) return {};
    Value *x = node.arg(0).value(), *y = node.arg(1).value();
    const auto over = [&](const Arg& a, const Arg& b) { return emit("aten.div.Tensor", {a, b}, z); };
    if (!complex_value(y))
      return complex_value(x) && real_factor(node.arg(0), node.arg(1))
                 ? Complex{.re = over(re(x), node.arg(1)), .im = over(im(x), node.arg(1))}
                 : Complex{};
    if (!complex_value(x)) return {};
    Value *xr = re(x), *xi = im(x), *yr = re(y), *yi = im(y), *norm = square(y);
    return {.re = over(sum(mul(xr, yr, z), mul(xi, yi, z), z), norm),
            .im = over(difference(mul(xi, yr, z), mul(xr, yi, z), z), norm)};
  }

  Complex inverse(Node& node, Value* z) {
    Value *x = node.operand(0), *norm = square(x);
    return {.re = emit("aten.div.Tensor", {re(x), norm}, z),
            .im = emit("aten.div.Tensor", {emit("aten.neg.default", {im(x)}, z), norm}, z)};
  }

  Complex turned(const Arg& length, Value* angle, Value* z) {
    const auto times = [&](const char* f) { return mul(length, r_.emit_like(f, {angle}, angle), z); };
    Value* imaginary = times("aten.sin.default");
    return {.re = times("aten.cos.default"), .im = imaginary};
  }

  // Of real numbers.
  Complex cast(Node& node, Value* z) {
    Value* x = node.operand(0);
    if (complex_value(x)) return {};
    Value* real = x->type.dtype == part_dtype(z) ? x : r_.cast(x, part_dtype(z));
    return {.re = real, .im = zeros(real, z)};
  }

  // full, full_like and their like: the same call of the dtype of the parts.
  Complex filled(Node& node, Value* z) {
    const ir::OpSchema* schema = node.schema();
    std::vector<Arg> args = node.args();
    Complex out;
    for (std::size_t i = 0; schema != nullptr && i < args.size(); ++i) {
      if (schema->args[i].name == "fill_value" && !args[i].number()) return {};
      if (schema->args[i].name == "dtype") args[i] = part_dtype(z);
      if (args[i].value() && complex_value(args[i].value())) args[i] = re(args[i].value());
    }
    if (schema == nullptr || args.size() < 2) return {};
    out.re = r_.emit(node.op(), std::move(args), part_type(z));
    out.im = zeros(out.re, z);
    return out;
  }

  Complex build(Node& node) {
    const std::string& op = node.op();
    Value* z = node.result();
    if (!complex_value(z)) return {};
    if (op == "aten.view_as_complex.default") return {.pair = node.operand(0)};
    if (op == "aten.complex.default") return {.re = node.operand(0), .im = node.operand(1)};
    if (op == "aten.polar.default") return turned(node.operand(0), node.operand(1), z);
    if (op == "aten.full.default" || op == "aten.full_like.default") return filled(node, z);
    if (op == "aten.to.dtype" || op == "aten._to_copy.default")
      if (const Complex made = cast(node, z)) return made;
    if (is_linear_move(op)) return moved(node, z);
    if (!node.operand(0) || !node.operand(0)->type.has_shape) return {};
    if (match::is_identity(node) || op == "aten.resolve_conj.default" || op == "aten.resolve_neg.default")
      return complex_value(node.operand(0)) ? same(node.operand(0)) : Complex{};
    if (op == "aten.mul.Tensor") return product("aten.mul.Tensor", node.arg(0), node.arg(1), z);
    if (op == "aten.mm.default" || op == "aten.bmm.default" || op == "aten.matmul.default")
      return product(op.c_str(), node.arg(0), node.arg(1), z);
    if (op == "aten.add.Tensor" || op == "aten.sub.Tensor") return sum_or_difference(node, z);
    if (op == "aten.div.Tensor") return quotient(node, z);
    return of_one(node, z);
  }

  Complex same(Value* x) {
    const Complex made = known(x);
    return made ? made : Complex{.pair = pair(x)};
  }

  // Functions of one complex tensor.
  Complex of_one(Node& node, Value* z) {
    const std::string& op = node.op();
    Value* x = node.operand(0);
    if (!complex_value(x)) return {};
    if (op == "aten._conj.default" || op == "aten.conj.default" || op == "aten.conj_physical.default" ||
        op == "aten._conj_physical.default")
      return {.re = re(x), .im = emit("aten.neg.default", {im(x)}, z)};
    if (op == "aten.exp.default") {
      Value* length = emit("aten.exp.default", {re(x)}, z);
      return turned(length, im(x), z);
    }
    if (op == "aten.reciprocal.default") return inverse(node, z);
    if (op == "aten.square.default" || (op == "aten.pow.Tensor_Scalar" && node.arg(1).number() == 2.0))
      return product("aten.mul.Tensor", x, x, z);
    return {};
  }

  // Moves that pairs can make too, the dim of the parts being one more at the end.
  bool moves_pair(const Node& node, std::vector<Arg>& args) const {
    const std::string& op = node.op();
    const int rank = node.operand(0)->type.rank();
    if (op == "aten.unsqueeze.default" || op == "aten.slice.Tensor" || op == "aten.select.int") {
      const auto dim = match::dim_argument(&args[1], op == "aten.unsqueeze.default" ? rank + 1 : rank);
      if (dim) args[1] = *dim;
      return dim.has_value();
    }
    if (op == "aten.transpose.int") {
      const auto a = match::dim_argument(&args[1], rank), b = match::dim_argument(&args[2], rank);
      if (a && b) args[1] = *a, args[2] = *b;
      return a && b;
    }
    if (op != "aten.reshape.default" && op != "aten.expand.default") return false;
    if (Arg::List* sizes = args[1].list()) sizes->emplace_back(2);
    return args[1].list() != nullptr;
  }

  // A part in the place of each complex tensor.
  void take_part(Arg& arg, std::int64_t which) {
    if (complex_value(arg.value())) arg = part(arg.value(), which);
    if (Arg::List* list = arg.list())
      for (Arg& item : *list) take_part(item, which);
  }

  Complex moved(Node& node, Value* z) {
    std::vector<Arg> args = node.args();
    const bool one = complex_value(node.operand(0));
    if (one && parts_or_view(node.operand(0)).re == nullptr && moves_pair(node, args)) {
      args[0] = pair(node.operand(0));
      return {.pair = r_.emit(node.op(), std::move(args), pair_type(z))};
    }
    for (const Value* x : node.operands())
      if (is_floating(x->type.dtype)) return {};  // promoted to complex numbers
    if (node.op() == "aten.constant_pad_nd.default" && number_of(node, "value", 0) != 0) return {};
    Complex out;
    for (const std::int64_t which : {0, 1}) {
      std::vector<Arg> mine = node.args();
      for (Arg& arg : mine) take_part(arg, which);
      for (std::size_t i = 0; node.schema() != nullptr && i < mine.size(); ++i)
        if (node.schema()->args[i].name == "dtype" && !mine[i].is_none()) mine[i] = part_dtype(z);
      (which == 0 ? out.re : out.im) = r_.emit(node.op(), std::move(mine), part_type(z));
    }
    return out;
  }

  Rewriter& r_;
  std::map<Value*, Complex> made_;
};

// What a root gives, of parts that are known.
using Root = Value* (*)(Rewriter& r, Parts& parts, Value* z);

template <Root root>
Values of_parts(Rewriter& r, Node* node) {
  Value* z = node->operand(0);
  if (!complex_value(z) || !z->def() || !z->type.has_shape) return {};
  Parts parts(r);
  return parts.known(z) ? Values(root(r, parts, z)) : Values();
}

Value* pair_of(Rewriter&, Parts& parts, Value* z) { return parts.pair(z); }
Value* real_of(Rewriter&, Parts& parts, Value* z) { return parts.re(z); }
Value* imaginary_of(Rewriter&, Parts& parts, Value* z) { return parts.im(z); }

Value* absolute(Rewriter& r, Parts& parts, Value* z) {
  Value* square = parts.square(z);
  return r.emit_like("aten.sqrt.default", {square}, square);
}

Value* angle(Rewriter& r, Parts& parts, Value* z) {
  return r.emit("aten.atan2.default", {parts.im(z), parts.re(z)}, part_type(z));
}

bool of_complex(const Node& node) { return !of_reals(node); }

// Whether something that reads the value, or what is made of it, gives real numbers.
bool becomes_real(const Value* z, std::set<const Value*>& seen) {
  if (!complex_value(z)) return z->has_uses();
  if (!seen.insert(z).second) return false;
  return std::ranges::any_of(std::vector<Node*>(z->users()), [&](const Node* user) {
    return std::ranges::any_of(user->results(), [&](const auto& made) { return becomes_real(made.get(), seen); });
  });
}

// What LibTorch, or definitions_signals.cpp, makes of operators on complex numbers, where the user leaves it to us and
// the parts are asked for.
Values written_out(Rewriter& r, Node* node) {
  std::set<const Value*> seen;
  if (!known_tensors(*node) || !has_elements(*node) || user_refusal(r.context(), *node, "") ||
      std::ranges::none_of(node->results(), [&](const auto& made) { return becomes_real(made.get(), seen); }))
    return {};
  return as_defined_of_any(r, node);
}

}  // namespace

RulePart complex_rules() {
  return {"complex",
          nullptr,
          false,
          {{{"aten.view_as_real.default"}, of_parts<pair_of>},
           {{"aten.real.default"}, of_parts<real_of>},
           {{"aten.imag.default"}, of_parts<imaginary_of>},
           {{"aten.abs.default"}, of_parts<absolute>},
           {{"aten.angle.default"}, of_parts<angle>}}};
}

// What LibTorch defines by others; those, which part transforms takes, have to be seen where their results are used.
RulePart spectrum_rules() {
  return {"spectra",
          nullptr,
          false,
          {{{"aten.fft_fft.default", "aten.fft_ifft.default", "aten.fft_rfft.default", "aten.fft_irfft.default",
             "aten.fft_hfft.default", "aten.fft_ihfft.default", "aten.fft_fft2.default", "aten.fft_ifft2.default",
             "aten.fft_rfft2.default", "aten.fft_irfft2.default", "aten.fft_fftn.default", "aten.fft_ifftn.default",
             "aten.fft_rfftn.default", "aten.fft_irfftn.default", "aten.fft_hfft2.default", "aten.fft_ihfft2.default",
             "aten.fft_hfftn.default", "aten.fft_ihfftn.default"},
            written_out},
           {{"aten.einsum.default", "aten.tensordot.default", "aten.fft_fftshift.default", "aten.fft_ifftshift.default",
             "aten.narrow.default", "aten.movedim.int", "aten.movedim.intlist", "aten.view_as.default",
             "aten.expand_as.default"},
            written_out,
            of_complex}}};
}

RulePart transform_rules() {
  return {
      "transforms",
      nullptr,
      false,
      {{{"aten.stft.default", "aten.stft.center", "aten.istft.default", "aten._fft_r2c.default",
         "aten._fft_c2c.default", "aten._fft_c2r.default"},
        written_out},
       {{"aten.roll.default", "aten.chunk.default", "aten.split.Tensor", "aten.unbind.int"}, written_out, of_complex}}};
}

}  // namespace ttc
