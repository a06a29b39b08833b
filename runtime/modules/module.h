// TT modules: what takes the place of modules of the user's model. A record says which classes it stands for, what of
// them the device computes and how precisely. The compiler's replacement map, `ttc modules` and the run-time life cycle
// read the records and nothing else.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/op.h"

namespace ttrt {

// How one module computes. What is not given is left to the next that knows: the flags of the command line, then the
// entry of the map, then the record's preset, then the op library.
struct ModuleConfig {
  std::optional<DataType> weight = {}, activation = {};
  std::optional<MathFidelity> fidelity = {};
  std::optional<bool> fp32_acc = {};
  std::optional<bool> fallback = {};  // false: what the device refuses there is an error; otherwise the CPU computes it

  // This, and what it leaves open as `preset` has it.
  ModuleConfig over(const ModuleConfig& preset) const;
  bool operator==(const ModuleConfig&) const = default;
};

// The one ATen call that a module of this class is: how one is built of tensors and attributes, without a model file.
struct ModuleCall {
  std::string_view klass;                // "torch.nn.Linear"
  std::string_view op;                   // "aten.linear.default"
  std::vector<std::string_view> args;    // "x" is the input, others are parameters or attributes; not given: as in ATen
  std::vector<std::string_view> sample;  // sizes that the input may have: "2", "weight.1*groups"
  bool indices = false;                  // the input is int64
};

struct ModuleRecord {
  std::string_view name;     // "TTNNLinear": TT-Symbiote's where it has one
  std::string_view summary;  // one sentence
  // Of the modules that it stands for: "torch.nn.Linear", or a name (glob) without its package.
  std::vector<std::string_view> classes;
  // The ATen operators (globs) that it is about: nodes of such a module become the device operators that lower these.
  // They also tell the module where a file names no classes.
  std::vector<std::string_view> computes;
  bool whole = false;  // its nodes and those of its children become whatever device operators there are
  // The operators that may stand for all of it as one (ops/whole_modules.h).
  std::vector<std::string_view> as_one = {};
  ModuleConfig preset = {};
  // The activation in ATen that alone reads the layer, in whichever module, and is computed with it: a layer that has
  // none such behind it is refused.
  std::string_view activation = {};
  bool folds_batch_norm = false;  // where one alone reads the layer
  bool joins_gate = false;        // the gate's layer and that which it multiplies are one product
  std::vector<ModuleCall> calls = {};

  // Whether a node of the module may become this device operator.
  bool permits(std::string_view device_op) const;
  // Whether the ATen operator that alone reads the layer becomes a part of it.
  bool takes_along(std::string_view aten) const;
  // Whether the ATen operator is one of `computes`.
  bool is_about(std::string_view aten) const;
  // Why the record does not take this ATen node, which its map's entry names.
  ttc::Refusal refusal(const ttc::ir::Node& node) const;
  // Generated from the fields: "aten.linear.default as tt.linear or tt.matmul".
  std::string accepts() const;
};

const ModuleRecord* find_module(std::string_view name);  // nullptr where there is none
std::vector<const ModuleRecord*> all_modules();          // sorted by name
// Whether the record stands for modules of this class: "torch.nn.modules.linear.Linear".
bool stands_for(const ModuleRecord& record, std::string_view klass);
// Whether `pattern` names the class: "torch.nn.Linear" names "torch.nn.modules.linear.Linear", "Linear" any class of
// that name; globs and "re:" as support/glob.h has them.
bool names_class(std::string_view pattern, std::string_view klass);
// Aborts on a duplicate name. The record lives as long as the process.
void register_module(const ModuleRecord& record);

}  // namespace ttrt

#define TTRT_REGISTER_MODULE(record)                                        \
  namespace {                                                               \
  const bool registered_##record = (::ttrt::register_module(record), true); \
  }
