// libttrt: loads exported PyTorch models, rewrites them for a Tenstorrent device, and runs them on an emulated one.
//
//   ttrt::Model model = ttrt::Model::load("model.pt2").compile();
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

#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "tensor.h"

namespace ttrt {

// ---- what a model takes and gives -----------------------------------------------------------------------------------

struct Dim {
  std::optional<std::int64_t> size;  // nullopt: free
  std::string symbol;                // of a free dim: "s0"; dims of one symbol have one size. "s0*2" where it follows
  std::int64_t min = 0;              // the sizes that the model takes
  std::optional<std::int64_t> max;   // nullopt: no limit
  bool operator==(const Dim&) const = default;
};

struct TensorInfo {
  // Python numbers are given and come back as tensors of shape []: int64, float64, boolean. other: None, a string, a
  // list (its tensors come back one after the other).
  enum class Kind : std::uint8_t { tensor, integer, number, boolean, other };
  std::string name;  // of the signature; outputs are out0, out1, ...
  Kind kind = Kind::tensor;
  std::optional<ElementType> type;  // nullopt: the file does not say (TorchScript without shapes)
  std::vector<Dim> dims;
  bool has_shape = true;              // false: the file does not say; `dims` is empty then
  TTRT_API std::string text() const;  // "float32[s0, 64]"
};

// ---- compiling ------------------------------------------------------------------------------------------------------

// How numbers lie on the device. The block formats share an exponent among 16 elements.
enum class Format : std::uint8_t { bfloat16, float32, bfloat8_b, bfloat4_b };
// Phases of the matrix unit's multiplier, 1 to 4.
enum class Fidelity : std::uint8_t { LoFi, HiFi2, HiFi3, HiFi4 };

// What is asked of a compile. Modules are globs over nn.Module paths ("encoder.layer.*"); later entries win.
struct CompileOptions {
  std::string arch = "n150";  // a profile's name or a profile file's path
  // {"torch.nn.Linear" or "module:GLOB", "tt.linear"}: only these are replaced. Empty: whatever can be.
  std::vector<std::pair<std::string, std::string>> replace = {};
  std::vector<std::string> exclude = {};  // modules that stay as they are; their children are still visited
  std::vector<std::pair<std::string, Format>> weight_format = {};
  Format activation_format = Format::bfloat16;  // or float32
  std::vector<std::pair<std::string, Fidelity>> fidelity = {};
  std::vector<std::pair<std::string, bool>> fp32_acc = {};                                 // accumulate in float32
  std::vector<std::string> fallback_ops = {}, fallback_modules = {}, fallback_nodes = {};  // globs kept on the CPU
  bool require_full = false;  // throw where anything stays on the CPU
  // Sizes of inputs by name, for TorchScript files, which carry none, and for costs and placement where dims are free.
  std::map<std::string, Shape> shapes = {};
  std::vector<std::string> passes = {};   // these, in this order; empty: the usual ones
  std::vector<std::string> disable = {};  // passes left out
  std::int64_t rewrite_limit = -1;        // at most so many rewrites; negative: any number
};

// A node that stays on the CPU, and why.
struct Fallback {
  std::string node, op, module;  // "linear_3", "aten.linear.default", "encoder.fc"
  std::string code, detail;      // "Unsupported", one sentence
  std::string source;            // "bert.py:212"; "" where the file does not say
};

struct CompileReport {
  std::string arch;
  std::int64_t nodes = 0, device_nodes = 0, cpu_nodes = 0;  // that compute something; device + cpu = nodes
  double flops = 0, device_flops = 0;                       // of products, convolutions and attention
  std::vector<Fallback> fallbacks;
  std::int64_t transfers = 0, transfer_bytes = 0;  // over the bus in each run
  std::int64_t weight_bytes_before = 0, weight_bytes_after = 0;
  std::int64_t l1_peak_bytes = 0, dram_peak_bytes = 0;  // L1 per core, DRAM of all banks
  bool fits = true;                                     // into the device's memory
  std::string summary;                                  // one line
  std::string json;                                     // as `ttc compile --json` prints it
};

// A loaded file; immutable, shared by sessions and by its copies.
class TTRT_API Model {
 public:
  // A .pt2 or TorchScript file. Weights are mapped, not read. Throws Error: bad_file, (unsupported) for TorchScript
  // that has no form here.
  static Model load(const std::string& path);
  // The same from memory, which is copied. `name` stands for the path in messages.
  static Model load(std::span<const std::byte> file, const std::string& name = "model");

