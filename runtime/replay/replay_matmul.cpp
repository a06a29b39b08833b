// Replay of matmul and linear: the parameters that the op library has become literals of the records.
#include "device/tile_formats_device.h"
#include "ops/activation.h"
#include "ops/rules.h"
#include "replay/records.h"
#include "replay/replay.h"
#include "replay/tiles.h"

namespace ttrt::replay {
namespace {

bool flag(const Case& c, const char* name) {
  const ttc::Json* given = ttc::find_member(c.params, name);
  return given != nullptr && ttc::as_bool(*given);
}

DataType format_of_result(const Case& c) { return c.format_param("out_dtype").value_or(c.expected.at(0).dtype); }

std::int64_t k_block(const Case& c) {
  const ttc::Json* given = ttc::find_member(c.params, "in0_block_w");
  return given == nullptr ? 0 : ttc::as_int(*given);
}

// A vector is one row.
Tensor as_matrix(Tensor t) {
  while (t.shape.size() < 2) t.shape.insert(t.shape.begin(), 1);
  return t;
}

Tensor turned(const Tensor& t) {
  const Extent e = extent_of(t.shape);
  Tensor out = t;
  std::swap(out.shape.at(out.shape.size() - 1), out.shape.at(out.shape.size() - 2));
  std::vector<float>& values = out.values.changed();
  for (std::int64_t i = 0; i < e.batch * e.rows * e.cols; ++i) {
    const std::int64_t batch = i / (e.rows * e.cols), row = i / e.cols % e.rows, col = i % e.cols;
    values[static_cast<std::size_t>((batch * e.cols + col) * e.rows + row)] = t.values[static_cast<std::size_t>(i)];
  }
  return out;
}

// The operands as the records have them: a not transposed, both matrices.
struct Product {
  Tensor a, b;
  bool transpose_b = false;
  Extent of_a = {}, of_b = {};  // of_b: [K, N]
};

Product product_of(const Case& c) {
  Product p{.a = as_matrix(c.input("a")), .b = as_matrix(c.input("b")), .transpose_b = flag(c, "transpose_b")};
  if (flag(c, "transpose_a") && c.input("a").shape.size() > 1) p.a = turned(p.a);
  p.of_a = extent_of(p.a.shape), p.of_b = extent_of(p.b.shape);
  if (p.transpose_b) std::swap(p.of_b.rows, p.of_b.cols);
  return p;
}

ttc::Refusal refuse(const Case& c, const Product& p) {
  using ttc::Reason;
  using ttc::ReasonCode;
  if (!is_float_format(p.a.dtype) || !is_float_format(p.b.dtype) || !is_float_format(format_of_result(c)))
    return Reason{ReasonCode::DtypeUnsupported, "products are of float formats"};
  if (p.of_a.cols != p.of_b.rows || p.of_b.batch == 0 || p.of_a.batch % p.of_b.batch != 0 || p.of_a.cols == 0)
    return Reason{ReasonCode::Unsupported, "the operands' shapes do not fit"};
  if (volume(c.expected.at(0).shape) != p.of_a.batch * p.of_a.rows * p.of_b.cols)
    return Reason{ReasonCode::Unsupported, "the output does not have the product's size"};
  const Tensor* bias = c.find("bias");
  if (bias != nullptr &&
      (!is_float_format(bias->dtype) || extent_of(bias->shape).rows != 1 || extent_of(bias->shape).cols != p.of_b.cols))
    return Reason{ReasonCode::Unsupported, "the bias is one row of N float values"};
  return std::nullopt;
}

// What both records say of a call.
RecordCall& describe(RecordCall& call, const Case& c, const Product& p) {
  call.configure(c.config);
  call.set("transpose_b", p.transpose_b).set("k_block", k_block(c));
  return call.set("format", std::string(to_string(format_of_result(c))));
}

Outcome matmul(const Case& c, Numerics numerics) {
  if (auto refusal = c.unknown_params({"out_dtype", "transpose_a", "transpose_b", "in0_block_w"})) return *refusal;
  const Product p = product_of(c);
  if (auto refusal = refuse(c, p)) return *refusal;
  RecordCall call("tt.matmul", c.arch);
  describe(call, c, p).stored("a", p.a).stored("b", p.b);
  return record_outcome(call, c.expected, numerics);
}

// Its weight without leading dims of 1, its bias as one row.
void give_constants(RecordCall& call, const Case& c, const Product& p) {
  Tensor weight = p.b;
  if (p.of_b.batch == 1) weight.shape.erase(weight.shape.begin(), weight.shape.end() - 2);
  Shape shape = weight.shape;
  if (p.transpose_b) std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  call.stored("weight", weight).set("weight_shape", ops::int_list(shape));
  call.set("weight_format", std::string(to_string(weight.dtype)));
  const Tensor* bias = c.find("bias");
  if (bias == nullptr) return;
  Tensor row = *bias;
  row.shape = {1, p.of_b.cols};
  call.stored("bias", row).set("bias_format", std::string(to_string(row.dtype)));
}

Outcome linear(const Case& c, Numerics numerics) {
  if (auto refusal =
          c.unknown_params({"out_dtype", "activation", "fused", "transpose_a", "transpose_b", "in0_block_w"}))
    return *refusal;
  const Product p = product_of(c);
  if (auto refusal = refuse(c, p)) return *refusal;
  const ttc::Json* given = ttc::find_member(c.params, "activation");
  const std::string activation = given == nullptr || given->is_null() ? "" : ttc::as_string(*given);
  // The op library runs what it does not fuse as an op of its own.
  const bool in_dest = flag(c, "fused"),
             fused = in_dest ? ops::activation_in_dest(activation, numerics, Dest::bits32) != nullptr
                             : ops::fused_activation(activation, numerics, format_of_result(c)) != nullptr;
  const Runner behind = activation.empty() || fused ? nullptr : find_runner(activation);
  if (!activation.empty() && !fused && behind == nullptr)
    return ttc::Reason{ttc::ReasonCode::Unimplemented, "fused activation " + activation};
  RecordCall call("tt.linear", c.arch);
  describe(call, c, p).stored("x", p.a);
  give_constants(call, c, p);
  if (fused) call.set("activation", activation).set("in_dest", in_dest);
  if (behind == nullptr) return record_outcome(call, c.expected, numerics);
  auto result = call.run(numerics);
  if (auto* reason = std::get_if<ttc::Reason>(&result)) return std::move(*reason);
  Tensor x = std::get<Tensor>(std::move(result));
  x.name = "x", x.shape = c.expected.at(0).shape;
  Case after = case_behind(c, activation, std::move(x));
  after.expected = c.expected;
  return behind(after, numerics);
}

}  // namespace
}  // namespace ttrt::replay

TTRT_REGISTER_REPLAY(matmul, "matmul", ttrt::replay::matmul, "a b")
TTRT_REGISTER_REPLAY(linear, "linear", ttrt::replay::linear, "a b bias")
