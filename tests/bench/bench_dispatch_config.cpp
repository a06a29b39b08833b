// CONFIG cached and with 10 and 100 rules of which the last matches, the orchestrator, and a reload of 100 rules from a
// file.
#include <array>
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include "dispatch/config_dispatcher.h"
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

// Rules as a file of a user has them: sizes, dtypes, devices. Only the last one matches. `edition` changes one of them.
std::string rules(int count, int edition = 0) {
  std::string yaml = "version: \"1.0\"\ndispatch_rules:\n";
  for (int i = 0; i + 1 < count; ++i)
    yaml += "  - operation: \"bench.*\"\n    kernel: bench.config.a\n    priority: " + std::to_string(100 + i) +
            "\n    conditions:\n      batch_size_gte: 1\n      dtype_in: [float16, bfloat16]\n      m_gt: " +
            std::to_string(100000 + i + (i == count / 2 ? edition : 0)) + "\n";
  return yaml +
         "  - operation: bench.config\n    kernel: bench.config.b\n    priority: 1\n    conditions: {device_match: "
         "\"tt:*\", k: 768}\n";
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

void add_config(std::vector<BenchCase>& cases, const std::string& name, const std::string& what, int count, bool cache,
                double target) {
  DispatchOptions options;
  options.mode = DispatchMode::CONFIG;
  options.record_timing = false;
  options.enable_cache = cache;
  const auto dispatcher =
      std::make_shared<ConfigDispatcher>(DispatchMode::CONFIG, DispatchConfig(std::move(options)), kernels());
  dispatcher->reload_text(rules(count));
  cases.push_back({name, what,
                   [dispatcher, op = Symbol(operation)](std::int64_t n) {
                     const SelectionContext c = context();
                     CallArgs args;
                     for (std::int64_t i = 0; i < n; ++i) keep(dispatcher->dispatch(op, args, &c));
                   },
                   target});
}

void add_orchestrator(std::vector<BenchCase>& cases) {
  DispatchOptions options;
  options.mode = DispatchMode::STATIC;
  options.record_timing = false;
  options.static_kernel_map[operation] = "bench.config.a";
  const auto orchestrator = std::make_shared<Orchestrator>(DispatchConfig(std::move(options)), kernels());
  const auto direct = orchestrator->get_dispatcher(DispatchMode::STATIC);
  cases.push_back({"static_through_interface", "the same dispatcher without the orchestrator",
                   [orchestrator, direct, op = Symbol(operation)](std::int64_t n) {
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
  static int count() {
    static int files = 0;
    return files++;
  }
  std::string path = (std::filesystem::temp_directory_path() /
                      ("bench_dispatch_" + std::to_string(getpid()) + "_" + std::to_string(count()) + ".yaml"))
                         .string();
  ~File() { std::filesystem::remove(path); }
};

// Two editions of a file take turns. With `everything` no rule of one is a rule of the other.
void add_reload(std::vector<BenchCase>& cases, const std::string& name, const std::string& what, bool everything,
                double target) {
  const auto files = std::make_shared<std::array<File, 2>>();
  for (int i = 0; i < 2; ++i) {
    std::string text = rules(100, i);
    if (everything && i == 1)
      for (std::size_t at = text.find("bench.*"); at != std::string::npos; at = text.find("bench.*", at + 8))
        text.insert(at + 6, "c");
    std::ofstream((*files)[static_cast<std::size_t>(i)].path) << text;
  }
  DispatchOptions options;
  options.mode = DispatchMode::HOT_RELOAD;
  const auto dispatcher =
      std::make_shared<ConfigDispatcher>(DispatchMode::HOT_RELOAD, DispatchConfig(std::move(options)), kernels());
  cases.push_back({name, what,
                   [files, dispatcher, turn = std::size_t{0}](std::int64_t n) mutable {
                     for (std::int64_t i = 0; i < n; ++i) dispatcher->reload_file((*files)[turn++ % 2].path, true, 0);
                   },
                   target});
}

}  // namespace

void add_config_cases(std::vector<BenchCase>& cases) {
  add_config(cases, "config_cached", "CONFIG, the rule's choice remembered", 10, true, 40);
  add_config(cases, "config_10_rules", "CONFIG without cache, the last of 10 rules matches", 10, false, 0);
  add_config(cases, "config_100_rules", "CONFIG without cache, the last of 100 rules matches", 100, false, 2000);
  add_orchestrator(cases);
  add_reload(cases, "reload_100_rules", "reading, validating, compiling and swapping in 100 rules, one of them new",
             false, 1e7);
  add_reload(cases, "reload_100_new_rules", "the same, all of them new", true, 0);
}

}  // namespace ttrt::dispatch
