// Every op record against ATen: all cases, over activation and weight formats, fidelities and instruction sets.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <sstream>

#include "torch/cpu_op.h"
#include "device/cpu.h"
#include "harness.h"
#include "support/error.h"
#include "ir/op_schema.h"
#include "ops/bind.h"
#include "tests/catch.h"

using namespace ttrt;
using namespace ttrt::test;

namespace {

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

// The formats that make a difference to a record: weights only where it packs some, fidelity where it has one.
std::vector<Config> configs_of(const OpRecord& record) {
  std::vector<Config> out{{}, {.activation = DataType::float32}};
  const auto has = [&](std::string_view name) { return record.schema.find(name) != std::string_view::npos; };
  if (has("bool? fp32_acc")) out.push_back({.fp32_acc = false});
  if (has("str? fidelity")) out.push_back({.fidelity = MathFidelity::LoFi});
  if (has("str weight_format")) {
    out.push_back({.weight = DataType::bfloat8_b, .fidelity = MathFidelity::HiFi2});
    out.push_back({.weight = DataType::bfloat4_b, .fidelity = MathFidelity::LoFi});
    out.push_back({.activation = DataType::float32, .weight = DataType::float32});
  }
  return out;
}

// What a kernel could get wrong, done to its result: each has to be a problem where the tolerance is this one.
void expect_noticed(const Output& right, const Tolerance& tolerance) {
  const auto wrong = [&](std::string_view what, const auto& change) {
    INFO(what);
    Output other = right;
    other.device = convert(right.device, DType::f64);  // a copy of its own
    other.device = convert(other.device, DType::f32);
    change(other, std::span(other.device.as<float>(), static_cast<std::size_t>(other.device.numel())));
    CHECK(problem(other, tolerance) != "");
  };
  const std::span expected(right.expected.as<float>(), static_cast<std::size_t>(right.expected.numel()));
  float largest = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (std::isfinite(expected[i]) && std::fabs(expected[i]) > largest) largest = std::fabs(expected[at = i]);
  // A hundredth, or what is more than twice what the format may cost.
  const auto step = static_cast<float>(std::max(0.01, 2.2 * tolerance.max_rel));
  if (largest > 0) {
    wrong("scaled", [&](Output&, std::span<float> v) {
      for (float& x : v) x *= 1 + step;
    });
    wrong("one element", [&](Output&, std::span<float> v) { v[at] *= 1 + step; });
  }
  wrong("shifted", [&](Output&, std::span<float> v) {
    for (float& x : v) x += largest > 0 ? step * largest : 1.0F;
  });
  for (const float special : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    wrong("not finite", [&](Output&, std::span<float> v) { v[at] = special; });
    wrong("not finite there", [&](Output& o, std::span<float>) {
      o.expected = convert(convert(right.expected, DType::f64), DType::f32);
      o.expected.as<float>()[at] = special;
    });
  }
  wrong("padding", [](Output& o, std::span<float>) { o.padding_is_zero = false; });
  wrong("other sizes", [](Output& o, std::span<float>) {
    o.device.sizes.insert(o.device.sizes.begin(), 1);
    o.device.strides.insert(o.device.strides.begin(), 0);
  });
}

// Literals that are hardly ever right, of the kind that stands there.
std::vector<OpArg> junk(const OpArg& arg) {
  if (std::holds_alternative<std::string>(arg)) return {std::string("no such")};
  if (std::holds_alternative<std::int64_t>(arg)) return {std::int64_t{-1000}, std::int64_t{1} << 40};
  const auto* list = std::get_if<std::vector<std::int64_t>>(&arg);
  if (list == nullptr) return {};
  std::vector<std::int64_t> longer(*list), lower(*list);
  longer.insert(longer.end(), 9, 2);
  lower.push_back(-1000);
  return {longer, lower, std::vector<std::int64_t>{-1000}, std::vector<std::int64_t>{std::int64_t{1} << 40}};
}

// An argument as the binder takes it.
RtValue value_of(const OpCall& call, const OpArg& arg) {
  const auto tensor = [&](TensorRef ref) {
    return DeviceTensor{.spec = call.tensors.at(static_cast<std::size_t>(ref.index)), .buffer = nullptr};
  };
  if (const auto* one = std::get_if<TensorRef>(&arg)) return tensor(*one);
  const auto* many = std::get_if<std::vector<TensorRef>>(&arg);
  if (many == nullptr) return literal_value(arg);
  RtValue::List list;
  for (const TensorRef ref : *many) list.emplace_back(tensor(ref));
  return list;
}

// "taken", or the words that refuse the call; or that it has a result of a size that can't be.
std::string outcome(const OpCall& given) {
  std::vector<RtValue> args;
  for (const OpArg& arg : given.args) args.push_back(value_of(given, arg));
  const auto bound = bind_call(*given.op, args);
  if (const auto* reason = std::get_if<ttc::Reason>(&bound)) return "refused: " + reason->text();
  const OpCall& call = std::get<BoundCall>(bound).call;
  try {
    const auto specs = call.op->infer(call);
    for (const TensorSpec& spec : specs) {
      for (const std::int64_t size : spec.logical)
        if (size < 0) return "a result of negative size";
    }
    if (call.op->supports != nullptr)
      if (const auto reason = call.op->supports(call)) return "refused: " + reason->text();
    const std::vector<const DeviceTensor*> none(call.tensors.size(), nullptr);
    if (call.op->prepare != nullptr) static_cast<void>(call.op->prepare(call, {.constants = none}));
    return "taken";
  } catch (const ttc::Error& error) {
    return std::string("error: ") + error.what();
  }
}
}  // namespace

