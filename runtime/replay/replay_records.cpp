// Replay of functions that one op record computes (ops/library.h) under other names than its schema's: those that
// inputs and parameters have there. What a row's case must satisfy beyond that, and arguments that come from shapes,
// are functions of the row.
#include <algorithm>
#include <list>

#include "device/fpu.h"
#include "ops/library.h"
#include "ops/rules.h"
#include "replay/records.h"
#include "replay/tiles.h"

namespace ttrt::replay {
namespace {

using ttc::Reason;
using ttc::ReasonCode;

struct Name {
  std::string_view of_case, argument;  // argument "": read by the row's own functions
};

struct Row {
  std::string_view op;  // a function of the op library
  std::vector<Name> inputs, params = {};
  std::optional<ComputeConfig> config = std::nullopt;  // instead of the record's own default
  ttc::Refusal (*refuse)(const Case& c) = nullptr;
  void (*complete)(const Case& c, RecordCall& call) = nullptr;
};

// ---- what rows add -------------------------------------------------------------------------------------------------

void reduce(const Case& c, RecordCall& call) {
  RtValue::List dims;
  if (const ttc::Json* dim = ttc::find_member(c.params, "dim")) {
    if (dim->is_array())
      for (const ttc::Json& one : *dim) dims.emplace_back(ttc::as_int(one));
    else
      dims.emplace_back(ttc::as_int(*dim));
  }
  call.set("dims", std::move(dims)).set("keepdim", true);
}

ttc::Refusal refuse_training(const Case& c) {
  const ttc::Json* training = ttc::find_member(c.params, "training");
  if (training == nullptr || !ttc::as_bool(*training)) return c.empty_operands();
  return Reason{ReasonCode::Unsupported, "statistics of the batch"};
}

// The channels' numbers are constants of the record, a row each.
void normalize_channels(const Case& c, RecordCall& call) {
  for (const auto& [name, argument] : {Name{"mean", "mean"}, {"var", "var"}, {"w", "weight"}, {"b", "bias"}}) {
    const Tensor* t = c.find(name);
    if (t == nullptr) continue;
    Tensor row = *t;
    row.shape = {static_cast<std::int64_t>(t->values.size())};
    call.set(argument, host_values(row));
  }
  call.set("channels", c.input("x").shape.at(1));
}

// An image is [N, H, W, C].
void over_image(const Case&, RecordCall& call) { call.set("dims", ops::int_list({1, 2})).set("keepdim", true); }

void over_dim(const Case& c, RecordCall& call) {
  const ttc::Json* dim = ttc::find_member(c.params, "dim");
  call.set("dim", dim != nullptr ? ttc::as_int(*dim) : std::int64_t{-1});
}

ttc::Refusal refuse_norm(const Case& c) {
  for (const char* name : {"w", "b"}) {
    const Tensor* t = c.find(name);
    if (t == nullptr) continue;
    if (volume(t->shape) != extent_of(c.input("x").shape).cols)
      return Reason{ReasonCode::Unsupported, "weight and bias are rows of N values"};
    if (volume(t->shape) == 0) return c.empty_operands();
  }
  return std::nullopt;
}

void normalize(const Case& c, RecordCall& call) {
  constexpr double default_epsilon = 1e-12;
  const ttc::Json* given = ttc::find_member(c.params, "epsilon");
  call.set("normalized_size", extent_of(c.input("x").shape).cols)
      .set("eps", given != nullptr && given->is_number() ? ttc::as_double(*given) : default_epsilon);
}

ttc::Refusal refuse_angles(const Case& c) {
  const Shape &x = c.input("x").shape, &cos = c.input("cos").shape;
  const bool fits = x.size() == 4 && cos.size() == 4 && cos == c.input("sin").shape && cos[0] * cos[1] == 1 &&
                    cos[2] >= x[2] && cos[3] == x[3] && x[3] % 2 == 0;
  if (!fits) return Reason{ReasonCode::Unsupported, "the angles' shape does not fit"};
  return c.empty_operands();
}

ttc::Refusal refuse_attention(const Case& c) {
  for (const Tensor& t : c.inputs)
    if (t.dtype == DataType::float32) return Reason{ReasonCode::DtypeUnsupported, c.op + " is of no float32"};
  const Shape &q = c.input("q").shape, &k = c.input("k").shape, &v = c.input("v").shape;
  const bool fits = q.size() == 4 && k.size() == 4 && v.size() == 4 && k[0] == q[0] && v[0] == q[0] && k[1] > 0 &&
                    k[1] == v[1] && q[1] % k[1] == 0 && k[2] == v[2] && k[3] == q[3];
  if (!fits) return Reason{ReasonCode::Unsupported, "the operands' shapes do not fit"};
  const ttc::Json* causal = ttc::find_member(c.params, "is_causal");
  if (causal != nullptr && ttc::as_bool(*causal) && q[2] != k[2])
    return Reason{ReasonCode::Unsupported, "causal and not square"};
  return std::nullopt;
}

// The approximate correction is the op library's own unless a program configuration says otherwise, and one that gives
// chunks without naming it was recorded with the accurate one.
void attend(const Case& c, RecordCall& call) {
  const bool chunks = ttc::find_member(c.params, "q_chunk") != nullptr;
  if (ttc::find_member(c.params, "exp_approx_mode") == nullptr) call.set("approx_exp", !chunks);
  if (const ttc::Json* keys = ttc::find_member(c.params, "k_chunk")) call.set("key_chunk", ttc::as_int(*keys));
}

// ---- the table -----------------------------------------------------------------------------------------------------

const std::vector<Row>& rows() {
  static const std::vector<Row> table = [] {
    std::vector<Row> all{
        {.op = "softmax",
         .inputs = {{"x", "x"}},
         .params = {{"dim", ""}, {"numeric_stable", "stable"}},
         .complete = over_dim},
        {.op = "layer_norm",
         .inputs = {{"x", "x"}, {"w", "weight"}, {"b", "bias"}, {"residual", ""}},
         .params = {{"epsilon", ""}, {"residual_input_tensor", ""}},
         .refuse = refuse_norm,
         .complete = normalize},
        {.op = "rms_norm",
         .inputs = {{"x", "x"}, {"w", "weight"}, {"b", ""}, {"residual", ""}},
         .params = {{"epsilon", ""}, {"residual_input_tensor", ""}},
         .refuse = refuse_norm,
         .complete = normalize},
        {.op = "rotary_embedding",
         .inputs = {{"x", "x"}, {"cos", "cos"}, {"sin", "sin"}},
         .params = {},
         .refuse = refuse_angles},
        {.op = "batch_norm",
         .inputs = {{"x", "x"}, {"mean", ""}, {"var", ""}, {"w", ""}, {"b", ""}},
         .params = {{"eps", "eps"}, {"training", ""}},
         .refuse = refuse_training,
         .complete = normalize_channels},
        {.op = "scaled_dot_product_attention",
         .inputs = {{"q", "q"}, {"k", "k"}, {"v", "v"}, {"mask", "mask"}},
         .params = {{"is_causal", "is_causal"},
                    {"scale", "scale"},
                    {"attn_mask", ""},
                    {"q_chunk", ""},
                    {"k_chunk", ""},
                    {"exp_approx_mode", "approx_exp"}},
         .refuse = refuse_attention,
         .complete = attend},
    };
    all.push_back({.op = "global_avg_pool2d", .inputs = {{"x", "x"}}, .complete = over_image});
    constexpr ComputeConfig narrow{.fp32_dest_acc_en = false};
    for (const std::string_view op : {"sum", "moreh_sum", "mean", "max", "min", "prod"})
      all.push_back({.op = op,
                     .inputs = {{"x", "x"}},
                     .params = {{"dim", ""}, {"keepdim", ""}},
                     .config = op == "moreh_sum" ? std::optional(narrow) : std::nullopt,
                     .complete = reduce});
    return all;
  }();
  return table;
}

RtValue literal_of(const ttc::Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  return ttc::as_double(json);
}

// The norms add a residual first, in the matrix unit; the sum passes through a buffer as wide as Dest.
Tensor with_residual(const Case& c, const Tensor& x, const std::optional<ComputeConfig>& config) {
  const Tensor* residual = c.find("residual");
  if (residual == nullptr || residual->values.size() != x.values.size()) return x;
  const Dest dest = dest_of(config.value_or(ComputeConfig{}));
  Tensor sum = x;
  fpu::add(x.values.data(), residual->values.data(), sum.values.changed().data(),
           static_cast<std::int64_t>(x.values.size()), dest);
  if (dest == Dest::bits32) sum.dtype = DataType::float32;
  return sum;
}

// What the record lacks and the op library's kernel does last: a bias on the rows, which pass through a buffer as wide
// as Dest.
Outcome biased(const Case& c, const RecordCall& call, const Tensor& bias, Dest dest, Numerics numerics) {
  auto results = call.run(numerics);
  if (auto* reason = std::get_if<Reason>(&results)) return std::move(*reason);
  Tensor y = std::get<Tensor>(std::move(results));
  const std::int64_t cols = extent_of(y.shape).cols;
  if (static_cast<std::int64_t>(bias.values.size()) < cols)
    return Reason{ReasonCode::Unsupported, "a bias of another width"};
  std::vector<float>& values = y.values.changed();
  for (std::size_t at = 0; at < values.size(); at += static_cast<std::size_t>(cols))
    fpu::add(values.data() + at, bias.values.data(), values.data() + at, cols, dest);
  return Outputs{packed_as(std::move(y), c.expected.at(0))};
}

// The packer makes blocks of what a 32-bit Dest holds: a record leaves that of a float32 operand.
Tensor dest_operand(Tensor x, const std::optional<ComputeConfig>& config, bool always) {
  if ((always || is_block_format(x.dtype)) && dest_of(config.value_or(ComputeConfig{})) == Dest::bits32)
    x.dtype = DataType::float32;
  return x;
}

Outcome run_row(const Case& c, Numerics numerics) {
  const Row& row = *std::find_if(rows().begin(), rows().end(), [&](const Row& r) { return r.op == c.op; });
  for (const auto& [name, value] : c.params.items())
    if (std::none_of(row.params.begin(), row.params.end(), [&](const Name& p) { return p.of_case == name; }))
      return Reason{ReasonCode::Unsupported, "parameter '" + name + "' of " + c.op + " is not known"};
  for (const Tensor& t : c.inputs)
    if (!is_float_format(t.dtype)) return Reason{ReasonCode::DtypeUnsupported, c.op + " is of float formats"};
  if (row.refuse != nullptr)
    if (auto refusal = row.refuse(c)) return *std::move(refusal);
  const std::string_view record = ops::find_library_op(row.op)->name;
  RecordCall call(record, c.arch);
  const Tensor* x = c.find("x");
  auto config = c.config ? c.config : row.config;
  if (!config) config = ops::library_config(record, x != nullptr ? x->dtype : DataType::bfloat16, c.arch);
  if (config) call.configure(*config);
  const Tensor* bias = c.op == "rms_norm" ? c.find("b") : nullptr;
  for (const Name& input : row.inputs)
    if (const Tensor* t = c.find(input.of_case); t != nullptr && !input.argument.empty())
      call.tensor(input.argument,
                  input.argument == "x" ? dest_operand(with_residual(c, *t, config), config, bias != nullptr) : *t);
  for (const Name& param : row.params)
    if (const ttc::Json* json = ttc::find_member(c.params, param.of_case.data());
        json != nullptr && !param.argument.empty())
      call.set(param.argument, literal_of(*json));
  if (row.complete != nullptr) row.complete(c, call);
  if (bias != nullptr) return biased(c, call, *bias, dest_of(config.value_or(ComputeConfig{})), numerics);
  return record_outcome(call, c.expected, numerics);
}

const bool registered = [] {
  for (const Row& row : rows()) {
    static std::list<std::string> names;
    std::string& all = names.emplace_back();
    for (const Name& input : row.inputs) all.append(input.of_case).append(" ");
    register_runner(row.op, run_row, all);
  }
  return true;
}();

}  // namespace
}  // namespace ttrt::replay
