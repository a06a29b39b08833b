// Whole blocks as programs: ATen graphs compiled with default options and run in exact numerics give, end to end, the
// bits that a default program of the op library gave.
#include <algorithm>
#include <cstring>
#include <map>

#include "executor/executor.h"
#include "formats/safetensors.h"
#include "pass/compile.h"
#include "support/json_util.h"
#include "tests/catch.h"
#include "torch/cpu_op.h"

namespace {

using namespace ttc;

const std::string golden = std::string(TTC_TEST_DATA) + "/golden/";

std::string sizes_text(const std::vector<std::int64_t>& sizes, std::string_view open = "[") {
  std::string out(open);
  for (std::size_t i = 0; i < sizes.size(); ++i) out += (i > 0 ? ", " : "") + std::to_string(sizes[i]);
  return out + "]";
}

std::vector<float> floats_of(const ir::Weight& array) {
  std::vector<float> out(static_cast<std::size_t>(array.numel()));
  const auto [owner, bytes] = array.storage->load();
  const std::byte* first = bytes + array.storage_offset * size_of(array.dtype);
  if (array.dtype == DType::f32) std::memcpy(out.data(), first, out.size() * sizeof(float));
  if (array.dtype != DType::bf16) return out;
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, first + 2 * i, 2);
    out[i] = std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
  }
  return out;
}

ir::Weight weight_of(std::vector<std::int64_t> sizes, const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return ir::make_weight(DType::f32, std::move(sizes), std::move(bytes));
}

// A recorded sequence of calls of the op library as the text of an ATen graph. Products' weights are [N, K] there,
// biases and norms' weights vectors. Indices, masks and what `inputs` names are the model's inputs.
class Translation {
 public:
  Translation(const std::string& name, std::vector<std::string> inputs)
      : file_(read_safetensors(golden + name + ".safetensors")), inputs_(std::move(inputs)) {
    case_ = Json::parse(file_.metadata.at("case"));
    for (const Json& call : case_["params"]["calls"]) translate(call);
    const std::string last = case_["params"]["calls"].back()["outputs"][0];
    std::string formal;
    for (const std::string& input : inputs_)
      formal += (formal.empty() ? "%" : ", %") + input + (is_index(input) ? ": i64" : ": f32") +
                sizes_text(recorded_input(input).sizes) + " user";
    for (const auto& [weight, value] : weights_)
      formal += ", $" + weight + ": f32" + sizes_text(value.sizes) + " parameter \"" + weight + "\"";
    model_ = ir::parse("model {}\ngraph main(" + formal + ") {\n" + body_ + "  return %" + last + "\n}\n");
    for (auto& [weight, value] : weights_) model_->weights.at(weight) = std::move(value);
  }

  std::shared_ptr<ir::Model> model() { return model_; }
  std::vector<float> recorded() const {
    return floats_of(file_.tensors.at(case_["params"]["calls"].back()["outputs"][0]));
  }
  std::vector<ttrt::RtValue> inputs() const {
    std::vector<ttrt::RtValue> out;
    for (const std::string& input : inputs_) {
      const ir::Weight& array = recorded_input(input);
      ttrt::HostTensor value = ttrt::empty_host(is_index(input) ? DType::i64 : DType::f32, array.sizes);
      if (is_index(input))
        std::ranges::copy(floats_of(array), value.as<std::int64_t>());
      else
        std::ranges::copy(floats_of(array), value.as<float>());
      out.emplace_back(std::move(value));
    }
    return out;
  }

 private:
  const ir::Weight& recorded_input(const std::string& name) const { return file_.tensors.at("in_" + name); }
  static bool is_index(const std::string& name) { return name.ends_with("ids"); }
  std::vector<std::int64_t> shape(const std::string& value) const {
    if (const auto made = shapes_.find(value); made != shapes_.end()) return made->second;
    const auto array = file_.tensors.find("in_" + value);
    return (array != file_.tensors.end() ? array : file_.tensors.find(value))->second.sizes;
  }
  std::string node(const std::string& result, std::vector<std::int64_t> sizes, const std::string& call) {
    body_ += "  %" + result + ": f32" + sizes_text(sizes) + " = aten." + call + "\n";
    shapes_[result] = std::move(sizes);
    return "%" + result;
  }
  std::string value(const std::string& name) {
    const bool given = shapes_.contains(name) || std::ranges::find(inputs_, name) != inputs_.end();
    return given ? "%" + name : constant(name, shape(name));
  }
  std::string constant(const std::string& name, std::vector<std::int64_t> sizes, bool turned = false) {
    std::vector<float> values = floats_of(recorded_input(name));
    if (turned) {
      const std::vector<float> from = values;
      const auto rows = static_cast<std::size_t>(sizes[0]), cols = static_cast<std::size_t>(sizes[1]);
      for (std::size_t i = 0; i < from.size(); ++i) values[i % cols * rows + i / cols] = from[i];
      std::swap(sizes[0], sizes[1]);
    }
    weights_.insert_or_assign(name, weight_of(std::move(sizes), values));
    return "$" + name;
  }
  std::string vector(const std::string& name) { return constant(name, {shape(name).back()}); }
  // A part of `from` along a dim.
  std::string part(const std::string& from, const std::string& to, std::size_t dim, std::int64_t first,
                   std::int64_t last) {
    std::vector<std::int64_t> sizes = shape(from);
    sizes[dim] = last - first;
    return node(to, sizes,
                "slice.Tensor(%" + from + ", " + std::to_string(dim) + ", " + std::to_string(first) + ", " +
                    std::to_string(last) + ")");
  }

