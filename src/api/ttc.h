// libttc: rewrites exported PyTorch models for Tenstorrent devices, from C++. The library's public interface.
//
//   ttc::Model model = ttc::Model::load("bert.pt2");
//   ttc::Compiled compiled = ttc::compile(model, {.weight_dtype = {"*=bfloat8_b"}});
//   std::puts(compiled.report.summary.c_str());
//   compiled.model.save("bert.tt.pt2");
//
// Build with `pkg-config --cflags --libs ttc`. Needs no header of LibTorch. Errors are ttc::Error. Running models is
// libttrt's business (ttrt/ttrt.h). What a message says of an option it calls by the name of the member here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#define TTC_API __attribute__((visibility("default")))

namespace ttc {
// The headers for plug-ins have names of their own in ttc. A file that includes both defines TTC_API_APART and calls
// these ttc::api::Model, ttc::api::compile, ...
#ifdef TTC_API_APART
namespace api {
#else
inline namespace api {
#endif

// What went wrong, as the tool would say it.
class TTC_API Error : public std::runtime_error {
 public:
  enum class Kind : std::uint8_t {
    failed,       // a check failed, or the model failed while it ran
    usage,        // a wrong option, name, shape or dtype
    unsupported,  // something stays on the CPU under require_full
    bad_file,     // a file that is no well-formed model, or one that cannot be written
    bug,          // ours
  };
  Error(Kind kind, std::string file, const std::string& what, std::string hint)
      : std::runtime_error(what), kind_(kind), file_(std::move(file)), hint_(std::move(hint)) {}
  ~Error() override;
  Kind kind() const { return kind_; }
  const std::string& file() const { return file_; }  // "" where it is about none
  const std::string& hint() const { return hint_; }  // what to do about it, or ""

 private:
  Kind kind_;
  std::string file_, hint_;
};

// A model in memory: a file as it was read, or what a compile made of it. Immutable; copies share it.
class TTC_API Model {
 public:
  // A .pt2 or TorchScript file, by content. Mapped, not read. Throws Error (bad_file).
  static Model load(const std::string& path);
  // The same from `size` bytes at `data`, which are copied; `name` stands for the path in messages.
  static Model from_memory(const std::string& name, const void* data, std::size_t size);

  const std::string& path() const;
  bool is_rewritten() const;  // has device ops
  // Of the file, in hex.
  std::string sha256() const;
  // In the format that the ending says, .pt2 or .pt (TorchScript). Written whole or not at all. Throws Error (usage).
  void save(const std::string& path) const;

  struct Impl;
  explicit Model(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

// What to rewrite, in which precision. The members are the flags of `ttc compile`; GLOBs match nn.Module paths, of
// several entries the last that matches wins.
struct CompileOptions {
  std::string arch = "n150";              // an architecture profile (archs()), or the path of a profile file
  std::vector<std::string> replace = {};  // CLASS=tt.OP or module:GLOB=tt.OP; empty: everything that can be
  std::string replace_file = {};          // the same as a JSON file
  std::vector<std::string> exclude = {};  // GLOBs of modules that stay as they are; their children are still visited
  std::vector<std::string> weight_dtype = {};  // GLOB=FORMAT, or a FORMAT for every module
  std::string activation_dtype = "bfloat16";   // or float32
  std::vector<std::string> fidelity = {};      // GLOB=LoFi|HiFi2|HiFi3|HiFi4
  std::vector<std::string> fp32_acc = {};      // GLOB=on|off: accumulate in float32
  std::vector<std::string> fallback_op = {}, fallback_module = {}, fallback_node = {};  // GLOBs kept on the CPU
  bool require_full = false;              // Error (unsupported) where anything stays on the CPU
  std::vector<std::string> shape = {};    // NAME=8x128 or NAME=i64:8x128, for free dims and for models without shapes
  std::vector<std::string> input = {};    // NAME=16000: the number that a TorchScript model is compiled for
  std::string io = {};                    // shapes from these recorded inputs (safetensors)
  std::vector<std::string> passes = {};   // these, in this order; empty: the default pipeline
  std::vector<std::string> disable = {};  // passes left out
  std::string stop_after = {};            // the last pass to run
  long rewrite_limit = -1;                // at most so many rewrites
  bool verify_each = false;               // verify the graph after each pass
};

// A node that stays on the CPU, or was nearly recognised, and why.
struct Refusal {
  std::string pass;  // "" for a fallback
  std::string node, op, module;
  std::string reason;  // a code: "Unimplemented", "DynamicShape", ...
  std::string detail;
  std::string source;  // "model.py:41"
};

struct ReplacedModule {
  std::string path, klass, op, weight_format, fidelity;
};

// A value that the device holds in another dtype than PyTorch does.
struct Conversion {
  std::string from, to;
  bool checked = false;  // integers: a run whose numbers do not fit is repeated on the host
};

struct PassTiming {
  std::string name;
  bool changed = false;
  double ms = 0;
  std::size_t nodes_before = 0, nodes_after = 0, matched = 0, refused = 0;
};

// What a compile did. Byte counts of transfers are per execution, constants not counted.
struct CompileReport {
  std::string arch;
  std::size_t nodes = 0, device_nodes = 0, cpu_nodes = 0;  // that compute something
  double flops = 0, device_flops = 0;                      // of matrix products, convolutions, attention
  std::vector<ReplacedModule> modules;
  std::vector<Refusal> fallbacks, near_misses;
  std::size_t transfers = 0;
  std::int64_t transfer_bytes = 0;
  std::int64_t weight_bytes_in = 0, weight_bytes_out = 0;
  std::int64_t l1_peak = 0, dram_peak = 0;  // bytes, of one core and of all banks
  bool fits = true;                         // in the memory of the architecture
  std::vector<Conversion> conversions;
  std::vector<PassTiming> passes;
  std::vector<std::string> notes;  // what was assumed
  std::string summary;             // one line
  std::string json;                // all of it, as `ttc compile --json` has it
};

struct Compiled {
  Model model;
  CompileReport report;
};

// Rewrites a copy; `model` stays as it is. Throws Error: usage for options that mean nothing or do not fit the model,
// unsupported under require_full.
TTC_API Compiled compile(const Model& model, const CompileOptions& options = {});
// The report of such a compile.
TTC_API CompileReport check(const Model& model, const CompileOptions& options = {});

enum class Numerics : std::uint8_t {
  fast,   // blocked kernels
  exact,  // the silicon's arithmetic bit for bit, slowly
};
enum class Against : std::uint8_t {
  cpu,    // the references of the device ops, in float32
  exact,  // the device with exact numerics
  fast,
};

// What to compare, on which inputs. Members are the flags of `ttc compare`.
struct CompareOptions {
  std::string io = {}, io_prefix = {};  // recorded inputs (safetensors): in0, in1, ... or by name, PREFIX.in0, ...
  bool io_steps = false;                // step0, step1, ... of the file in order, buffers kept
  std::vector<std::string> input = {};  // NAME=@x.npy | rand:SEED | zeros | ones | arange | a number
  std::vector<std::string> shape = {};  // NAME=8x128 where dims are free
  std::vector<std::string> carry = {};  // outN=NAME: with io_steps, an input that is an output of the step before
  std::uint64_t seed = 0;               // of the inputs that nothing else gives
  std::string arch = "n150";
  Numerics numerics = Numerics::fast;
  Against against = Against::cpu;
  bool by_module = false;  // the last node of each module instead of every node
  double pcc = 0.99;       // what every row must reach
  std::optional<double> max_rel = {};
};

// How far one value of the two runs is apart.
struct CompareRow {
  std::string node, op, module;  // "outN" and op "output" for an output
  double pcc = 1;                // Pearson correlation; of constant values 1 where equal, 0 otherwise
  double max_abs = 0;            // largest |a - e|
  double max_rel = 0;            // largest |a - e| over the largest |e|
  double snr_db = 0;             // infinite where equal
  std::int64_t nan = 0;          // places where exactly one is NaN, or infinities differ
  std::int64_t zero = 0;         // zeros of the device's value
  bool pass = false;
};

struct Comparison {
  std::vector<CompareRow> rows;  // in the order of the run
  bool pass = true;
  std::optional<std::size_t> first_failure, worst;  // rows
  std::vector<std::string> notes;                   // what was chosen for inputs that nobody gave
};

// Runs the model twice, node by node; a plain one is compiled with default options first. Throws Error where it cannot
// run or the inputs do not fit.
TTC_API Comparison compare(const Model& model, const CompareOptions& options = {});

struct Listed {
  std::string name, summary;
};
TTC_API std::vector<Listed> passes();  // by name
TTC_API std::vector<std::string> default_pipeline();
TTC_API std::vector<Listed> ops();    // device ops, by name
TTC_API std::vector<Listed> archs();  // architecture profiles

// "0.1.0"
TTC_API const char* version();

}  // namespace api
}  // namespace ttc
