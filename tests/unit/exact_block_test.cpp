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
// biases and norms' weights vectors.
class Translation {
 public:
  explicit Translation(const std::string& name) : file_(read_safetensors(golden + name + ".safetensors")) {
    case_ = Json::parse(file_.metadata.at("case"));
    for (const Json& call : case_["params"]["calls"]) translate(call);
    const std::string last = case_["params"]["calls"].back()["outputs"][0];
    std::string inputs = "%ids: i64" + sizes_text(shape("ids")) + " user";
    for (const auto& [weight, value] : weights_)
      inputs += ", $" + weight + ": f32" + sizes_text(value.sizes) + " parameter \"" + weight + "\"";
    model_ = ir::parse("model {}\ngraph main(" + inputs + ") {\n" + body_ + "  return %" + last + "\n}\n");
    for (auto& [weight, value] : weights_) model_->weights.at(weight) = std::move(value);
  }

  std::shared_ptr<ir::Model> model() { return model_; }
  std::vector<float> recorded() const {
    return floats_of(file_.tensors.at(case_["params"]["calls"].back()["outputs"][0]));
  }
  ttrt::HostTensor ids() const {
    const ir::Weight& array = file_.tensors.at("in_ids");
    ttrt::HostTensor out = ttrt::empty_host(DType::i64, array.sizes);
    std::ranges::copy(floats_of(array), out.as<std::int64_t>());
    return out;
  }

 private:
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
    return shapes_.contains(name) ? "%" + name : constant(name, shape(name));
  }
  std::string constant(const std::string& name, std::vector<std::int64_t> sizes, bool turned = false) {
    std::vector<float> values = floats_of(file_.tensors.at("in_" + name));
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

  // [1, 1, S, 3 H D] as q, k and v of [1, H, S, D].
  void split_heads(const Json& call, const std::string& x) {
    const std::int64_t heads = call["args"]["num_heads"], rows = shape(x)[2], size = shape(x)[3] / 3;
    for (std::int64_t i = 0; i < 3; ++i) {
      const std::string to = call["outputs"][static_cast<std::size_t>(i)];
      const std::vector<std::int64_t> whole{1, rows, heads, size / heads};
      node(to + "s", {1, 1, rows, size},
           "slice.Tensor(%" + x + ", 3, " + std::to_string(i * size) + ", " + std::to_string((i + 1) * size) + ")");
      node(to + "v", whole, "view.default(%" + to + "s, " + sizes_text(whole) + ")");
      node(to, {1, heads, rows, size / heads}, "transpose.int(%" + to + "v, 1, 2)");
    }
  }

  void translate(const Json& call) {
    const std::string op = call["op"], to = call["outputs"][0];
    const std::vector<std::string> in = call["inputs"];
    const std::vector<std::int64_t> sizes = file_.tensors.at(to).sizes;
    if (op == "embedding")
      node(to, sizes, "embedding.default(" + constant(in[1], shape(in[1])) + ", %" + in[0] + ")");
    else if (op == "reshape")
      node(to, sizes, "view.default(%" + in[0] + ", " + sizes_text(sizes) + ")");
    else if (op == "add")
      node(to, sizes, "add.Tensor(" + value(in[0]) + ", " + value(in[1]) + ")");
    else if (op == "layer_norm")
      node(to, sizes,
           "layer_norm.default(%" + in[0] + ", " + sizes_text({sizes.back()}) + ", " + vector(in[1]) + ", " +
               vector(in[2]) + ", " + as_text(call["args"]["epsilon"]) + ")");
    else if (op == "linear")
      linear(call, in, to, sizes);
    else if (op == "nlp_create_qkv_heads")
      split_heads(call, in[0]);
    else if (op == "scaled_dot_product_attention")
      node(to, sizes,
           "scaled_dot_product_attention.default(%" + in[0] + ", %" + in[1] + ", %" + in[2] +
               ", is_causal=" + (call["args"]["is_causal"].get<bool>() ? "true" : "false") + ")");
    else if (op == "nlp_concat_heads") {
      const auto from = shape(in[0]);
      node(to + "t", {1, from[2], from[1], from[3]}, "transpose.int(%" + in[0] + ", 1, 2)");
      node(to, sizes, "reshape.default(%" + to + "t, " + sizes_text(sizes) + ")");
    } else if (op == "softmax")
      node(to, sizes, "softmax.int(%" + in[0] + ", -1)");
    else
      FAIL("a call of " << op);
  }

  void linear(const Json& call, const std::vector<std::string>& in, const std::string& to,
              const std::vector<std::int64_t>& sizes) {
    const bool activated = call["args"].contains("activation");
    std::string text = "linear.default(%" + in[0] + ", " + constant(in[1], shape(in[1]), true);
    text += in.size() > 2 ? ", " + vector(in[2]) + ")" : ")";
    node(activated ? to + "x" : to, sizes, text);
    if (activated) node(to, sizes, call["args"]["activation"].get<std::string>() + ".default(%" + to + "x)");
  }

  static std::string as_text(const Json& number) { return number.dump(); }

  SafeTensors file_;
  Json case_;
  std::map<std::string, std::vector<std::int64_t>> shapes_;
  std::map<std::string, ir::Weight> weights_;
  std::string body_;
  std::shared_ptr<ir::Model> model_;
};

}  // namespace

TEST_CASE("a recorded block, compiled and run, gives its bits without any configuration") {
  ttrt::install_torch_schemas();
  for (const char* name : {"A_gpt_h64_s40"}) {
    INFO(name);
    Translation block(name);
    const auto model = block.model();
    compile(*model, CompileOptions{});
    ttrt::Executor executor(model, {.numerics = ttrt::Numerics::exact});
    const auto outputs = executor.run({block.ids()});
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
