// Everything a program does with the installed library: compile, save, load, run on the device in fast and exact
// numerics, keep an output resident, compare with recorded values, cancel, read reports.
//   user MODEL.pt2 FOLDER (bert_small: three int64 inputs [2, 10], outputs [2, 10, 64] and [2, 64]; FOLDER takes files)
#include <ttrt/ttrt.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <numeric>
#include <thread>

#include "expect.h"
#include "recorded.h"

namespace {

std::vector<ttrt::Tensor> example() {
  std::vector<std::int64_t> ids(20);
  std::iota(ids.begin(), ids.end(), 1);
  const std::vector<std::int64_t> ones(20, 1), zeros(20, 0);
  return {ttrt::Tensor::from(ids, {2, 10}), ttrt::Tensor::from(ones, {2, 10}), ttrt::Tensor::from(zeros, {2, 10})};
}

// 1 - cosine of the angle between what came and what was recorded, and the largest difference.
struct Distance {
  double angle = 0, largest = 0;
};
Distance distance(std::span<const float> a, std::span<const float> b) {
  double ab = 0, aa = 0, bb = 0, largest = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    ab += double{a[i]} * b[i], aa += double{a[i]} * a[i], bb += double{b[i]} * b[i];
    largest = std::max(largest, std::abs(double{a[i]} - b[i]));
  }
  return {1 - ab / std::sqrt(aa * bb), largest};
}

void tensors() {
  const ttrt::Tensor t = ttrt::Tensor::from(std::array{1.5F, 2.5F, -3.F}, {3, 1});
  EXPECT(t.type() == ttrt::ElementType::float32 && t.numel() == 3 && !t.is_resident());
  EXPECT(t.values<float>()[1] == 2.5F);
  EXPECT(t.to(ttrt::ElementType::int64).values<std::int64_t>()[2] == -3);
  EXPECT(t.text() == "float32[3, 1]");
  EXPECT(ttrt::Tensor::scalar(true).item<bool>());
  EXPECT(error_of([&] { t.values<double>(); }).kind() == ttrt::Error::Kind::usage);
  EXPECT(error_of([] { ttrt::Tensor::from(std::array{1.F, 2.F}, {3}); }).kind() == ttrt::Error::Kind::usage);
  EXPECT(error_of([] { ttrt::Tensor::empty(ttrt::ElementType::float32, {-1}); }).kind() == ttrt::Error::Kind::usage);
  EXPECT(error_of([] { ttrt::Tensor::empty(ttrt::ElementType::int8, {1L << 40, 1L << 40}); }).kind() ==
         ttrt::Error::Kind::usage);
  std::array<std::int32_t, 2> mine{1, 2};
  ttrt::Tensor::view(mine, {2}).mutable_values<std::int32_t>()[0] = 7;
  EXPECT(mine[0] == 7);
}

void signature(const ttrt::Model& model) {
  const auto inputs = model.inputs(), outputs = model.outputs();
  EXPECT(inputs.size() == 3 && outputs.size() == 2);
  EXPECT(inputs[0].type == ttrt::ElementType::int64);
  EXPECT(inputs[0].dims.size() == 2 && inputs[0].dims[0].size == 2 && inputs[0].dims[1].max == 10);
  EXPECT(outputs[1].name == "out1" && outputs[1].text() == "float32[2, 64]");
  EXPECT(!model.is_rewritten() && model.arch().empty());
}

void run_plain(const ttrt::Model& model) {
  ttrt::Session session(model, {.mode = ttrt::RunMode::cpu});
  const auto outputs = session.run(example());
  EXPECT(distance(outputs[1].values<float>(), recorded_float32).largest < 1e-5);
  const auto names = model.inputs();
  const auto in = example();
  const auto by_name = session.run({{names[2].name, in[2]}, {names[0].name, in[0]}, {names[1].name, in[1]}});
  EXPECT(distance(outputs[1].values<float>(), by_name[1].values<float>()).largest == 0);
  EXPECT(error_of([&] { session.run({in[0]}); }).kind() == ttrt::Error::Kind::usage);
  EXPECT(error_of([&] { session.run({{"nobody", in[0]}}); }).kind() == ttrt::Error::Kind::usage);
  EXPECT(error_of([&] { session.run_keeping(in, {2}); }).kind() == ttrt::Error::Kind::usage);
  EXPECT(!session.run_keeping(in, {0})[0].is_resident());  // without a device there is nowhere to keep it
  EXPECT(session.memory().empty());
}

void run_on_device(const ttrt::Model& model) {
  EXPECT(model.is_rewritten() && model.arch() == "n150" && model.extra().contains("ttc_manifest.json"));
  for (const ttrt::NumericsMode numerics : {ttrt::NumericsMode::fast, ttrt::NumericsMode::exact}) {
    const bool exact = numerics == ttrt::NumericsMode::exact;
    ttrt::Session session(model, {.numerics = numerics, .profile = true});
    EXPECT(session.placement().empty());
    const auto outputs = session.run(example());
    const std::span<const float> recorded = exact ? recorded_exact : recorded_fast;
    const Distance off = distance(outputs[1].values<float>(), recorded);
    EXPECT(off.angle < 1e-6 && off.largest <= (exact ? 0 : 1e-2));  // exact numerics are the same on every machine
    EXPECT(distance(outputs[1].values<float>(), recorded_float32).angle < 1e-3);

    const ttrt::RunReport report = session.report();
    const auto placement = session.placement();
    EXPECT(report.runs == 1 && report.fallbacks.empty());
    EXPECT(report.device_us > 0 && report.to_device > 0 && report.to_host == 2);
    // A fused op counts for each node that it computes, as the compiler counts.
    EXPECT(report.device_nodes > static_cast<std::int64_t>(placement.size()) && report.cpu_nodes == 0);
    double cycles = 0, transferred = 0;
    for (const ttrt::OpProfile& op : session.profile())
      (op.kind == ttrt::OpProfile::Kind::transfer ? transferred : cycles) += op.cycles;
    EXPECT(std::abs(cycles - report.device_cycles) <= 1e-6 * cycles);
    EXPECT(transferred > 0 && report.transfer_us > 0);
    EXPECT(session.memory().size() == 2 && session.memory()[0].peak_per_bank > 0);

    const auto kept = session.run_keeping(example(), {0});
    EXPECT(kept[0].is_resident() && !kept[1].is_resident());
    EXPECT(error_of([&] { kept[0].values<float>(); }).kind() == ttrt::Error::Kind::usage);
    EXPECT(distance(session.fetch(kept[0]).values<float>(), outputs[0].values<float>()).largest == 0);
    EXPECT(session.report().to_host == 1);
  }
  // Left to the CPU by a dispatcher, nodes do not count for the device.
  ttrt::Session left(model, {.dispatcher = "cpu"});
  left.run(example());
  EXPECT(left.report().device_nodes == 0 && left.report().cpu_nodes > 10);
  EXPECT(left.report().device_us == 0 && left.report().transfer_us > 0);
}

