// Replay of whole blocks: several ops in a row, each leaving a bfloat16 tensor, as a model runs them.
#include <cmath>

#include "ops/rules.h"
#include "replay/records.h"
#include "replay/replay.h"
#include "replay/tiles.h"

namespace ttrt::replay {
namespace {

ttc::Refusal bfloat16_only(const Case& c) {
  for (const Tensor& t : c.inputs) {
    if (t.dtype != DataType::bfloat16) return ttc::Reason{ttc::ReasonCode::DtypeUnsupported, c.op + " is of bfloat16"};
  }
  return std::nullopt;
}

[[noreturn]] void misfit(const char* what) { throw ttc::Error(ttc::Exit::bad_file, "", what); }

// ---- blocks: tensors are bfloat16 values in row-major order

Tensor tensor(Shape shape, std::vector<float> values) {
  return {.name = "", .shape = std::move(shape), .values = std::move(values)};
}

struct Block {
  const Case& c;
  Numerics numerics;
  ComputeConfig config;

  Block(const Case& block, Numerics wanted)
      : c(block), numerics(wanted), config(block.config.value_or(ComputeConfig{})) {}

  // One matrix for all of a's, or one for each.
  Tensor matmul(const Tensor& a, Tensor b, const Tensor* bias = nullptr, const char* activation = nullptr) const {
    const Extent ea = extent_of(a.shape), eb = extent_of(b.shape);
    if (ea.cols != eb.rows || (eb.batch != 1 && eb.batch != ea.batch)) misfit("a block's operands do not fit");
    if (eb.batch == 1) b.shape = {eb.rows, eb.cols};
    RecordCall call("tt.linear");
    call.configure(config);
    call.tensor("x", a).tensor("weight", b).set("weight_shape", ops::int_list(b.shape));
    if (bias != nullptr) {
      Tensor row = *bias;
      row.shape = {1, eb.cols};
      call.tensor("bias", row);
    }
    if (activation != nullptr) call.set("activation", std::string(activation));
    return call.result(numerics);
  }
  Tensor linear(const Tensor& x, const char* w, const char* b = nullptr, const char* activation = nullptr) const {
    return matmul(x, c.input(w), b == nullptr ? nullptr : &c.input(b), activation);
  }

  Tensor norm(const Tensor& x, bool rms, float epsilon) const {
    const Tensor* bias = c.find("bt");
    RecordCall call(rms ? "tt.rms_norm" : "tt.layer_norm");
    call.configure(config);
    call.tensor("x", x).tensor("weight", c.input("g")).set("normalized_size", x.shape.back());
    if (bias != nullptr && !rms) call.tensor("bias", *bias);
    return call.set("eps", static_cast<double>(epsilon)).result(numerics);
  }

  Tensor add(const Tensor& a, const Tensor& b) const {
    return RecordCall("tt.add").tensor("a", a).tensor("b", b).result(numerics);
  }
  Tensor multiply(const Tensor& a, const Tensor& b) const {
    return RecordCall("tt.mul").tensor("a", a).tensor("b", b).result(numerics);
  }
  Tensor scale(const Tensor& a, float by) const {
    return RecordCall("tt.mul").tensor("a", a).set("scalar", static_cast<double>(by)).result(numerics);
  }
  Tensor silu(const Tensor& x) const { return RecordCall("tt.silu").tensor("x", x).result(numerics); }
  // Over the last dim, with the op library's own default configuration.
  Tensor softmax(const Tensor& x) const {
    RecordCall call("tt.softmax");
    call.configure(std::nullopt);
    return call.tensor("x", x).set("dim", std::int64_t{-1}).result(numerics);
  }

