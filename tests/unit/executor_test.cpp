// The executor on small text-IR graphs: values, control flow, state, shapes, plans; and its parts.
#include "executor/executor.h"

#include <algorithm>
#include <map>

#include "executor/kernel_choice.h"
#include "device/metrics.h"
#include "executor/signature.h"
#include "support/error.h"
#include "tests/catch.h"

namespace {

using namespace ttrt;

HostTensor floats(Shape sizes, const std::vector<float>& values) {
  HostTensor out = empty_host(DType::f32, std::move(sizes));
  std::copy(values.begin(), values.end(), out.as<float>());
  return out;
}

std::vector<float> values_of(const RtValue& value) {
  const auto* host = value.get_if<HostTensor>();
  REQUIRE(host != nullptr);
  const HostTensor dense = contiguous(convert(*host, DType::f32));
  return {dense.as<float>(), dense.as<float>() + dense.numel()};
}

std::unique_ptr<Executor> executor(const char* text, Mode mode = Mode::cpu) {
  install_torch_schemas();
  return std::make_unique<Executor>(std::shared_ptr<const ttc::ir::Model>(ttc::ir::parse(text)),
                                    ExecutorOptions{.mode = mode});
}

ttc::Exit code_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const ttc::Error& error) {
    return error.code();
  }
  return ttc::Exit::ok;
}

}  // namespace

TEST_CASE("a graph of ATen nodes runs in LibTorch, weights from the model") {
  auto e = executor(R"(model {}
graph main(%x: f32[2, 3] user, $w: f32[2, 3] parameter "w" = [1, 2, 3, 4, 5, 6]) {
  %a: f32[2, 3] = aten.add.Tensor(%x, $w, alpha=2)
  %b: f32[2, 3] = aten.relu.default(%a)
  return %b, %a
})");
  for (int run = 0; run < 3; ++run) {
    const auto out = e->run({floats({2, 3}, {-2, -4, -7, 0, 0, 1})});
    CHECK(values_of(out[0]) == std::vector<float>{0, 0, 0, 8, 10, 13});
    CHECK(values_of(out[1]) == std::vector<float>{0, 0, -1, 8, 10, 13});
  }
  CHECK(e->cached_plans() == 1);
}

TEST_CASE("nodes fed by weights only run once and are shared by all signatures") {
  auto e = executor(R"(model {range s0 in [1, 64]}
graph main(%x: f32[s0, 2] user, $w: f32[2, 2] parameter "w" = [1, 2, 3, 4]) {
  %t: f32[2, 2] = aten.t.default($w)
  %n: f32[2, 2] = aten.neg.default(%t)
  %y: f32[s0, 2] = aten.mm.default(%x, %n)
  return %y
})");
  CHECK(e->program().setup.instructions.size() == 2);
  CHECK(e->program().main.instructions.size() == 1);
  int calls = 0;
  e->set_observer([&](const Instruction& i, const Frame&) { calls += i.node->op() == "aten.neg.default"; });
  CHECK(values_of(e->run({floats({1, 2}, {1, 1})})[0]) == std::vector<float>{-3, -7});
  CHECK(values_of(e->run({floats({2, 2}, {1, 0, 0, 1})})[0]) == std::vector<float>{-1, -3, -2, -4});
  CHECK(calls == 1);
  CHECK(e->cached_plans() == 2);
}

TEST_CASE("a result that somebody writes is not kept as a constant") {
  auto e = executor(R"(model {}
graph main(%x: f32[2] user) {
  %z: f32[2] = aten.zeros.default([2])
  %w: f32[2] = aten.add_.Tensor(%z, %x)
  return %w
})");
  CHECK(e->program().setup.instructions.empty());
  CHECK(values_of(e->run({floats({2}, {1, 2})})[0]) == std::vector<float>{1, 2});
  CHECK(values_of(e->run({floats({2}, {1, 2})})[0]) == std::vector<float>{1, 2});
}