  // [1, 1, S, (H + 2 G) D] as q of [1, H, S, D], k and v of [1, G, S, D].
  void split_heads(const Json& call, const std::string& x) {
    const std::int64_t heads = call["args"]["num_heads"], shared = call["args"]["num_kv_heads"], rows = shape(x)[2];
    const std::int64_t size = shape(x)[3] / (heads + 2 * shared);
    for (std::int64_t i = 0, first = 0; i < 3; ++i) {
      const std::string to = call["outputs"][static_cast<std::size_t>(i)];
      const std::int64_t count = i == 0 ? heads : shared;
      part(x, to + "s", 3, first * size, (first + count) * size);
      node(to + "v", {1, rows, count, size}, "view.default(%" + to + "s, " + sizes_text({1, rows, count, size}) + ")");
      node(to, {1, count, rows, size}, "transpose.int(%" + to + "v, 1, 2)");
      first += count;
    }
  }

  void cut(const Json& call, const std::string& from, const std::string& to) {
    const std::vector<std::int64_t> first = call["args"]["start"], last = call["args"]["end"], sizes = shape(from);
    std::vector<std::size_t> dims;
    for (std::size_t i = 0; i < sizes.size(); ++i)
      if (last[i] - first[i] != sizes[i]) dims.push_back(i);
    REQUIRE(dims.size() == 1);
    part(from, to, dims[0], first[dims[0]], last[dims[0]]);
  }

  // x cos + [-x2, x1] sin, as models spell it.
  void rotate(const std::vector<std::string>& in, const std::string& to) {
    const std::vector<std::int64_t> sizes = shape(in[0]);
    std::vector<std::int64_t> half = sizes;
    half[3] /= 2;
    part(in[0], to + "a", 3, 0, half[3]);
    part(in[0], to + "b", 3, half[3], sizes[3]);
    node(to + "n", half, "neg.default(%" + to + "b)");
    node(to + "r", sizes, "cat.default([%" + to + "n, %" + to + "a], 3)");
    node(to + "c", sizes, "mul.Tensor(%" + in[0] + ", " + value(in[1]) + ")");
    node(to + "s", sizes, "mul.Tensor(%" + to + "r, " + value(in[2]) + ")");
    node(to, sizes, "add.Tensor(%" + to + "c, %" + to + "s)");
  }

  void attention(const Json& call, const std::vector<std::string>& in, const std::string& to,
                 const std::vector<std::int64_t>& sizes) {
    std::string text = "%" + in[0] + ", %" + in[1] + ", %" + in[2];
    text += std::string(", is_causal=") + (call["args"]["is_causal"].get<bool>() ? "true" : "false");
    if (shape(in[0])[1] != shape(in[1])[1]) text += ", enable_gqa=true";
    node(to, sizes, "scaled_dot_product_attention.default(" + text + ")");
  }

  // Calls of the library that ATen has under another spelling.
  bool translate_moves(const Json& call, const std::string& op, const std::string& to,
                       const std::vector<std::int64_t>& sizes) {
    const std::vector<std::string> in = call["inputs"];
    if (op == "reshape")
      node(to, sizes, "reshape.default(%" + in[0] + ", " + sizes_text(sizes) + ")");
    else if (op == "permute")
      node(to, sizes, "permute.default(%" + in[0] + ", " + sizes_text(call["args"]["perm"]) + ")");
    else if (op == "slice")
      cut(call, in[0], to);
    else if (op == "concat")
      node(to, sizes, "cat.default([" + value(in[0]) + ", " + value(in[1]) + "], " + call["args"]["dim"].dump() + ")");
    else if (op == "nlp_create_qkv_heads")
      split_heads(call, in[0]);
    else if (op == "nlp_concat_heads") {
      const auto from = shape(in[0]);
      node(to + "t", {1, from[2], from[1], from[3]}, "transpose.int(%" + in[0] + ", 1, 2)");
      node(to, sizes, "reshape.default(%" + to + "t, " + sizes_text(sizes) + ")");
    } else
      return false;
    return true;
  }