  Tensor heads(const Tensor& qkv, int which, std::int64_t count, bool transposed) const {
    const Extent e = extent_of(qkv.shape);
    const std::int64_t size = e.cols / 3 / count;
    Tensor out = tensor({1, count, e.rows, size}, {});
    if (transposed) std::swap(out.shape[2], out.shape[3]);
    const std::int64_t rows = out.shape[2], cols = out.shape[3];
    for (std::int64_t h = 0; h < count; ++h) {
      for (std::int64_t i = 0; i < rows * cols; ++i) {
        const std::int64_t at = transposed ? i % cols : i / cols, feature = transposed ? i / cols : i % cols;
        out.values.changed().push_back(
            qkv.values[static_cast<std::size_t>(at * e.cols + (which * count + h) * size + feature)]);
      }
    }
    return out;
  }
  static Tensor concat_heads(const Tensor& x) {
    const std::int64_t count = x.shape[1], rows = x.shape[2], size = x.shape[3];
    Tensor out = tensor({1, 1, rows, count * size}, {});
    for (std::int64_t i = 0; i < rows * count * size; ++i) {
      const std::int64_t r = i / (count * size), h = i / size % count;
      out.values.changed().push_back(x.values[static_cast<std::size_t>((h * rows + r) * size + i % size)]);
    }
    return out;
  }
};

// The ops of a recorded block are fixed; only this spelling of them is known.
ttc::Refusal refuse_block(const Case& c, std::string_view sequence) {
  if (auto refusal = c.unknown_params({"seq"})) return refusal;
  if (auto refusal = bfloat16_only(c)) return refusal;
  const ttc::Json* spelled = ttc::find_member(c.params, "seq");
  if (spelled != nullptr && ttc::as_string(*spelled) == sequence) return std::nullopt;
  return ttc::Reason{ttc::ReasonCode::Unsupported, "another sequence of ops than " + std::string(sequence)};
}

Outcome mlp(const Case& c, Numerics numerics) {
  if (auto refusal = refuse_block(c, "layer_norm(1e-5) -> linear+gelu -> linear -> residual add")) return *refusal;
  const Block block(c, numerics);
  const Tensor normed = block.norm(c.input("x"), false, 1e-5F);
  const Tensor hidden = block.linear(normed, "w1", "b1", "gelu");
  return Outputs{block.add(c.input("x"), block.linear(hidden, "w2", "b2")).values};
}

Outcome swiglu(const Case& c, Numerics numerics) {
  if (auto refusal = refuse_block(c, "rms_norm(1e-6) -> silu(linear)*linear -> linear -> residual add"))
    return *refusal;
  const Block block(c, numerics);
  const Tensor normed = block.norm(c.input("x"), true, 1e-6F);
  const Tensor gate = block.multiply(block.silu(block.linear(normed, "wg")), block.linear(normed, "wu"));
  return Outputs{block.add(c.input("x"), block.linear(gate, "wd")).values};
}

Outcome attention_block(const Case& c, Numerics numerics) {
  constexpr std::string_view sequence =
      "layer_norm -> qkv linear -> heads(4) -> q@k^T * 1/sqrt(32) -> softmax(stable) -> @v -> concat -> linear -> "
      "residual add";
  constexpr std::int64_t count = 4, size = 32;
  if (auto refusal = refuse_block(c, sequence)) return *refusal;
  const Block block(c, numerics);
  const Tensor qkv = block.linear(block.norm(c.input("x"), false, 1e-5F), "wqkv");
  if (qkv.shape.back() != 3 * count * size) return ttc::Reason{ttc::ReasonCode::Unsupported, "heads of another size"};
  const Tensor products =
      block.matmul(block.heads(qkv, 0, count, false), block.heads(qkv, 1, count, true), nullptr, nullptr);
  const Tensor scores = block.softmax(block.scale(products, 1.0F / std::sqrt(static_cast<float>(size))));
  const Tensor mixed = block.matmul(scores, block.heads(qkv, 2, count, false), nullptr, nullptr);
  return Outputs{block.add(c.input("x"), block.linear(Block::concat_heads(mixed), "wo")).values};
}

}  // namespace
}  // namespace ttrt::replay

TTRT_REGISTER_REPLAY(mlp, "mlp_block", ttrt::replay::mlp)
TTRT_REGISTER_REPLAY(swiglu, "swiglu_block", ttrt::replay::swiglu)
TTRT_REGISTER_REPLAY(attention_block, "attention_block", ttrt::replay::attention_block)