TEST_CASE("buffers written in place or by mutation outputs live on, and reset") {
  const char* in_place = R"(model {}
graph main(%x: f32[2] user, $n: f32[2] buffer "n" = [10, 20]) {
  %w: f32[2] = aten.add_.Tensor($n, %x)
  %y: f32[2] = aten.mul.Tensor($n, %x)
  return %y
})";
  const char* functional = R"(model {}
graph main(%x: f32[2] user, $n: f32[2] buffer "n" = [10, 20]) {
  %w: f32[2] = aten.add.Tensor($n, %x)
  %y: f32[2] = aten.mul.Tensor(%w, %x)
  return mutation buffer "n" = %w, %y
})";
  for (const char* text : {in_place, functional}) {
    std::unique_ptr<Executor> e;
    REQUIRE_NOTHROW(e = executor(text));
    CHECK(values_of(e->run({floats({2}, {1, 2})})[0]) == std::vector<float>{11, 44});
    CHECK(values_of(e->run({floats({2}, {1, 2})})[0]) == std::vector<float>{12, 48});
    e->reset_state();
    CHECK(values_of(e->run({floats({2}, {1, 2})})[0]) == std::vector<float>{11, 44});
  }
}

TEST_CASE("control flow: branches and loops run the graphs they name") {
  auto branch = executor(R"(model {}
graph main(%p: bool[] user, %x: f32[2] user) {
  %y: f32[2] = prim.if(%p) {
    %a: f32[2] = aten.add.Tensor(%x, %x)
    return %a
  } {
    %b: f32[2] = aten.neg.default(%x)
    return %b
  }
  return %y
})");
  HostTensor flag = empty_host(DType::boolean, {});
  *flag.as<bool>() = true;
  CHECK(values_of(branch->run({flag, floats({2}, {1, 2})})[0]) == std::vector<float>{2, 4});
  *flag.as<bool>() = false;
  CHECK(values_of(branch->run({flag, floats({2}, {1, 2})})[0]) == std::vector<float>{-1, -2});
  auto loop = executor(R"(model {}
graph main(%n: int user, %x: f32[2] user) {
  %y: f32[2] = prim.loop(%n, true, %x) {^body(%i: int, %c: f32[2]):
    %a: f32[2] = aten.add.Tensor(%c, %x)
    return true, %a
  }
  return %y
})");
  CHECK(values_of(loop->run({std::int64_t{0}, floats({2}, {1, 2})})[0]) == std::vector<float>{1, 2});
  CHECK(values_of(loop->run({std::int64_t{3}, floats({2}, {1, 2})})[0]) == std::vector<float>{4, 8});
}

TEST_CASE("inputs that do not fit the signature are usage errors") {
  auto e = executor(R"(model {range s0 in [2, 8]}
graph main(%x: f32[s0, 2] user, %y: f32[s0] user) {
  %z: f32[s0] = aten.sum.dim_IntList(%x, [1])
  %w: f32[s0] = aten.add.Tensor(%z, %y)
  return %w
})");
  const auto x = floats({3, 2}, {1, 2, 3, 4, 5, 6}), y = floats({3}, {0, 0, 0});
  CHECK(values_of(e->run({x, y})[0]) == std::vector<float>{3, 7, 11});
  CHECK(code_of([&] { e->run({x}); }) == ttc::Exit::usage);                                   // too few
  CHECK(code_of([&] { e->run({x, floats({2}, {0, 0})}); }) == ttc::Exit::usage);              // s0 twice
  CHECK(code_of([&] { e->run({convert(x, DType::f64), y}); }) == ttc::Exit::usage);           // dtype
  CHECK(code_of([&] { e->run({floats({6}, {1, 2, 3, 4, 5, 6}), y}); }) == ttc::Exit::usage);  // rank
  const auto nine = floats({9, 2}, std::vector<float>(18)), nine_y = floats({9}, std::vector<float>(9));
  CHECK(code_of([&] { e->run({nine, nine_y}); }) == ttc::Exit::usage);  // range
  CHECK(values_of(e->run({floats({1, 2}, {1, 2}), floats({1}, {1})})[0]) ==
        std::vector<float>{4});  // 2 is how export writes "any"
}

