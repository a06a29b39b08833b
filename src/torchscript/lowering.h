// Lowers TorchScript graphs to the IR by abstract interpretation: modules, lists, tuples and dicts are followed while
// lowering and vanish; what remains are tensors, numbers and control flow that depends on them.
//
// Lists, dicts and objects are mutable in TorchScript. Each is a Cell; a mutation is logged, so that the two branches
// of a prim::If start from the same state and what they leave different becomes one more result of the prim.if.
#pragma once

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/model.h"

namespace ttc::ts {

struct Cell;

// What is known of a TorchScript value.
struct Sym {
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
  std::vector<Sym> items = {};      // tuple
  std::shared_ptr<Cell> cell = {};  // list, dict, object
  torch::jit::Function* function = nullptr;

  bool is_literal() const { return kind == Kind::arg && !arg.has_values(); }
  ir::Value* value() const { return kind == Kind::arg ? arg.value() : nullptr; }
  bool operator==(const Sym& other) const = default;
};

// The content of a list, dict or object.
struct Content {
  ir::Value* value = nullptr;                         // a list that only exists at run time; items is then empty
  std::vector<Sym> items = {};                        // list
  std::vector<std::pair<ir::Arg, Sym>> entries = {};  // dict
  std::map<std::string, Sym> attributes = {};         // object
  bool operator==(const Content& other) const = default;
};

struct Cell {
  Content content = {};
  c10::TypePtr type;
  c10::intrusive_ptr<c10::ivalue::Object> object = {};  // of the loaded module; null for objects the code makes
  std::string path = {};                                // module path
  int born = 0;                                         // cells made later than a branch's start are local to it
};

ir::Type ir_type(const c10::TypePtr& type);
ir::Type type_of(const ir::Arg& arg);
bool is_number_type(const c10::TypePtr& type);  // int, float, bool or number
// The literal of a plain constant; nullopt for tensors, modules and other objects.
std::optional<ir::Arg> literal_of(const c10::IValue& value);

class Lowering {
 public:
  explicit Lowering(ir::Model& model) : model_(model), graph_(model.graph.get()) {}

  // The module of the loaded file; state that forward() writes becomes buffers.
  Sym root(const torch::jit::Module& module);
  Sym call(torch::jit::Function& function, const std::vector<Sym>& args);
  // As an argument of a node of the current graph; emits nodes where a list or tensor must exist at run time.
  ir::Arg to_arg(const Sym& sym);
  // One buffer_mutation output for each attribute whose value is no longer the one it started with.
  void add_mutation_outputs();
  Sym from_ivalue(const c10::IValue& value, const std::string& name, ir::InputKind kind);

 private:
  using JitNode = torch::jit::Node;
  using Env = std::unordered_map<const torch::jit::Value*, Sym>;
  using Handler = void (Lowering::*)(const JitNode&);
  struct Change {
    std::shared_ptr<Cell> cell;
    Content before;
  };
  struct State {
    std::shared_ptr<Cell> object;
    std::string attribute;
    Sym initial;
    std::string target;
  };
  // The two regions of a prim.if, while what differs between them is merged.
  struct Branches {
    ir::Node* node;
    ir::Graph* graphs[2];
  };
  // Mutable state that a loop's body changes: a list, or an attribute of an object.
  struct Slot {
    std::shared_ptr<Cell> cell;
    std::string attribute;
    bool operator==(const Slot&) const = default;
  };
  using Changes =
      std::map<int, std::pair<std::shared_ptr<Cell>, Content>>;  // by birth, so that the order is reproducible

  static const std::map<std::string, Handler>& handlers();

  // -- ts_lower.cpp: calls, nodes, operators
  void lower_block(const torch::jit::Block& block);
  void lower_node(const JitNode& node);
  void lower_operator(const JitNode& node);
  bool fold_literals(const JitNode& node);
  std::vector<ir::Arg> operator_args(const JitNode& node, const c10::FunctionSchema& schema);
  ir::Node* emit(std::string op, std::vector<ir::Arg> args);
  ir::Value* emit1(std::string op, std::vector<ir::Arg> args, ir::Type type);
  void set_results(const JitNode& node, ir::Node* made);
  const Sym& in(const JitNode& node, std::size_t i);
  void out(const JitNode& node, Sym sym, std::size_t i = 0);
  std::shared_ptr<const ir::Provenance> provenance();
  [[noreturn]] void unsupported(const std::string& what) const;
  void on_convolution(const JitNode& node);
  void on_is(const JitNode& node);
  void on_isinstance(const JitNode& node);
  void on_alias(const JitNode& node);
  void on_drop(const JitNode& node);
  void on_false(const JitNode& node);
  void on_device(const JitNode& node);
  void on_dtype(const JitNode& node);
  void on_data(const JitNode& node);

