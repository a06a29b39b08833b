// The thread contract of api/ttrt.h, under the thread sanitizer: sessions that run, are asked for reports, are
// cancelled and have their rules changed, all at a time. Sessions, the executor and dispatch are compiled into this
// program with the sanitizer; the kernels below them are the library's as it is.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>

#include "api/ttrt.h"
#include "tests/catch.h"

namespace {

std::vector<ttrt::Tensor> example() {
  std::vector<std::int64_t> ids(20);
  std::iota(ids.begin(), ids.end(), 1);
  const std::vector<std::int64_t> ones(20, 1), zeros(20, 0);
  return {ttrt::Tensor::from(ids, {2, 10}), ttrt::Tensor::from(ones, {2, 10}), ttrt::Tensor::from(zeros, {2, 10})};
}

const ttrt::Model& compiled() {
  static const ttrt::Model model = ttrt::compile(ttrt::Model::load(TTC_MODELS "/bert_small.pt2")).model;
  return model;
}

bool same(const ttrt::Tensor& a, const ttrt::Tensor& b) {
  const auto x = a.bytes(), y = b.bytes();
  return std::equal(x.begin(), x.end(), y.begin(), y.end());
}

}  // namespace

TEST_CASE("reports, profiles and cancels of a session while two threads run it") {
  ttrt::Session session(compiled(), {.profile = true});
  const std::vector<ttrt::Tensor> expected = session.run(example());
  std::atomic<int> running{2}, wrong{0}, cancelled{0}, finished{0};
  std::vector<std::thread> runners;
  for (int t = 0; t < 2; ++t)
    runners.emplace_back([&] {
      for (int i = 0; i < 20; ++i) try {
          const auto outputs = session.run(example());
          wrong += same(outputs[0], expected[0]) && same(outputs[1], expected[1]) ? 0 : 1;
          ++finished;
        } catch (const ttrt::Error& error) {
          error.kind() == ttrt::Error::Kind::cancelled ? ++cancelled : ++wrong;
        }
      --running;
    });
  std::thread asking([&] {
    while (running > 0) {
      const ttrt::RunReport report = session.report();
      if (report.runs < 1 || report.device_nodes + report.cpu_nodes == 0) ++wrong;
      if (session.placement().empty() || session.profile().empty() || session.memory().size() != 2) ++wrong;
    }
  });
  for (int i = 0; running > 0; ++i) {
    if (i % 8 == 0) session.cancel();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (std::thread& runner : runners) runner.join();
  asking.join();
  CHECK(wrong == 0);
  CHECK(cancelled + finished == 40);
  CHECK(session.report().runs == 1 + finished);
}

TEST_CASE("sessions of one model run side by side") {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  const std::vector<ttrt::Tensor> expected = ttrt::Session(compiled()).run(example());
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      ttrt::Session session(compiled());
      for (int i = 0; i < 5; ++i) wrong += same(session.run(example())[1], expected[1]) ? 0 : 1;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("rules that change while a session runs") {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("ttrt-rules-" + std::to_string(getpid()) + ".yaml")).string();
  const auto write = [&](const char* kernel) {
    std::ofstream(path + ".new") << "version: \"1.0\"\nkernel_locks:\n  tt.layer_norm: " << kernel << "\n";
    std::rename((path + ".new").c_str(), path.c_str());
  };
  write("tt.layer_norm.device");
  ttrt::Session session(
      compiled(),
      {.dispatch_mode = ttrt::DispatchMode::HOT_RELOAD, .dispatch_config = path, .log = [](const std::string&) {}});
  std::atomic<bool> running{true};
  std::atomic<int> wrong{0};
  std::thread runner([&] {
    for (int i = 0; i < 60; ++i) wrong += session.run(example()).size() == 2 ? 0 : 1;
    running = false;
  });
  for (int i = 0; running; ++i) {
    write(i % 2 == 0 ? "tt.layer_norm.host" : "tt.layer_norm.device");
    static_cast<void>(session.report());
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
  }
  runner.join();
  std::remove(path.c_str());
  CHECK(wrong == 0);
}