TEST_CASE("every record is complete") {
  device();
  REQUIRE(all_ops().size() > 50);
  for (const OpRecord* record : all_ops()) {
    INFO(record->name);
    CHECK(record->name.starts_with("tt."));
    CHECK_FALSE(record->summary.empty());
    CHECK(record->infer != nullptr);
    CHECK(record->reference != nullptr);
    CHECK(record->work != nullptr);
    CHECK_FALSE(record->cases.empty());
    const auto* schema = ttc::ir::find_schema(record->name);
    REQUIRE(schema != nullptr);
    for (const Operand& operand : record->operands) CHECK(schema->index_of(operand.name) >= 0);
    for (const Packed& packed : record->packed) CHECK(schema->index_of(packed.name) >= 0);
    for (const Lowering& lowering : record->lowers) CHECK(CpuOp::find(lowering.aten) != nullptr);
  }
}

TEST_CASE("every name of a family is an operator's that LibTorch has") {
  const std::vector<std::string> operators = torch_operators();
  const auto exists = [&](std::string name) {
    const bool many = name.ends_with('*');
    if (many) name.pop_back();
    return std::any_of(operators.begin(), operators.end(), [&](const std::string& op) {
      return many ? op.starts_with("aten." + name) : op == "aten." + name;
    });
  };
  for (const OpFamily* family : all_families()) {
    CHECK((!family->reason.empty() || family->flops != nullptr));
    std::istringstream names{std::string(family->names)};
    for (std::string name; names >> name;) {
      INFO(name);
      CHECK(exists(name));
    }
  }
}

TEST_CASE("every case of every record agrees with ATen") {
  for (const OpRecord* record : all_ops()) {
    for (const OpCase& c : record->cases) {
      for (const Config& config : configs_of(*record)) {
        INFO(record->name << " / " << c.name << " / " << to_string(config));
        CaseRun run;
        REQUIRE_NOTHROW(run = run_case(c, config, device()));
        INFO("refused: " << joined(run.refusals));
        CHECK(run.served.contains(std::string(record->name)));
        REQUIRE_FALSE(run.outputs.empty());
        for (const Output& output : run.outputs) CHECK(problem(output, allowed(*record, config)) == "");
      }
    }
  }
}

TEST_CASE("an error of scale or offset, or one number that is not finite, is noticed in every record") {
  for (const OpRecord* record : all_ops()) {
    for (const Config& config : configs_of(*record)) {
      INFO(record->name << " / " << to_string(config));
      const CaseRun run = run_case(record->cases.front(), config, device());
      for (const Output& output : run.outputs)
        if (output.device.numel() > 0) expect_noticed(output, allowed(*record, config));
    }
  }
}

TEST_CASE("infinities and NaN are compared") {
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const auto tensor = [](const std::vector<float>& values) {
    HostTensor out = empty_host(DType::f32, {static_cast<std::int64_t>(values.size())});
    std::copy(values.begin(), values.end(), out.as<float>());
    return out;
  };
  const auto found = [&](DataType format, const std::vector<float>& device, const std::vector<float>& expected) {
    const Output output{.device = tensor(device),
                        .expected = tensor(expected),
                        .reference = tensor(expected),
                        .bytes = {},
                        .format = format};
    return problem(output, {}) != "";
  };
  for (const DataType format : {DataType::bfloat16, DataType::float32}) {
    CHECK_FALSE(found(format, {1, inf, -inf, 2}, {1, inf, -inf, 2}));
    CHECK(found(format, {1, inf, inf, 2}, {1, inf, -inf, 2}));
    CHECK(found(format, {1, inf, 3, 2}, {1, inf, -inf, 2}));
    CHECK(found(format, {1, inf, 2, 2}, {1, 3, 2, 2}));
    CHECK(found(format, {1, 0, 2, 2}, {1, nan, 2, 2}));
    CHECK_FALSE(found(format, {1, nan, 2, 3}, {1, nan, 2, 3}));
    // Only formats without NaN have an infinity in its place.
    CHECK(found(format, {1, -inf, 2, 3}, {1, nan, 2, 3}) == (format == DataType::float32));
  }
}

