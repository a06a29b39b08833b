// libttc: rewrites exported PyTorch models for Tenstorrent devices, from C++. The library's public interface.
//
//   using namespace ttc::api;
//   Compiled compiled = compile(Model::load("bert.pt2"), {.weight_dtype = {{"*", Format::bfloat8_b}}});
//   std::puts(compiled.report.summary.c_str());
//   compiled.model.save("bert.tt.pt2");
//
// Build with `pkg-config --cflags --libs ttc`. Needs no header of LibTorch. Running models is libttrt's business:
// ttrt/ttrt.h, where all of this has the names ttrt::Model, ttrt::compile, ... What a message says of an option it
// calls by the name of the member here.
//
// Every function may be called from any thread, and may throw Error of kind bug (ours) and std::bad_alloc; the kinds
// that a caller can do something about are named at each function.
#pragma once

#include <ttc/types.h>

#include <cstddef>
#include <map>
#include <memory>
#include <span>

namespace ttc::api {

// A model in memory: a file as it was read, or what a compile made of it. Immutable; copies share it.
class TTC_API Model {
 public:
  // A .pt2 or TorchScript file, by content. Weights are mapped, not read. Throws Error: bad_file, unsupported for
  // TorchScript that has no form here.
  static Model load(const std::string& path);
  // The same from memory, which is copied. `name` stands for the path in messages.
  static Model load(std::span<const std::byte> file, const std::string& name = "model");
  // In the format that the ending says, .pt2 or .pt (TorchScript), which stock PyTorch opens (with libttrt_torch.so
  // where the model is rewritten). The file appears whole or not at all. Throws Error: usage where it can't be written,
  // unsupported for what the format can't hold.
  void save(const std::string& path) const;

  // In the order of the signature.
  std::vector<TensorInfo> inputs() const;
  std::vector<TensorInfo> outputs() const;
  bool is_rewritten() const;  // has device ops
  std::string arch() const;   // that it was rewritten for; "" where it was not
  const std::string& path() const;
  // Of the file, in hex. Throws Error (usage) for a model that a compile made: it is no file yet.
  std::string sha256() const;
  // Text of the file's own, by name: "ttc_manifest.json" of a rewritten model, extra files of the user's.
  std::map<std::string, std::string> extra() const;