// What a session tells of its runs: TT-Symbiote's report and timings.
void reports(const ttrt::Model& model, const std::string& folder) {
  ttrt::Session session(model, {.mode = ttrt::RunMode::normal, .trace = true});
  session.run(example());
  session.run(example());
  const ttrt::Compatibility seen = session.compatibility();
  EXPECT(seen.runs == 2 && seen.regressions.empty() && !seen.successes.empty());
  for (const auto& [path, runs] : seen.successes) EXPECT(runs == 2 && seen.swapped.contains(path));
  bool linear = false;
  for (const ttrt::Timing& timing : session.timings()) {
    linear = linear || timing.func_name == "TTNN::linear";
    EXPECT(timing.rows % 2 == 0 && timing.min <= timing.max && timing.min > 0);
  }
  EXPECT(linear);
  session.save_timings(folder + "/timings.csv");
  EXPECT(std::ifstream(folder + "/timings_pivot.csv").good());

  ttrt::Session left(model, {.dispatcher = "cpu", .profile = true});
  left.run(example());
  EXPECT(!left.compatibility().regressions.empty());
  EXPECT(left.compatibility(std::vector<std::string>{"*"}).regressions.empty());
  EXPECT(error_of([&] { left.save_timings(folder + "/none.csv"); }).kind() == ttrt::Error::Kind::usage);
}

// A tensor that stays on the device says so when its session is gone.
void outlives_its_session(const ttrt::Model& model) {
  std::vector<ttrt::Tensor> kept;
  {
    ttrt::Session session(model);
    kept = session.run_keeping(example(), {0});
  }
  ttrt::Session other(model);
  EXPECT(error_of([&] { other.fetch(kept[0]); }).kind() == ttrt::Error::Kind::usage);
}

// Reports are read and runs cancelled while another thread runs.
void threads(const ttrt::Model& model) {
  ttrt::Session session(model, {.numerics = ttrt::NumericsMode::exact, .profile = true});
  session.run(example());
  int cancelled = 0, finished = 0;
  std::atomic<bool> done{false};
  std::thread runner([&] {
    for (int i = 0; i < 8; ++i) {
      const ttrt::Error error = error_of([&] { session.run(example()); });
      (error.kind() == ttrt::Error::Kind::cancelled ? cancelled : finished) += 1;
    }
    done = true;
  });
  while (!done) {
    EXPECT(session.report().runs >= 1);
    session.cancel();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  runner.join();
  EXPECT(cancelled > 0 && cancelled + finished == 8);
  const auto outputs = session.run(example());
  EXPECT(distance(outputs[1].values<float>(), recorded_exact).largest == 0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string path = argv[1], saved = std::string(argv[2]) + "/compiled.pt2";
  tensors();
  const ttrt::Model model = ttrt::Model::load(path);
  signature(model);
  run_plain(model);

  const auto [compiled, report] = ttrt::compile(model);
  compiled.save(saved);
  EXPECT(report.device_nodes + report.cpu_nodes == report.nodes && report.device_nodes > 10 && report.fits);
  std::ifstream file(saved, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const ttrt::Model from_file = ttrt::Model::load(saved);
  const ttrt::Model from_memory = ttrt::Model::load(std::as_bytes(std::span(bytes)), "in memory");
  run_on_device(from_file);
  run_on_device(from_memory);
  outlives_its_session(from_file);
  reports(from_file, argv[2]);
  threads(from_file);

  const ttrt::Error twice = error_of([&] { ttrt::compile(from_file); });
  EXPECT(twice.kind() == ttrt::Error::Kind::usage && !twice.hint().empty());
  EXPECT(error_of([&] { ttrt::compile(model, {.arch = "n15"}); }).kind() == ttrt::Error::Kind::usage);
  EXPECT(error_of([&] { ttrt::compile(model, {.fallback_op = {"*"}, .require_full = true}); }).kind() ==
         ttrt::Error::Kind::unsupported);
  EXPECT(error_of([] { ttrt::Model::load("/nonexistent.pt2"); }).kind() == ttrt::Error::Kind::bad_file);
  const ttrt::Error broken = error_of([&] { ttrt::Model::load(std::as_bytes(std::span(bytes)).subspan(100), "cut"); });
  EXPECT(broken.kind() == ttrt::Error::Kind::bad_file && std::string(broken.what()).starts_with("cut"));
  if (failed_lines == 0) std::printf("ok, ttrt %s\n", ttrt::version());
  return failed_lines == 0 ? 0 : 1;
}
