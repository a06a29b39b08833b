// CONFIG cached and with 10 and 100 rules of which the last matches, the orchestrator, and a reload of 100 rules from a file.
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include "dispatch/config_dispatcher.h"
#include "dispatch/hot_reload.h"
#include "dispatch/orchestrator.h"
#include "tests/bench/dispatch_bench.h"

namespace ttrt::dispatch {
namespace {

const std::string operation = "bench.config";

KernelRegistry& kernels() {
  static KernelRegistry registry;
  static const bool filled = [] {
    for (const char* id : {"bench.config.a", "bench.config.b"}) {
      KernelSpec spec;
      spec.id = id;
      spec.operation = operation;
      spec.source = "bench";
      spec.impl = KernelImpl([](void* /*state*/, CallArgs& /*args*/) {});
      spec.platform = Platform::tt;
      registry.add(std::move(spec));
    }
    return true;
  }();
  static_cast<void>(filled);
  return registry;
}

// Rules of this operation and of others, as a file of a user has them: sizes, dtypes, devices. Only the last one matches.
std::string rules(int count) {
  std::string yaml = "version: \"1.0\"\ndispatch_rules:\n";
  for (int i = 0; i + 1 < count; ++i)
    yaml += "  - operation: \"bench.*\"\n    kernel: bench.config.a\n    priority: " + std::to_string(100 + i) + "\n    conditions:\n      batch_size_gte: 1\n      dtype_in: [float16, bfloat16]\n      m_gt: " +
            std::to_string(100000 + i) + "\n";
  return yaml + "  - operation: bench.config\n    kernel: bench.config.b\n    priority: 1\n    conditions: {device_match: \"tt:*\", k: 768}\n";
}

SelectionContext context() {
  SelectionContext c;
  c.operation = operation;
  c.device.platform = Platform::tt;
  c.device.name = "n150";
  c.dtype = DType::bf16;
  c.batch_size = 8, c.m = 128, c.n = 768, c.k = 768;
  return c;
}

void add_config(std::vector<BenchCase>& cases, const std::string& name, const std::string& what, int count, bool cache, double target) {
  DispatchOptions options;
  options.mode = DispatchMode::CONFIG;
  options.record_timing = false;
  options.enable_cache = cache;
  const auto dispatcher = std::make_shared<ConfigDispatcher>(DispatchConfig(std::move(options)), kernels());
  dispatcher->update(rules(count));
  cases.push_back({name, what, [dispatcher, op = Symbol(operation)](std::int64_t n) {
                     const SelectionContext c = context();
                     CallArgs args;
                     for (std::int64_t i = 0; i < n; ++i) keep(dispatcher->dispatch(op, args, &c));
                   }, target});
}

void add_orchestrator(std::vector<BenchCase>& cases) {
  DispatchOptions options;
  options.mode = DispatchMode::STATIC;
  options.record_timing = false;
  options.static_kernel_map[operation] = "bench.config.a";
  const auto orchestrator = std::make_shared<Orchestrator>(DispatchConfig(std::move(options)), kernels());
  const auto direct = orchestrator->get_dispatcher(DispatchMode::STATIC);
  cases.push_back({"static_through_interface", "the same dispatcher without the orchestrator", [orchestrator, direct, op = Symbol(operation)](std::int64_t n) {
                     CallArgs args;
                     for (std::int64_t i = 0; i < n; ++i) keep(direct->dispatch(op, args));
                   }});
  const auto through = [orchestrator, op = Symbol(operation)](std::int64_t n) {
    CallArgs args;
    for (std::int64_t i = 0; i < n; ++i) keep(orchestrator->dispatch(op, args));
  };
  cases.push_back({"orchestrator_whole", "STATIC through the orchestrator", through});
  cases.push_back({"orchestrator", "what the orchestrator adds to that", through, 5, "static_through_interface"});
}

struct File {
  std::string path = (std::filesystem::temp_directory_path() / ("bench_dispatch_" + std::to_string(getpid()) + ".yaml")).string();
  ~File() { std::filesystem::remove(path); }
};

void add_reload(std::vector<BenchCase>& cases) {
  const auto file = std::make_shared<File>();
  std::ofstream(file->path) << rules(100);
  DispatchOptions options;
  options.mode = DispatchMode::HOT_RELOAD;
  options.config_path = file->path;
  const auto dispatcher = std::make_shared<HotReloadDispatcher>(DispatchConfig(std::move(options)), kernels());
  cases.push_back({"reload_100_rules", "reading, validating, compiling and swapping in 100 rules", [file, dispatcher](std::int64_t n) {
                     for (std::int64_t i = 0; i < n; ++i) dispatcher->reload(true, 0);
                   }, 1e6});
}

}  // namespace

void add_config_cases(std::vector<BenchCase>& cases) {
  add_config(cases, "config_cached", "CONFIG, the rule's choice remembered", 10, true, 50);
  add_config(cases, "config_10_rules", "CONFIG without cache, the last of 10 rules matches", 10, false, 0);
  add_config(cases, "config_100_rules", "CONFIG without cache, the last of 100 rules matches", 100, false, 2000);
  add_orchestrator(cases);
  add_reload(cases);
}

}  // namespace ttrt::dispatch
