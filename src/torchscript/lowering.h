// Lowers TorchScript graphs to the IR by abstract interpretation: modules, lists, tuples and dicts are followed while
// lowering and vanish; what remains are tensors, numbers and control flow that depends on them.
//
// Each kind of node has a handler. They come in families, a file each: operators, modules, containers, control,
// numbers.
#pragma once

#include <torch/csrc/jit/api/module.h>

#include "torchscript/lowering_state.h"

namespace ttc::ts {

using Handler = void (*)(LoweringState&, const JitNode&);
using Handlers = std::map<std::string, Handler, std::less<>>;  // by kind: "prim::If"

void add_operator_handlers(Handlers& handlers);
void add_module_handlers(Handlers& handlers);
void add_container_handlers(Handlers& handlers);
void add_dict_handlers(Handlers& handlers);
void add_control_handlers(Handlers& handlers);
void add_number_handlers(Handlers& handlers);

// ---- read.cpp
// The whole module; `path` stands for it in messages. Throws ttc::Error (unsupported) for what the IR has no form for.
std::unique_ptr<ir::Model> lower_module(const torch::jit::Module& module, const std::string& path);

// ---- operators.cpp
Abstract call(LoweringState& s, torch::jit::Function& function, const std::vector<Abstract>& args);
void lower_block(LoweringState& s, const torch::jit::Block& block);
void lower_operator(LoweringState& s, const JitNode& node);
// Runs operators on numbers, strings and lists of these while lowering; false where something is not known.
bool fold_literals(LoweringState& s, const JitNode& node);

// ---- modules.cpp
// The module of the loaded file; state that forward() writes becomes buffers.
Abstract root(LoweringState& s, const torch::jit::Module& module);
Abstract attribute(LoweringState& s, const std::shared_ptr<Cell>& object, const std::string& name);
Abstract load_attribute(LoweringState& s, const Cell& object, const std::string& name);
// One buffer_mutation output for each attribute whose value is no longer the one it started with.
void add_mutation_outputs(LoweringState& s);

// ---- containers.cpp
bool is_list(const LoweringState& s, const JitNode& node, std::size_t i);
void on_list_read(LoweringState& s, const JitNode& node);  // add, slice, list, mul of lists
// What a node reads from a container that only exists at run time is no longer in it: writes to it are refused.
void mark_copied(LoweringState& s, const JitNode& node);
void check_own(const LoweringState& s, const Abstract& container);

// ---- dicts.cpp
void on_dict_read(LoweringState& s, const JitNode& node);   // of a dict: [], get, in, len, keys, values, items, copy
void on_dict_write(LoweringState& s, const JitNode& node);  // []=, del, pop, setdefault, update, clear
// A dict as a value of the current graph: its entries, or what it is at run time.
ir::Value* dict_value(LoweringState& s, const Cell& cell);

// ---- values.cpp
Abstract from_ivalue(LoweringState& s, const c10::IValue& value, const std::string& name, ir::InputKind kind);
Abstract tensor(LoweringState& s, const at::Tensor& tensor, std::string name, ir::InputKind kind);
// As an argument of a node of the current graph; emits nodes where a list or tensor must exist at run time.
ir::Arg to_arg(LoweringState& s, const Abstract& abstract);

}  // namespace ttc::ts