TEST_CASE("plans are bounded: the least recently used goes first") {
  install_torch_schemas();
  Executor e(std::shared_ptr<const ttc::ir::Model>(ttc::ir::parse(R"(model {range s0 in [1, 64]}
graph main(%x: f32[s0] user) {
  %y: f32[s0] = aten.neg.default(%x)
  return %y
})")),
             ExecutorOptions{.mode = Mode::cpu, .program_cache = 2});
  for (std::int64_t n = 1; n < 6; ++n) e.run({floats({n}, std::vector<float>(static_cast<std::size_t>(n), 1))});
  CHECK(e.cached_plans() == 2);
}

TEST_CASE("auto_functionalized calls operators that write without writing", "[functionalized]") {
  // A slice and a whole base; the operator's own result, then the bases after the call.
  const auto sliced = executor(R"(model {}
graph main(%x: f32[4] user, %y: f32[2] user) {
  %r: f32[2], %b: f32[4] = higher_order.auto_functionalized_v2("torch.ops.aten.add_.Tensor", other=%y, alpha=2, _self_base_index=0, _self_slice_dim=0, _self_slice_start=1, _self_slice_end=3, _all_bases=[%x])
  return %r, %b, %x
})");
  const HostTensor x = floats({4}, {1, 2, 3, 4}), y = floats({2}, {10, 20});
  const auto out = sliced->run({x, y});
  CHECK(values_of(out[0]) == std::vector<float>{22, 43});
  CHECK(values_of(out[1]) == std::vector<float>{1, 22, 43, 4});
  CHECK(values_of(out[2]) == std::vector<float>{1, 2, 3, 4});
  const auto copied = executor(R"(model {}
graph main(%x: f32[4] user) {
  %r: f32[4], %b: f32[4] = higher_order.auto_functionalized("torch.ops.aten.fill_.Scalar", self=%x, value=7.0)
  return %b, %x
})");
  CHECK(values_of(copied->run({x})[0]) == std::vector<float>{7, 7, 7, 7});
  CHECK(values_of(copied->run({x})[1]) == std::vector<float>{1, 2, 3, 4});
}

TEST_CASE("an operator nobody knows is a bad file that names it") {
  try {
    executor(R"(model {}
graph main(%x: f32[2] user) {
  %y: f32[2] = higher_order.flex_attention(%x)
  return %y
})");
    FAIL("accepted");
  } catch (const ttc::Error& error) {
    CHECK(error.code() == ttc::Exit::bad_file);
    CHECK_THAT(error.what(), ContainsSubstring("flex_attention"));
  }
}

TEST_CASE("a profile tells the bytes that each instruction reads and writes, its place and its bound") {
  auto e = executor(R"(model {}
graph main(%x: f32[64, 40] user) {
  %a: f32[64, 40] = tt.to_device(%x, format="bfloat16")
  %b: f32[64, 40] = tt.relu(%a)
  %c: f32[64, 40] = tt.to_host(%b, dtype=f32)
  %y: f32[64, 40] = aten.neg.default(%c)
  return %y
})",
                    Mode::device);
  const RtValue x = floats({64, 40}, std::vector<float>(64 * 40, 1));
  e->run({x});
  CHECK(e->profiler().profile().empty());
  e->set_profiling(true);
  e->run({x});
  e->run({x});
  std::map<std::string, InstructionProfile> by_op;
  for (const InstructionProfile& p : e->profiler().profile()) by_op[p.instruction->node->op()] = p;
  REQUIRE(by_op.size() == 4);
  for (const auto& [op, p] : by_op) CHECK(p.calls == 2);
  constexpr std::int64_t tiles = 4 * 2048, host = 64 * 40 * 4;
  CHECK(by_op["tt.to_device"].bytes == 2 * tiles);
  CHECK(by_op["tt.relu"].bytes == 2 * 2 * tiles);
  CHECK(by_op["tt.to_host"].bytes == 2 * host);
  CHECK(by_op["aten.neg.default"].bytes == 2 * host);
  CHECK(by_op["tt.to_device"].place == OpPlace::transfer);
  CHECK(by_op["tt.relu"].place == OpPlace::device);
  CHECK(by_op["aten.neg.default"].place == OpPlace::cpu);
  CHECK(by_op["tt.relu"].cycles > 0);
  CHECK(by_op["tt.relu"].bound == "dispatch");
  CHECK(by_op["aten.neg.default"].cycles == 0);
  CHECK(by_op["aten.neg.default"].bound == "");
}