  struct Impl;
  explicit Model(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

// How numbers lie on the device: bfloat16, float32, and the block formats (bfloat8_b, bfloat4_b), of which 16 elements
// share an exponent. The rows of device/data_types.def that weights may be packed in, in their order.
enum class Format : std::uint8_t {
#define TTC_FORMAT_true(name) name,
#define TTC_FORMAT_false(name)
#define TTRT_DATA_TYPE(name, tile, element, dtype, bits, for_weights) TTC_FORMAT_##for_weights(name)
#include "device/data_types.def"
#undef TTRT_DATA_TYPE
#undef TTC_FORMAT_false
#undef TTC_FORMAT_true
};
// Phases of the matrix unit's multiplier, 1 to 4.
enum class Fidelity : std::uint8_t { LoFi, HiFi2, HiFi3, HiFi4 };

// Sizes of an input, and its element type where the file does not say it.
struct InputShape {
  Shape sizes;
  std::optional<ElementType> type = {};
};

// What modules become: a TT module (modules()) or a device op, and how it computes. What is not given is as the TT
// module has it, else as the rest of the model; weight_dtype, fidelity and fp32_acc of CompileOptions come first.
struct Replacement {
  std::string to;  // "TTNNLinear" or "tt.linear"
  std::optional<Format> weight_dtype = {}, activation_dtype = {};
  std::optional<Fidelity> fidelity = {};
  std::optional<bool> fp32_acc = {};
  bool fallback = true;  // false: Error (unsupported) where the device refuses what is in such a module
};

// A register_module_replacement_dict: {"torch.nn.Linear" or "module:GLOB", what it becomes}. Later entries win.
using ReplacementMap = std::vector<std::pair<std::string, Replacement>>;

// What to rewrite, in which precision: the flags of `ttc compile`. Modules are globs over nn.Module paths
// ("encoder.layer.*") or regular expressions ("re:.*\.fc[12]"); of several entries the last that matches wins.
struct CompileOptions {
  std::string arch = "n150";  // an architecture profile (archs()), or the path of a profile file
  // Passes in order, composites first: what a map takes, later ones do not see. Only what they name is replaced; empty:
  // whatever can be.
  std::vector<ReplacementMap> replace = {};
  std::string replace_file = {};          // more of them, as a JSON file
  std::string replace_text = {};          // what such a file holds, where `replace` is empty
  std::vector<std::string> exclude = {};  // modules that stay as they are; their children are still visited
  std::vector<std::pair<std::string, Format>> weight_dtype = {};
  Format activation_dtype = Format::bfloat16;  // or float32
  std::vector<std::pair<std::string, Fidelity>> fidelity = {};
  std::vector<std::pair<std::string, bool>> fp32_acc = {};                              // accumulate in float32
  std::vector<std::string> fallback_op = {}, fallback_module = {}, fallback_node = {};  // globs kept on the CPU
  bool require_full = false;                     // Error (unsupported) where anything stays on the CPU
  std::map<std::string, InputShape> shape = {};  // by input: for free dims and for models without shapes
  std::vector<std::string> input = {};           // NAME=16000: the number that a TorchScript model is compiled for
  std::string io = {};                           // shapes from these recorded inputs (safetensors)
  std::vector<std::string> passes = {};          // these, in this order; empty: the default pipeline
  std::vector<std::string> disable = {};         // passes left out
  std::string stop_after = {};                   // the last pass to run
  std::int64_t rewrite_limit = -1;               // at most so many rewrites; negative: any number
  bool verify_each = false;                      // verify the graph after each pass
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

// A module that an entry of the maps took.
struct SwappedModule {
  std::string path, klass, op;
  std::int64_t map = 0;  // which of them, from 0
  std::string key, to;   // the entry
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
  std::int64_t nodes_before = 0, nodes_after = 0, matched = 0, refused = 0;
};

// What a compile did. Byte counts of transfers are per execution, constants not counted.
struct CompileReport {
  std::string arch;
  std::int64_t nodes = 0, device_nodes = 0, cpu_nodes = 0;  // that compute something; device + cpu = nodes
  double flops = 0, device_flops = 0;                       // of matrix products, convolutions, attention
  std::vector<ReplacedModule> modules = {};
  std::vector<SwappedModule> swapped = {};
  std::vector<Refusal> fallbacks = {}, near_misses = {};
  std::int64_t transfers = 0, transfer_bytes = 0;
  std::int64_t weight_bytes_in = 0, weight_bytes_out = 0;
  std::int64_t l1_peak_bytes = 0, dram_peak_bytes = 0;  // of one core and of all banks
  bool fits = true;       // in the memory of the architecture
  bool streamed = false;  // it does not, and runs all the same: weights are moved in when they are read
  std::vector<Conversion> conversions = {};
  std::vector<PassTiming> passes = {};
  std::vector<std::string> notes = {};  // what was assumed
  std::string summary;                  // one line
  std::string json;                     // all of it, as `ttc compile --json` has it
};

struct Compiled {
  Model model;
  CompileReport report;
};

// Rewrites a copy; `model` stays as it is. Throws Error: usage for options that mean nothing or do not fit the model,
// and where that is what a compile made; unsupported under require_full.
TTC_API Compiled compile(const Model& model, const CompileOptions& options = {});
// The report of such a compile.
TTC_API CompileReport check(const Model& model, const CompileOptions& options = {});

// The device's arithmetic. exact: the silicon's bit for bit, slowly. fast: every format and rounding point, sums in
// host fp32.
enum class NumericsMode : std::uint8_t { fast, exact };
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
  std::map<std::string, InputShape> shape = {};  // where dims are free
  std::vector<std::string> carry = {};  // outN=NAME: with io_steps, an input that is an output of the step before
  std::uint64_t seed = 0;               // of the inputs that nothing else gives
  std::string arch = {};                // "": what the model was rewritten for, else n150
  NumericsMode numerics = NumericsMode::fast;
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
  std::vector<std::string> notes = {};              // what was chosen for inputs that nobody gave
};

// Runs the model twice, node by node; a plain one is compiled with default options first. Throws Error where it cannot
// run or the inputs do not fit.
TTC_API Comparison compare(const Model& model, const CompareOptions& options = {});

struct Listed {
  std::string name, summary;
};
TTC_API std::vector<Listed> passes();  // by name
TTC_API std::vector<std::string> default_pipeline();
TTC_API std::vector<Listed> ops();      // device ops, by name
TTC_API std::vector<Listed> modules();  // TT modules, by name
TTC_API std::vector<Listed> archs();    // architecture profiles

// "0.1.0"
TTC_API const char* version();

}  // namespace ttc::api
