// The table, STATIC, DYNAMIC, the circuit check, against a plain indirect call. Kernels count their calls and do no
// more.
#include "dispatch/dynamic.h"
#include "dispatch/static_dispatcher.h"
#include "dispatch/table.h"
#include "tests/bench/dispatch_bench.h"

namespace ttrt::dispatch {
namespace {

std::int64_t calls = 0;
void count_call(void* /*state*/, CallArgs& /*args*/) { ++calls; }

KernelSpec kernel(const std::string& id, Symbol operation, std::int64_t priority) {
  KernelSpec spec{.id = id, .operation = operation, .source = "bench", .impl = KernelImpl(count_call)};
  spec.platform = Platform::tt;
  spec.dtypes = {DType::bf16, DType::f32};
  spec.priority = priority;
  return spec;
}

// Half of the kernels refuse at the end of the check, where it costs most.
std::shared_ptr<KernelRegistry> kernels(Symbol operation, int candidates) {
  auto registry = std::make_shared<KernelRegistry>();
  for (int i = 0; i < candidates; ++i) {
    KernelSpec spec = kernel(operation.str() + "." + std::to_string(i), operation, 50 + i % 7);
    spec.deterministic = i % 2 == 0;
    registry->add(std::move(spec));
  }
  return registry;
}

SelectionContext context(Symbol operation) {
  SelectionContext c;
  c.operation = operation;
  c.device.platform = Platform::tt;
  c.device.name = "n150";
  c.dtype = DType::bf16;
  c.batch_size = 8, c.m = 128, c.n = 768, c.k = 768;
  c.requires_deterministic = 1;
  return c;
}

void add_dynamic(std::vector<BenchCase>& cases, const std::string& name, const std::string& what, int candidates,
                 DispatchOptions options, double target) {
  const Symbol operation = "bench.dynamic" + std::to_string(candidates);
  const auto registry = kernels(operation, candidates);
  const auto dispatcher = std::make_shared<DynamicDispatcher>(DispatchConfig(std::move(options)), *registry);
  cases.push_back({name, what,
                   [=](std::int64_t n) {
                     const SelectionContext c = context(operation);
                     CallArgs args;
                     for (std::int64_t i = 0; i < n; ++i) keep(dispatcher->dispatch(operation, args, &c));
                     keep(registry);
                   },
                   target});
}

void add_dynamic_cases(std::vector<BenchCase>& cases) {
  DispatchOptions plain, cached, uncached;
  cached.record_timing = false;
  uncached.record_timing = false, uncached.enable_cache = false;
  add_dynamic(cases, "dynamic_cached", "DYNAMIC, same context, whole result, no clock but the cache's", 3, cached, 40);
  add_dynamic(cases, "dynamic_cached_timed", "the same with record_timing, the default", 3, plain, 0);
  add_dynamic(cases, "dynamic_3_candidates", "DYNAMIC without cache, 3 kernels", 3, uncached, 0);
  add_dynamic(cases, "dynamic_20_candidates", "DYNAMIC without cache, 20 kernels", 20, uncached, 1000);
}

void add_static_cases(std::vector<BenchCase>& cases) {
  const Symbol operation = "bench.static";
  const auto build = [&](bool timed) {
    DispatchOptions options;
    options.record_timing = timed;
    return std::shared_ptr<StaticDispatcher>(
        StaticDispatcherBuilder().with_kernel(kernel("bench.static.k", operation, 50)).with_config(options).build());
  };
  cases.push_back({"static", "STATIC, lookup by operation, call",
                   [operation, d = build(false)](std::int64_t n) {
                     CallArgs args;
                     for (std::int64_t i = 0; i < n; ++i) d->call(operation, args), keep(args);
                   },
                   2});
  cases.push_back({"static_result", "STATIC through the interface: whole result, no clock",
                   [operation, d = build(false)](std::int64_t n) {
                     CallArgs args;
                     for (std::int64_t i = 0; i < n; ++i) keep(static_cast<Dispatcher&>(*d).dispatch(operation, args));
                   }});
  cases.push_back(
      {"static_timed", "the same with record_timing, the default", [operation, d = build(true)](std::int64_t n) {
         CallArgs args;
         for (std::int64_t i = 0; i < n; ++i) keep(static_cast<Dispatcher&>(*d).dispatch(operation, args));
       }});
}

}  // namespace

void add_core_cases(std::vector<BenchCase>& cases) {
  cases.push_back({"indirect_call", "one call through a function pointer", [](std::int64_t n) {
                     void (*volatile function)(void*, CallArgs&) = count_call;
                     CallArgs args;
                     for (std::int64_t i = 0; i < n; ++i) function(nullptr, args);
                   }});
  const auto table = std::make_shared<DispatchTable>("bench.table");
  table->add({}, kernel("bench.table.k", "bench.table", 50));
  cases.push_back({"table", "the dense table: key to slot, call", [table](std::int64_t n) {
                     CallArgs args;
                     TableKey key{Platform::tt, DType::bf16, TableLayout::strided, false, false};
                     for (std::int64_t i = 0; i < n; ++i) keep(key), table->call(key, args);
                   }});
  add_static_cases(cases);
  add_dynamic_cases(cases);
  const auto circuits = std::make_shared<CircuitManager>();
  cases.push_back({"breaker", "may this kernel be called?",
                   [circuits](std::int64_t n) {
                     Circuit& circuit = circuits->circuit("bench.breaker");
                     for (std::int64_t i = 0; i < n; ++i) {
                       const bool allowed = circuit.is_allowed();
                       keep(allowed);
                     }
                   },
                   5});
}

}  // namespace ttrt::dispatch