TEST_CASE("metrics: constants, scale errors and NaN are seen") {
  const auto ones = floats({4}, {1, 1, 1, 1}), twos = floats({4}, {2, 2, 2, 2}), ramp = floats({4}, {1, 2, 3, 4}),
             scaled = floats({4}, {2, 4, 6, 8});
  CHECK(compare(ones, ones).pcc == 1);
  CHECK(compare(twos, ones).pcc == 0);
  CHECK(compare(scaled, ramp).pcc == Approx(1));
  CHECK(compare(scaled, ramp).max_rel == Approx(1));
  CHECK(compare(scaled, ramp).snr_db == Approx(0).margin(1e-9));
  // One element has no correlation: its relative error decides.
  CHECK(compare(floats({1}, {1.001f}), floats({1}, {1})).correlates(0.999));
  CHECK_FALSE(compare(floats({1}, {1.1f}), floats({1}, {1})).correlates(0.999));
  CHECK_FALSE(compare(twos, ones).correlates(0.9));
  // A spread that rounding to bfloat16 loses has no correlation either; two steps of that are allowed.
  const auto level = floats({4}, {100, 100.5F, 99.5F, 100.25F});
  CHECK(compare(floats({4}, {100, 100, 100, 100.5F}), level).pcc < 0.9);
  CHECK(compare(floats({4}, {100, 100, 100, 100.5F}), level).correlates(0.997));
  CHECK_FALSE(compare(floats({4}, {100, 102, 100, 100.5F}), level).correlates(0.997));
  CHECK_FALSE(compare(floats({4}, {100, 100, 100, 100.5F}), floats({4}, {100, 104, 96, 100.5F})).correlates(0.997));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(compare(floats({2}, {nan, 1}), floats({2}, {nan, 1})).equal);
  CHECK(compare(floats({2}, {nan, 1}), floats({2}, {1, 1})).nan == 1);
  CHECK_FALSE(all_close(floats({2}, {nan, 1}), floats({2}, {1, 1}), 1, 1));
  CHECK(all_close(floats({2}, {1.0005f, 1}), floats({2}, {1, 1}), 1e-3, 0));
  CHECK_FALSE(all_close(floats({2}, {1.0005f, 1}), floats({2}, {1, 1}), 1e-4, 0));
  CHECK_THROWS_AS(compare(ones, floats({2}, {1, 1})), ttc::Error);
}

TEST_CASE("an op whose circular buffers do not fit into L1 runs on the host, with the reason") {
  const auto text = [](const std::string& width) {
    return "model {}\ngraph main(%x: f32[4, " + width + "] user) {\n  %d: f32[4, " + width +
           "] = tt.to_device(%x, format=\"float32\") place=\"device\"\n  %y: f32[4, " + width +
           "] = tt.layer_norm(%d, normalized_size=" + width + ") place=\"device\"\n  %h: f32[4, " + width +
           "] = tt.to_host(%y, dtype=f32) place=\"cpu\"\n  return %h\n}\n";
  };
  install_torch_schemas();
  ArchProfile small = default_profile();
  small.l1_bytes = small.l1_reserved + 64 * 1024;
  const auto failures = [&](const std::string& width) {
    Executor e(std::shared_ptr<const ttc::ir::Model>(ttc::ir::parse(text(width))), ExecutorOptions{.profile = small});
    std::vector<float> x(4 * static_cast<std::size_t>(std::stoi(width)));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7);
    const auto y = values_of(e.run({floats({4, std::stoi(width)}, x)})[0]);
    CHECK(std::abs(y[0] + 1.5F) < 0.1F);
    return e.fallback_failures();
  };
  CHECK(failures("140").empty());  // 5 tiles of 4 KiB in 3 buffers
  const auto refused = failures("700");
  REQUIRE(refused.size() == 1);
  CHECK(refused[0].op == "tt.layer_norm");
  CHECK(refused[0].reason.find("Statically allocated circular buffers on core range") != std::string::npos);
  CHECK(refused[0].reason.find("beyond max L1 size of " + std::to_string(small.l1_bytes) + " B") != std::string::npos);
}

