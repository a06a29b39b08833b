// libttrt: loads exported PyTorch models, rewrites them for a Tenstorrent device, and runs them on an emulated one.
//
//   ttrt::Model model = ttrt::compile(ttrt::Model::load("model.pt2")).model;
//   ttrt::Session session(model);
//   std::vector<ttrt::Tensor> outputs = session.run({ttrt::Tensor::from(values, {2, 3})});
//   std::span<const float> result = outputs[0].values<float>();
//
// Build with `pkg-config --cflags --libs ttrt`. No header of LibTorch is needed. Beside this header: tt_lib.h (devices,
// and single operators on tensors), dispatch.h (who serves an operator), ttrt_c.h (the same for C and other languages).
//
// Errors are ttrt::Error. Every function may throw kind bug (ours) and std::bad_alloc; the kinds that a caller can do
// something about are named at each function.
//
// Threads: every function may be called from any thread at any time. Calls that change one object (two runs of one
// Session) follow one another; sessions are independent, also those of one Model. Moving, assigning or destroying an
// object while another thread uses it is not allowed.
#pragma once

#include <ttc/ttc.h>

#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "tensor.h"

namespace ttrt {

// ---- models, and compiling them: ttc/ttc.h --------------------------------------------------------------------------

using ttc::api::compare;
using ttc::api::Compatibility;
using ttc::api::compile;
using ttc::api::Compiled;
using ttc::api::CompileOptions;
using ttc::api::CompileReport;
using ttc::api::Dim;
using ttc::api::Fidelity;
using ttc::api::Format;
using ttc::api::InputShape;
using ttc::api::Model;
using ttc::api::NumericsMode;
using ttc::api::TensorInfo;
using ttc::api::version;

// ---- running --------------------------------------------------------------------------------------------------------

enum class RunMode : std::uint8_t {
  device,  // device ops on the device, the rest in LibTorch; where the device can't serve an op, the CPU does
  normal,  // the same, but an op that falls back to the CPU fails the run
  cpu,     // everything in LibTorch, device ops in their float32 references
};
// Which kernels serve the device ops, and when that is decided: dispatch.h describes the modes.
enum class DispatchMode : std::uint8_t { STATIC, DYNAMIC, HOT_RELOAD, CONFIG, AUTO };

// The numbers of dispatch, under the names that `ttc run --dispatch-setting` has for them.
struct DispatchSettings {
  bool enable_cache = true;         // of choices, in DYNAMIC and CONFIG
  std::int64_t cache_size = 10000;  // entries; 0: nothing is kept
  double cache_ttl_seconds = 3600;
  bool enable_fallback = true;  // a kernel that fails is served for by the next of its op, in the end by the CPU
  std::int64_t max_fallback_attempts = 3;
  double fallback_timeout_ms = 100;  // no further one is begun later than this after the first failure
  double watch_interval_seconds = 0.1;
  bool validate_on_reload = true;
  bool enable_telemetry = true;
  bool record_timing = true;
  bool log_fallbacks = true;
  bool circuit_breaker_enabled = true;  // a kernel that keeps failing is taken out, and tried again later
  std::int64_t failure_threshold = 5;   // failures in a row
  double recovery_timeout_seconds = 30;
};

struct SessionOptions {
  RunMode mode = RunMode::device;
  NumericsMode numerics = NumericsMode::fast;
  // A profile's name or a profile file's path; "": what the model was rewritten for, else n150.
  std::string arch = {};
  // default, optimized, debug, cpu, tensor_ops, a registered one, or a dispatcher library's path; "": the active one
  // (set_dispatcher, dispatch.h). The environment's TT_SYMBIOTE_DISPATCHER wins.
  std::string dispatcher = {};
  DispatchMode dispatch_mode = DispatchMode::STATIC;
  std::string dispatch_config = {};  // the rules' file (YAML or JSON), for CONFIG and HOT_RELOAD
  // {"tt.linear", "tt.linear.1d"}: kernels chosen by hand, in STATIC and AUTO.
  std::map<std::string, std::string> static_kernels = {};
  DispatchSettings dispatch = {};
  bool profile = false;  // measure every op: Session::profile(), timings() and compatibility()
  bool trace = false;    // keep every call too: Session::save_timings()
  // Weights that the device's memory does not hold beside all else are moved in when they are read; else runs that need
  // more than there is throw.
  bool stream_weights = true;
  // Warnings, refusals, the debug dispatcher's lines; called from the threads that run. None: standard error.
  std::function<void(const std::string&)> log = {};
};

// Threads that LibTorch and the device's kernels use, of the whole process; 0 leaves them as they are.
TTRT_API void set_threads(int n);
TTRT_API int threads();

enum class Place : std::uint8_t { device, cpu };

// A device op that the device could not serve, so that the CPU did.
struct RunFallback {
  std::string node, op;  // node "": the whole run was repeated on the CPU
  std::string reason;
  std::int64_t count = 0;  // since the session began
};

struct RunReport {
  std::int64_t runs = 0;
  // The model's compute nodes by what served them in the last run. They are counted as CompileReport counts them: a
  // fused op for each node that it computes.
  std::int64_t device_nodes = 0, cpu_nodes = 0;
  std::vector<RunFallback> fallbacks;
  double device_cycles = 0, device_us = 0;  // of the kernels that the device ran last, by its time model
  // Tensors that crossed the bus in the last run but weights, their bytes, and the time of all by the same model.
  std::int64_t to_device = 0, to_device_bytes = 0, to_host = 0, to_host_bytes = 0;
  double transfer_us = 0;
  // Weights that device ops read; those of them that do not stay in the device's memory, and what a run moves for them.
  std::int64_t weights = 0, streamed_weights = 0, streamed_bytes = 0;
};

// One op of the rewritten program: where the last run had it.
struct Placement {
  std::string node, op, module, source;
  Place place = Place::cpu;
  std::string kernel;  // "tt.matmul.2d"; "tt.matmul.host" where dispatch left a device op to the CPU; "" for ATen ops
};

// What the calls of one op cost that one kernel served, summed over the runs of the session.
struct OpProfile {
  std::string node, op, module;
  enum class Kind : std::uint8_t { device, cpu, transfer } kind = Kind::cpu;
  std::string kernel;  // "" for ATen ops and transfers, "weights" for those that the op reads and that are streamed
  std::int64_t calls = 0;
  double wall_us = 0;      // on this machine
  double cycles = 0;       // of the device, by its time model; 0 on the CPU
  std::string bound;       // what the device waits for: "math", "dram", "pcie", ...; "" on the CPU
  std::int64_t bytes = 0;  // read and written
};

// All calls of a function in a module, in TT-Symbiote's terms: "TTNN::linear", "aten::topk", "torch_to_ttnn".
struct Timing {
  std::string func_name, module_name;
  double ttnn = 0, torch = 0;  // seconds of this machine, by who served: the emulated device, LibTorch
  double min = 0, max = 0;     // of one call
  std::int64_t rows = 0;       // calls
  double device_cycles = 0;    // by the device's time model
};

// DRAM or L1 of the session's device.
struct MemoryUse {
  std::string memory;  // "DRAM", "L1"
  std::int64_t banks = 0, bank_bytes = 0;
  std::int64_t allocated_per_bank = 0, peak_per_bank = 0, largest_free_per_bank = 0;
  struct Holder {
    std::string label;  // weight, input or "activations"
    std::int64_t bytes = 0, bytes_per_bank = 0;
  };
  std::vector<Holder> holders, holders_at_peak;  // largest first
};

// Runs a model again and again. Buffers that the model writes keep their values from run to run.
class TTRT_API Session {
 public:
  // Throws Error: usage for wrong options, bad_file for a model that can't run or a wrong configuration.
  explicit Session(const Model& model, const SessionOptions& options = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  // Inputs in the order of the signature, or by name. The outputs lie in host memory. Throws Error: usage where inputs
  // do not fit the signature (which it names), failed where an op fails, unsupported where the device's memory is full,
  // cancelled. After an error the session is as it was before the run.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs);
  std::vector<Tensor> run(const std::map<std::string, Tensor>& inputs);
  // Leaves these outputs (by position) on the device where nothing on the host makes or reads them: a cache that is an
  // output of one run and an input of the next then never crosses the bus. Throws like run.
  std::vector<Tensor> run_keeping(const std::vector<Tensor>& inputs, const std::vector<std::size_t>& keep);
  // Ends the run under way in another thread before its next op; that run throws Error (cancelled). Does nothing where
  // none is.
  void cancel();

  // Input `index` on the device, for models that write it in place: a cache of fixed size. The tensor itself where the
  // host reads that input. Throws Error: usage, unsupported (memory).
  Tensor place(std::size_t index, const Tensor& tensor);
  // The tensor in host memory; itself where it is there. Throws Error (usage) where its session is gone.
  Tensor fetch(const Tensor& tensor) const;
  // Back to the buffers of the file.
  void reset();

  // Never waits for a run: what the last finished one left.
  RunReport report() const;
  // Wait for the run under way. `profile` and `timings` are empty without SessionOptions::profile, `placement` before
  // the first run.
  std::vector<OpProfile> profile() const;
  std::vector<Timing> timings() const;
  // Writes a row for each call, and "x_pivot.csv" beside "x.csv". Throws Error (usage) without SessionOptions::trace,
  // and where the files can't be written.
  void save_timings(const std::string& path) const;
  // Which modules the device served in all runs, and what the CPU did instead; as ttc::api::compatibility. Throws Error
  // (usage) without SessionOptions::profile.
  Compatibility compatibility(const std::optional<std::vector<std::string>>& expected = {}) const;
  std::vector<Placement> placement() const;
  std::vector<MemoryUse> memory() const;  // empty where the session needs no device or has not run

  struct Impl;
  const std::shared_ptr<Impl>& shared_impl() const { return impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace ttrt