  // -- ts_numbers.cpp: sizes, arithmetic on numbers and on 0-d tensors made from numbers
  void on_size(const JitNode& node);
  void on_number(const JitNode& node);  // aten::Int, Float, Bool, ScalarImplicit, ...
  void on_num_to_tensor(const JitNode& node);
  void on_arithmetic(const JitNode& node);
  void on_rounding(const JitNode& node);
  bool tensor_arithmetic(const JitNode& node, const std::string& name);
  bool tensor_rounding(const JitNode& node, const std::string& name);
  ir::Arg emit_number(const char* op, std::vector<ir::Arg> args);
  std::optional<ir::Arg> number_in(const Sym& sym) const;

  // -- ts_values.cpp: weights, state, cells
  Sym tensor(const at::Tensor& tensor, std::string name, ir::InputKind kind);
  Sym attribute(const std::shared_ptr<Cell>& object, const std::string& name);
  Sym load_attribute(const Cell& object, const std::string& name);
  void find_written_attributes(const torch::jit::Block& block, std::set<const void*>& seen);
  void load_state(const Sym& module);
  Sym make_list(std::vector<Sym> items, c10::TypePtr type);
  void change(const std::shared_ptr<Cell>& cell, Content content);
  Changes take_changes(std::size_t mark, int born_before);
  Sym arg_sym(ir::Value* value, const c10::TypePtr& type);

  // -- ts_control.cpp: branches and loops
  Sym merge(const Sym& a, const Sym& b, const c10::TypePtr& type, const Branches& branches);
  Content merge(const Cell& cell, const Content* a, const Content* b, const Branches& branches);
  void flatten(const Sym& sym, const Sym& shape, std::vector<ir::Arg>& args);
  Sym unflatten(const Sym& shape, const c10::TypePtr& type, const std::function<ir::Value*(ir::Type)>& next);
  Sym slot_value(const Slot& slot);
  void set_slot(const Slot& slot, const Sym& sym);
  c10::TypePtr slot_type(const Slot& slot);
  void add_slots(const Changes& changes, std::vector<Slot>& slots);
  bool try_loop(const JitNode& node, std::vector<Slot>& slots);
  bool unroll(const JitNode& node);
  void on_if(const JitNode& node);
  void on_loop(const JitNode& node);

  // -- ts_containers.cpp: constants, attributes, calls, lists, tuples, dicts
  void on_constant(const JitNode& node);
  void on_get_attr(const JitNode& node);
  void on_set_attr(const JitNode& node);
  void on_call(const JitNode& node);
  void on_fork(const JitNode& node);
  void on_create_object(const JitNode& node);
  void on_list(const JitNode& node);
  void on_list_unpack(const JitNode& node);
  void on_tuple(const JitNode& node);
  void on_tuple_unpack(const JitNode& node);
  void on_tuple_index(const JitNode& node);
  void on_tuple_slice(const JitNode& node);
  void on_dict(const JitNode& node);
  void on_uninitialized(const JitNode& node);
  void on_len(const JitNode& node);
  void on_getitem(const JitNode& node);
  void on_list_write(const JitNode& node);  // append, extend, insert, pop, clear, _set_item, ...
  void on_list_read(const JitNode& node);
  bool some_sizes(const JitNode& node);  // add, slice, list, mul of lists
  void on_dict_read(const JitNode& node);
  void set_dict_item(const JitNode& node);
  bool is_list(const JitNode& node, std::size_t i);

  ir::Model& model_;
  ir::Graph* graph_;
  std::vector<Env> frames_;
  std::vector<std::pair<std::string, std::string>> module_stack_;
  std::string source_;  // of the node being lowered
  std::shared_ptr<const ir::Provenance> provenance_;
  std::set<const ir::Value*> maybe_none_;  // values that may be None at run time
  std::vector<Change> log_;
  int births_ = 0;
  std::size_t lowered_ = 0, visited_ = 0;                  // nodes, to bound what small files can expand to
  std::set<std::pair<std::string, std::string>> written_;  // (class, attribute) that reachable code sets
  std::vector<State> state_;
  std::map<const void*, std::shared_ptr<Cell>> objects_;  // one cell per object of the loaded module
  std::map<const void*, std::shared_ptr<const ir::Storage>> storages_;
  std::map<std::pair<const void*, std::string>, ir::Value*> weights_;
  std::map<const void*, std::pair<std::string, ir::InputKind>> named_;  // parameters and buffers, by tensor
  int constants_ = 0;
};

}  // namespace ttc::ts
