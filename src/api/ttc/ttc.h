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
// Phases of the matrix unit's multiplier, 1 to 4. library: as the op library takes it by itself.
enum class Fidelity : std::uint8_t { LoFi, HiFi2, HiFi3, HiFi4, library };

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
  // Accumulate in float32; nullopt: as the op library does by itself.
  std::vector<std::pair<std::string, std::optional<bool>>> fp32_acc = {};
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
  std::string reproducer = {};                   // where a pass that fails is written with its graph
  bool keep_original = false;                    // the result carries the file that it was made from: undo()
  std::vector<std::string> embed_tests = {};     // and these calls (safetensors), which verify() runs
  double test_pcc = 0.99;                        // what each of their outputs has to reach
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
// and where that is what a compile made; unsupported under require_full; failed where the result misses embed_tests.
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

// What each node of the device sees, and is compared with: TT-Symbiote's run modes.
enum class CompareMode : std::uint8_t {
  dpl,                // two runs, each of its own values
  sel,                // each op beside its reference, on what the device has
  dpl_no_error_prop,  // on what the references gave
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
  // What every row must reach; nullopt: by its format and kind (0.997, bfloat8_b 0.985, norms 0.999, outputs 0.99, ..)
  std::optional<double> pcc = {};
  std::optional<double> max_rel = {};
  CompareMode mode = CompareMode::dpl;  // others only against the cpu
};

// How far one value of the two runs is apart.
struct CompareRow {
  std::string node, op, module, source;  // "outN" and op "output" for an output
  double pcc = 1;                // Pearson correlation; of constant values 1 where equal, 0 otherwise
  double max_abs = 0;            // largest |a - e|
  double max_rel = 0;            // largest |a - e| over the largest |e|
  double snr_db = 0;             // infinite where equal
  std::int64_t nan = 0;          // places where exactly one is NaN, or infinities differ
  std::int64_t zero = 0;         // zeros of the device's value
  double threshold = 0;          // of the PCC
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

// ---- what a rewritten file proves, and how models differ ------------------------------------------------------------

struct Finding {
  std::string kind;  // archive, weight, graph, manifest, original or test
  std::string name;  // of the weight, or of the output of a test
  std::string detail;
  bool pass = true;
};
struct Verification {
  std::vector<Finding> findings;
  bool pass = true;
};
// Whether a rewritten file is what its compile wrote: checksums, hashes, manifest, and the calls that it carries along.
// Throws Error: usage for a model that is no file yet, bad_file for one that has no manifest.
TTC_API Verification verify(const Model& model);
// Writes the file that a rewritten model was made from. Throws Error: failed where it does not keep it (what() tells
// what cannot be taken back), bad_file for a model that was not rewritten, usage where the file can't be written.
TTC_API void undo(const Model& model, const std::string& path);

// One thing that two models have differently; "" where one has it not.
struct Difference {
  std::string kind;  // file, input, output, op, module or weight
  std::string name, before, after;
};
TTC_API std::vector<Difference> diff(const Model& before, const Model& after);

// Which call of the whole model to capture what goes into a module from; as in CompareOptions.
struct ExtractOptions {
  std::string io = {}, io_prefix = {};
  bool io_steps = false;
  std::vector<std::string> input = {};
  std::map<std::string, InputShape> shape = {};
  std::uint64_t seed = 0;
  std::string save_io = {};  // where the module's inputs and outputs are written (safetensors)
};
struct Extracted {
  Model model;
  std::int64_t nodes = 0;
};
// The nn.Module at this path as a model of its own, to be compiled or saved like one from a file. Throws Error: usage
// where there is none or the folder of temporary files cannot be written, unsupported for a rewritten model.
TTC_API Extracted extract(const Model& model, const std::string& module, const ExtractOptions& options = {});

// ---- which part of a rewrite costs the accuracy, and which precision is enough --------------------------------------

struct Bisection {
  bool fails = false;                 // whether the whole rewrite misses the PCC; nothing to find otherwise
  std::vector<std::string> modules;   // the smallest set that was found to miss it, by path
  std::int64_t rewrite_number = 0;    // by rewrite: the first with which it misses it, counted from 1
  std::string pass = {}, rule = {}, result = {};  // of that rewrite
  struct Run {
    std::string what;  // "3 modules", "41 rewrites"
    double pcc = 1;
    bool pass = false;
  };
  std::vector<Run> runs;
};
// On the calls of options.io (made inputs where there is none), LibTorch's outputs expected where it has none. Throws
// Error like compile, and failed where the model misses the PCC with nothing on the device.
TTC_API Bisection bisect(const Model& model, const CompileOptions& options, double pcc, bool by_rewrite = false);

struct SearchGoal {
  std::optional<double> min_pcc = {}, min_snr_db = {};  // of each output
  std::optional<double> max_top1_drop = {};             // share of rows whose largest element is another
};
struct Trial {
  std::string what;  // "all bfloat8_b HiFi2", "mix 3"
  double pcc = 1, snr_db = 0, top1 = 1;
  double cycles = 0;              // of the device, by its time model
  std::int64_t weight_bytes = 0;  // packed
  bool met = false, pareto = false;
};
struct PrecisionSearch {
  CompileOptions options;       // with the choice: compile() with them gives the model that was measured
  std::vector<Trial> trials;    // in order
  Trial seen, held_back;        // the choice, on calls of the search and on others
  std::string text;             // the choice as flags, as `ttc compile --options` takes them
};
// The cheapest mix of formats, fidelities and accumulation that reaches the goal, on the calls of options.io. Throws
// Error: usage without a goal, failed where the finest precision misses it.
TTC_API PrecisionSearch search_precision(const Model& model, const SearchGoal& goal,
                                         const CompileOptions& options = {});

// ---- which modules the device has -----------------------------------------------------------------------------------

// A node that the host serves, or served.
struct HostNode {
  std::string node, op, module, klass, reason;
  bool planned = true;   // by the compile; false: it fell back in a run
  bool expected = true;  // by the list that was given, else because it was planned
};
// TT-Symbiote's compatibility report.
struct Compatibility {
  std::map<std::string, std::string> swapped;     // module path to class
  std::map<std::string, std::int64_t> successes;  // runs in which the device served all of the module
  std::vector<HostNode> fallbacks;
  std::vector<std::string> regressions;  // classes of unexpected fallbacks
  std::vector<std::string> no_longer;    // expected, but nothing falls back for them
  std::int64_t runs = 0;
  std::string json;  // all of it, as `ttc run --compatibility` writes it
};
// Of a rewritten model before it runs (ttrt::Session::compatibility() tells of runs). `expected`: classes,
// module:GLOBs, operators and nodes that may stay on the CPU.
TTC_API Compatibility compatibility(const Model& model,
                                    const std::optional<std::vector<std::string>>& expected = {});

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