namespace {

bool relu_fails = false;

// tt.relu, whose kernel fails where a test says so.
const std::string& fragile_relu() {
  static const std::string name = [] {
    static OpRecord record = *find_op("tt.relu");  // as long as the registry
    record.name = "tt.fragile_relu";
    record.lowers.clear();
    record.prepare = [](const OpCall& call, const PrepareContext& context) -> Kernel {
      OpCall relu = call;
      relu.op = find_op("tt.relu");
      return [kernel = relu.op->prepare(relu, context)](const KernelArgs& args) {
        if (relu_fails) throw std::runtime_error("it broke");
        kernel(args);
      };
    };
    record.reference = [](Reference& aten, const OpCall&, std::span<const RtValue> args) {
      return aten.call("aten.relu.default", {args[0]});
    };
    record.infer = [](const OpCall& call) { return std::vector<TensorSpec>{call.tensors.at(0)}; };
    record.supports = [](const OpCall&) { return ttc::Refusal(); };
    record.work = [](const OpCall&) { return Work{}; };
    register_op(record);
    return std::string(record.name);
  }();
  return name;
}

std::int64_t calls_of(const Executor& e, const std::string& kernel) {
  std::int64_t calls = 0;
  for (const ServedCalls& one : e.chooser().served()) calls += one.kernel == kernel ? one.calls : 0;
  return calls;
}

}  // namespace