// Whether some case gives other bits in the second configuration.
bool differs(const OpRecord& record, const Config& a, const Config& b) {
  return std::ranges::any_of(record.cases, [&](const OpCase& c) {
    const CaseRun one = run_case(c, a, device()), other = run_case(c, b, device());
    if (!one.served.contains(std::string(record.name)) || one.outputs.size() != other.outputs.size()) return false;
    for (std::size_t i = 0; i < one.outputs.size(); ++i)
      if (one.outputs[i].bytes != other.outputs[i].bytes) return true;
    return false;
  });
}

TEST_CASE("every choice of precision that a record has is another result") {
  // What compares sums nothing, a rotary embedding's cases state their configuration, and the reductions' cases are too
  // short to tell (op_exact_test.cpp has longer ones); a logarithm of softmax sums in float32 in fast numerics,
  // whatever is asked.
  const std::set<std::string_view> same{
      "tt.amax", "tt.amin", "tt.sum", "tt.mean", "tt.prod", "tt.var", "tt.rotary_embedding"},
      exact_only{"tt.log_softmax"};
  for (const OpRecord* record : all_ops()) {
    INFO(record->name);
    if (record->schema.find("bool? fp32_acc") != std::string_view::npos && !same.contains(record->name)) {
      const bool exact = exact_only.contains(record->name);
      const Config wide{.activation = exact ? DataType::bfloat16 : DataType::float32,
                        .numerics = exact ? Numerics::exact : Numerics::fast};
      Config narrow = wide;
      narrow.fp32_acc = false;
      CHECK(differs(*record, wide, narrow));
    }
    if (record->schema.find("str weight_format") != std::string_view::npos && record->name != "tt.embedding")
      CHECK(differs(*record, {}, {.weight = DataType::bfloat4_b}));
  }
}

TEST_CASE("kernels give the same bits on every instruction set") {
  // Matrix products add in the order their blocking makes.
  const std::set<std::string_view> products{"tt.linear", "tt.matmul", "tt.attention"};
  for (const OpRecord* record : all_ops()) {
    if (products.contains(record->name)) continue;
    for (const OpCase& c : record->cases) {
      INFO(record->name << " / " << c.name);
      const CaseRun best = run_case(c, {}, device());
      for (const Isa level : {Isa::portable, Isa::avx2, Isa::avx512}) {
        const ScopedIsa lowered(level);
        const CaseRun other = run_case(c, {}, device());
        REQUIRE(other.outputs.size() == best.outputs.size());
        for (std::size_t i = 0; i < best.outputs.size(); ++i) CHECK(other.outputs[i].bytes == best.outputs[i].bytes);
      }
    }
  }
}
TEST_CASE("literals that can't be right are refused with words") {
  // Where any number is one.
  const std::map<std::string_view, std::set<std::string_view>> taken{
      {"tt.arange", {"start", "step"}}, {"tt.avg_pool2d", {"divisor"}},         {"tt.full", {"size"}},
      {"tt.repeat", {"repeats"}},       {"tt.slice", {"start", "end", "step"}}, {"tt.slice_scatter", {"end", "step"}},
  };
  std::map<std::string_view, std::set<std::string_view>> found;
  for (const OpRecord* record : all_ops()) {
    const auto* schema = ttc::ir::find_schema(record->name);
    for (const OpCase& c : record->cases) {
      for (const OpCall& call : run_case(c, {}, device()).calls) {
        if (call.op != record) continue;
        for (std::size_t i = 0; i < call.args.size(); ++i) {
          const std::string_view name = schema->args[i].name;
          for (const OpArg& other : junk(call.args[i])) {
            INFO(record->name << ", " << name << " of " << c.name);
            OpCall wrong = call;
            wrong.args[i] = other;
            const std::string what = outcome(wrong);
            CHECK(what != "a result of negative size");
            if (what == "taken") found[record->name].insert(name);
          }
        }
      }
    }
  }
  CHECK(found == taken);
}