  void translate(const Json& call) {
    const std::string op = call["op"], to = call["outputs"][0];
    const std::vector<std::string> in = call["inputs"];
    const std::vector<std::int64_t> sizes = file_.tensors.at(to).sizes;
    if (translate_moves(call, op, to, sizes)) return;
    if (op == "embedding")
      node(to, sizes, "embedding.default(" + constant(in[1], shape(in[1])) + ", %" + in[0] + ")");
    else if (op == "add")
      node(to, sizes, "add.Tensor(" + value(in[0]) + ", " + value(in[1]) + ")");
    else if (op == "multiply")
      node(to, sizes,
           "mul.Tensor(" + value(in[0]) + ", " + (in.size() > 1 ? value(in[1]) : call["args"]["scalar"].dump()) + ")");
    else if (op == "matmul")
      node(to, sizes, "matmul.default(%" + in[0] + ", %" + in[1] + ")");
    else if (op == "layer_norm" || op == "rms_norm")
      node(to, sizes,
           op + ".default(%" + in[0] + ", " + sizes_text({sizes.back()}) + ", " + vector(in[1]) + ", " +
               (in.size() > 2 ? vector(in[2]) + ", " : "") + call["args"]["epsilon"].dump() + ")");
    else if (op == "linear")
      linear(call, in, to, sizes);
    else if (op == "rotary_embedding")
      rotate(in, to);
    else if (op == "scaled_dot_product_attention")
      attention(call, in, to, sizes);
    else if (op == "softmax")
      node(to, sizes, "softmax.int(%" + in[0] + ", -1)");
    else
      FAIL("a call of " << op);
  }

  void linear(const Json& call, const std::vector<std::string>& in, const std::string& to,
              const std::vector<std::int64_t>& sizes) {
    const bool activated = call["args"].contains("activation");
    std::string text = "linear.default(" + value(in[0]) + ", " + constant(in[1], shape(in[1]), true);
    text += in.size() > 2 ? ", " + vector(in[2]) + ")" : ")";
    node(activated ? to + "x" : to, sizes, text);
    if (activated) node(to, sizes, call["args"]["activation"].get<std::string>() + ".default(%" + to + "x)");
  }

  SafeTensors file_;
  Json case_;
  std::vector<std::string> inputs_;
  std::map<std::string, std::vector<std::int64_t>> shapes_;
  std::map<std::string, ir::Weight> weights_;
  std::string body_;
  std::shared_ptr<ir::Model> model_;
};

struct Block {
  std::string name;
  std::vector<std::string> inputs;
};

}  // namespace

TEST_CASE("recorded blocks, compiled and run, give their bits without any configuration") {
  ttrt::install_torch_schemas();
  for (const Block& row : {
           Block{"A_gpt_h64_s40", {"ids"}},
           Block{"A_bert_h128_s40_ops", {"ids", "token_type_ids", "mask"}},
           Block{"A_llama_h128_q4_kv2_s32_bfloat16", {"ids"}},
           Block{"A_vit_h128_l2", {"patches"}},
       }) {
    INFO(row.name);
    Translation block(row.name, row.inputs);
    const auto model = block.model();
    PassManagerOptions passes;
    passes.disable = {"raise-attention"};  // a block that has attention call by call keeps it so
    compile(*model, CompileOptions{}, passes);
    ttrt::Executor executor(model, {.numerics = ttrt::Numerics::exact});
    const auto outputs = executor.run(block.inputs());
    CHECK(executor.counts().device == executor.counts().total);
    const ttrt::HostTensor got = contiguous(convert(*outputs.at(0).get_if<ttrt::HostTensor>(), DType::f32));
    const std::vector<float> want = block.recorded();
    REQUIRE(static_cast<std::size_t>(got.numel()) == want.size());
    std::size_t different = 0;
    for (std::size_t i = 0; i < want.size(); ++i)
      different += std::bit_cast<std::uint32_t>(got.as<float>()[i]) != std::bit_cast<std::uint32_t>(want[i]);
    CHECK(different == 0);
  }
}
