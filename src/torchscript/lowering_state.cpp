// Nodes with their provenance, the values of the frame on top, and the log of what was changed.
#include "torchscript/lowering_state.h"

#include <algorithm>

#include "support/error.h"

namespace ttc::ts {

using ir::Arg;
using ir::Type;
using ir::TypeKind;

void LoweringState::unsupported(const std::string& what) const {
  std::string where;
  if (!module_stack.empty() && !module_stack.back().first.empty()) where = " in module " + module_stack.back().first;
  if (!source.empty()) where += " (" + source + ")";
  throw Error(Exit::unsupported, model.info.path, what + where);
}

std::shared_ptr<const ir::Provenance> LoweringState::provenance() {
  ir::Provenance made;
  if (!module_stack.empty()) std::tie(made.module_path, made.module_class) = module_stack.back();
  made.source = source;
  made.stack = module_stack;
  if (std::ranges::any_of(module_calls, [](int call) { return call > 0; })) made.calls = module_calls;
  if (!last_provenance || !(*last_provenance == made))
    last_provenance = std::make_shared<const ir::Provenance>(std::move(made));
  return last_provenance;
}

ir::Node* LoweringState::emit(std::string op, std::vector<Arg> args) {
  if (++lowered > max_nodes) unsupported("the model expands to more than " + std::to_string(max_nodes) + " nodes");
  ir::Node* node = graph->append(std::move(op), std::move(args));
  node->provenance = provenance();
  return node;
}

ir::Value* LoweringState::emit1(std::string op, std::vector<Arg> args, Type type) {
  const std::string stem = op.substr(op.find('.') + 1, op.find('.', op.find('.') + 1) - op.find('.') - 1);
  return emit(std::move(op), std::move(args))->add_result(std::move(type), graph->unique_name(stem));
}

const Abstract& LoweringState::in(const JitNode& node, std::size_t i) const {
  const auto found = frames.back().find(node.input(i));
  TTC_CHECK(found != frames.back().end(), "an operand was lowered after its use");
  return found->second;
}

void LoweringState::out(const JitNode& node, Abstract abstract, std::size_t i) {
  frames.back()[node.output(i)] = std::move(abstract);
}

// A list that is unpacked at once becomes the node's results, as in .pt2 files; other lists stay one value.
void LoweringState::set_results(const JitNode& node, ir::Node* made) {
  const std::string stem = std::string(node.kind().toUnqualString());
  for (std::size_t i = 0; i < node.outputs().size(); ++i) {
    const torch::jit::Value* output = node.output(i);
    const auto list = output->type()->cast<c10::ListType>();
    const bool unpacked = list && node.outputs().size() == 1 && output->uses().size() == 1 &&
                          output->uses()[0].user->kind() == c10::prim::ListUnpack;
    if (!unpacked) {
      out(node, from_value(made->add_result(ir_type(output->type()), graph->unique_name(stem)), output->type()), i);
      continue;
    }
    std::vector<Abstract> items;
    for (std::size_t k = 0; k < output->uses()[0].user->outputs().size(); ++k)
      items.push_back(from_value(made->add_result(ir_type(list->getElementType()), graph->unique_name(stem)),
                                 list->getElementType()));
    out(node, make_list(std::move(items), list), i);
  }
}

Abstract LoweringState::make_list(std::vector<Abstract> items, c10::TypePtr type) {
  auto cell = std::make_shared<Cell>(Cell{.type = std::move(type), .born = births++});
  cell->content.items = std::move(items);
  return Abstract{.kind = Abstract::Kind::list, .cell = std::move(cell)};
}

Abstract LoweringState::make_dict(Content content, c10::TypePtr type) {
  auto cell = std::make_shared<Cell>(Cell{.content = std::move(content), .type = std::move(type), .born = births++});
  return Abstract{.kind = Abstract::Kind::dict, .cell = std::move(cell)};
}

void LoweringState::change(const std::shared_ptr<Cell>& cell, Content content) {
  log.push_back({cell, cell->content});
  cell->content = std::move(content);
}

// Undoes what was logged since `mark` and returns what older cells held before undoing, oldest cell first.
Changes LoweringState::take_changes(std::size_t mark, int born_before) {
  Changes changes;
  for (std::size_t i = mark; i < log.size(); ++i)
    if (log[i].cell->born < born_before) changes.try_emplace(log[i].cell->born, log[i].cell, log[i].cell->content);
  while (log.size() > mark) {
    log.back().cell->content = std::move(log.back().before);
    log.pop_back();
  }
  return changes;
}

Abstract LoweringState::from_value(ir::Value* value, const c10::TypePtr& type) {
  if (type && type->kind() == c10::TypeKind::OptionalType) {
    maybe_none.insert(value);
    return from_value(value, type->expectRef<c10::OptionalType>().getElementType());
  }
  if (value->type.kind == TypeKind::dict) return make_dict({.value = value}, type);
  if (value->type.kind != TypeKind::list) return Abstract{.arg = value};
  Abstract list = make_list({}, type);
  list.cell->content.value = value;
  return list;
}

}  // namespace ttc::ts