  // The model rewritten for a device; this one stays as it is. Throws Error: usage for wrong options, and where the
  // model is rewritten already; unsupported where options.require_full and something stays on the CPU.
  Model compile(const CompileOptions& options = {}, CompileReport* report = nullptr) const;
  // As a .pt2, or TorchScript where the name ends in .pt, that stock PyTorch opens (with libttrt_torch.so where it is
  // rewritten). The file appears whole or not at all. Throws Error: usage where it can't be written, unsupported for
  // what the format can't hold.
  void save(const std::string& path) const;

  // In the order of the signature.
  std::vector<TensorInfo> inputs() const;
  std::vector<TensorInfo> outputs() const;
  bool is_rewritten() const;  // has device ops
  std::string arch() const;   // that it was rewritten for; "" where it was not
  // Text of the file's own, by name: "ttc_manifest.json" of a rewritten model, extra files of the user's.
  std::map<std::string, std::string> extra() const;

  struct Impl;
  explicit Model(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

// ---- running --------------------------------------------------------------------------------------------------------

enum class RunMode : std::uint8_t {
  device,  // device ops on the device, the rest in LibTorch
  cpu,     // everything in LibTorch, device ops in their float32 references
};
// The device's arithmetic. exact: the silicon's bit for bit, slowly. fast: every format and rounding point, sums in
// host fp32.
enum class NumericsMode : std::uint8_t { fast, exact };
// Which kernels serve the device ops, and when that is decided: dispatch.h describes the modes.
enum class DispatchMode : std::uint8_t { STATIC, DYNAMIC, HOT_RELOAD, CONFIG, AUTO };

// The numbers of dispatch, under the names that a configuration file has for them.
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
  // default, optimized, debug, cpu, tensor_ops, a registered one, or a dispatcher library's path. The environment's
  // TT_SYMBIOTE_DISPATCHER wins.
  std::string dispatcher = "default";
  DispatchMode dispatch_mode = DispatchMode::STATIC;
  std::string dispatch_config = {};  // the rules' file (YAML or JSON), for CONFIG and HOT_RELOAD
  // {"tt.linear", "tt.linear.1d"}: kernels chosen by hand, in STATIC and AUTO.
  std::map<std::string, std::string> static_kernels = {};
  DispatchSettings dispatch = {};
  bool profile = false;  // measure every op: Session::profile()
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
  std::int64_t device_nodes = 0, cpu_nodes = 0;  // compute nodes by what served them in the last run
  std::vector<RunFallback> fallbacks;
  double device_cycles = 0, device_us = 0;  // of the last run, by the device's time model
  // Tensors that crossed the bus in the last run, and their bytes; weights are not counted.
  std::int64_t to_device = 0, to_device_bytes = 0, to_host = 0, to_host_bytes = 0;
};

// One compute node of the program: where the last run had it.
struct Placement {
  std::string node, op, module, source;
  Place place = Place::cpu;
  std::string kernel;  // "tt.matmul.2d"; "tt.matmul.host" where dispatch left a device op to the CPU; "" for ATen ops
};

// What one op cost, summed over the runs of the session.
struct OpProfile {
  std::string node, op, module;
  enum class Kind : std::uint8_t { device, cpu, transfer } kind = Kind::cpu;
  std::string kernel;  // that served the last call
  std::int64_t calls = 0;
  double wall_us = 0;      // on this machine
  double cycles = 0;       // of the device, by its time model; 0 on the CPU
  std::string bound;       // what the device waits for: "math", "dram", "pcie", ...; "" on the CPU
  std::int64_t bytes = 0;  // read and written
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
  // Wait for the run under way. `profile` is empty without SessionOptions::profile, `placement` before the first run.
  std::vector<OpProfile> profile() const;
  std::vector<Placement> placement() const;
  std::vector<MemoryUse> memory() const;  // empty where the session needs no device or has not run

  struct Impl;
  const std::shared_ptr<Impl>& shared_impl() const { return impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

// "0.1.0"
TTRT_API const char* version();

}  // namespace ttrt