TEST_CASE("an instruction that has settled is counted, broken and taken out as any other") {
  const std::string op = fragile_relu(), device = op + ".device", host = op + ".host";
  KernelChoiceOptions choice{.report = [](const std::string&, std::string_view) {}};
  choice.dispatch.failure_threshold = 2;
  choice.dispatch.recovery_timeout_seconds = 3600;
  Executor e(std::shared_ptr<const ttc::ir::Model>(ttc::ir::parse(R"(model {}
graph main(%x: f32[2] user) {
  %a: f32[2] = tt.to_device(%x, format="bfloat16")
  %b: f32[2] = )" + op + R"((%a)
  %c: f32[2] = tt.add(%b, %b)
  %y: f32[2] = tt.to_host(%c, dtype=f32)
  return %y
})")),
             ExecutorOptions{.chooser = std::make_shared<KernelChooser>(choice)});
  const auto run = [&] { CHECK(values_of(e.run({floats({2}, {-1, 3})})[0]) == std::vector<float>{0, 6}); };
  for (int i = 0; i < 6; ++i) run();
  const double cycles = e.work().device_cycles;
  CHECK((calls_of(e, device) == 6 && calls_of(e, "tt.add.device") == 6));
  CHECK(e.served()[0].kernel == device);
  relu_fails = true;
  run();
  CHECK((calls_of(e, device) == 6 && calls_of(e, host) == 1 && calls_of(e, "tt.add.device") == 7));
  CHECK(e.served()[0].kernel == host);
  CHECK(e.work().device_cycles < cycles);
  REQUIRE(e.fallback_failures().size() == 1);
  CHECK((e.fallback_failures()[0].reason == device + ": it broke" && e.fallback_failures()[0].count == 1));
  relu_fails = false;
  for (int i = 0; i < 4; ++i) run();  // it settles again
  CHECK((calls_of(e, device) == 10 && e.served()[0].kernel == device));
  CHECK(e.work().device_cycles == cycles);
  relu_fails = true;
  for (int i = 0; i < 4; ++i) run();  // taken out after the second
  CHECK((calls_of(e, device) == 10 && calls_of(e, host) == 5 && e.fallback_failures()[0].count == 3));
  relu_fails = false;
  run();
  CHECK((calls_of(e, device) == 10 && calls_of(e, host) == 6 && calls_of(e, "tt.add.device") == 16));
}

TEST_CASE("what follows from shapes alone is computed once for each, in the plan") {
  auto e = executor(R"(model {
  range s0 in [2, 64]
}
graph main(%x: f32[s0, 3] user) {
  %n: int(s0) = aten.sym_size.int(%x, 0)
  %m: int = _operator.add(%n, 1)
  %r: i64[s1] = aten.arange.start_step(1, %m, 1, dtype=i64)
  %c: f32[s0] = aten._to_copy.default(%r, dtype=f32)
  %k: f32[s0, 1] = aten.unsqueeze.default(%c, 1)
  %t: f32[s0, 1] = tt.to_device(%k, format="float32")
  %s: f32[s0, 1] = tt.neg(%t)
  %a: f32[s0, 3] = tt.to_device(%x, format="float32")
  %b: f32[s0, 3] = tt.mul(%a, %s)
  %d: f32[s0, 3] = tt.add(%b, %s)
  %y: f32[s0, 3] = tt.to_host(%d, dtype=f32)
  %i: f32[s0] = aten.add.Tensor(%c, %c)
  return %y, %i
})",
                    Mode::device);
  std::vector<RtValue> kept;
  const auto run = [&](std::int64_t n, float x) {
    const std::vector<RtValue> out = e->run({floats({n, 3}, std::vector<float>(static_cast<std::size_t>(3 * n), x))});
    std::vector<float> want, twice;
    for (std::int64_t i = 1; i <= n; ++i) {
      want.insert(want.end(), 3, -static_cast<float>(i) * (x + 1));
      twice.push_back(2 * static_cast<float>(i));
    }
    CHECK(values_of(out[0]) == want);
    CHECK(values_of(out[1]) == twice);
    out[1].get_if<HostTensor>()->as<float>()[0] = 99;  // the caller's own
  };
  for (int i = 0; i < 5; ++i) run(4, static_cast<float>(i));
  CHECK(calls_of(*e, "tt.neg.device") == 2);
  CHECK(calls_of(*e, "tt.mul.device") == 5);  // while recording, and in its place
  for (int i = 0; i < 4; ++i) run(7, static_cast<float>(i));
  CHECK(calls_of(*e, "tt.neg.device") == 4);
  CHECK(calls_of(*e, "tt.mul.device") == 9);
  for (int i = 0; i < 2; ++i) run(4, static_cast<float>(i));  // the plan of before
  CHECK(calls_of(*e, "tt.neg.device") == 4);
  CHECK(calls_of(*e, "tt.mul.device") == 11);
  CHECK(e->counts().device == 3);
}

TEST_CASE("a settled sum that the device cannot hold is computed on the host, that run alone") {
  auto e = executor(R"(model {}
graph main(%x: i64[2] user) {
  %a: i64[2] = tt.to_device(%x, format="int32")
  %b: i64[2] = tt.add(%a, %a)
  %y: i64[2] = tt.to_host(%b, dtype=i64)
  return %y
})",
                    Mode::device);
  const auto twice = [&](std::int64_t x) {
    HostTensor in = empty_host(DType::i64, {2});
    std::fill_n(in.as<std::int64_t>(), 2, x);
    return e->run({in})[0].get_if<HostTensor>()->as<std::int64_t>()[1];
  };
  for (const std::int64_t x : {1LL, 2LL, 3LL, 4LL, 2000000000LL, 5LL, 6LL, 7LL, 8LL, 1500000000LL})
    CHECK(twice(x) == 2 * x);
  REQUIRE(e->fallback_failures().size() == 1);
  CHECK(e->fallback_failures()[0].count == 2);
  CHECK(calls_of(*e, "tt.add.device") == 10);  // the two that failed too
}
