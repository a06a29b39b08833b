// Abstract values: what is known of a TorchScript value while its graph is lowered.
//
// Lists, dicts and objects are mutable in TorchScript: each is a Cell, shared by whoever holds it.
#pragma once

#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/api/function_impl.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/model.h"

namespace ttc::ts {

struct Cell;

struct Abstract {
  enum class Kind {
    arg,            // a literal or an IR value
    number_tensor,  // a 0-d tensor made from the number in `arg` (prim::NumToTensor)
    sizes,          // the list of sizes of the tensor in `arg`
    tuple,
    list,
    dict,
    object,  // a module or an instance of a script class
    function,
    undefined,  // prim::Uninitialized
  };
  Kind kind = Kind::arg;
  ir::Arg arg = {};
  std::vector<Abstract> items = {};  // tuple
  std::shared_ptr<Cell> cell = {};   // list, dict, object
  torch::jit::Function* function = nullptr;

  bool is_literal() const { return kind == Kind::arg && !arg.has_values(); }
  ir::Value* value() const { return kind == Kind::arg ? arg.value() : nullptr; }
  bool operator==(const Abstract& other) const = default;
};

// The content of a list, dict or object.
struct Content {
  ir::Value* value = nullptr;        // a list or dict that only exists at run time; items and entries are then empty
  std::vector<Abstract> items = {};  // list
  std::vector<std::pair<ir::Arg, Abstract>> entries = {};  // dict
  std::map<std::string, Abstract> attributes = {};         // object
  bool operator==(const Content& other) const = default;
};

struct Cell {
  Content content = {};
  c10::TypePtr type;
  c10::intrusive_ptr<c10::ivalue::Object> object = {};  // of the loaded module; null for objects the code makes
  std::string path = {};                                // module path
  int born = 0;                                         // cells made later than a branch's start are local to it
  bool copied = false;  // an item of what only exists at run time: who writes to it would not write there
};

ir::Type ir_type(const c10::TypePtr& type);
ir::Type type_of(const ir::Arg& arg);
bool is_number_type(const c10::TypePtr& type);  // int, float, bool or number
// The literal of a plain constant; nullopt for tensors, modules and other objects.
std::optional<ir::Arg> literal_of(const c10::IValue& value);

}  // namespace ttc::ts
