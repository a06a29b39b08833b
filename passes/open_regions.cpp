// Lets the regions of torch.export's control flow use outer values directly, as those of TorchScript do: an operand
// that a region only reads is named where it is read. A linear layer in a branch then has a weight, not an input of a
// region. close-regions makes them operands again.
#include "effects.h"
#include "pass/rewriter.h"

namespace ttc::open_regions_pass {
namespace {

constexpr std::string_view pass = "open-regions";

// The argument that lists what regions only read, and how many of each region's inputs stand before it.
struct Reads {
  std::size_t list = 0, before = 0;
};

std::optional<Reads> reads_of(const ir::Node& node) {
  const auto length = [&](std::size_t i) -> std::optional<std::size_t> {
    const ir::Arg::List* items = i < node.args().size() ? node.arg(i).list() : nullptr;
    return items != nullptr ? std::optional(items->size()) : std::nullopt;
  };
  if (node.op() == "higher_order.cond") return Reads{.list = 3, .before = 0};
  if (node.op() == "higher_order.while_loop" && length(2)) return Reads{.list = 3, .before = *length(2)};
  if (node.op() == "higher_order.map_impl" && length(1)) return Reads{.list = 2, .before = *length(1)};
  if (node.op() == "higher_order.scan" && length(1) && length(2))
    return Reads{.list = 3, .before = *length(1) + *length(2)};
  return std::nullopt;
}

void open(PassContext& context, ir::Node* node) {
  const auto reads = reads_of(*node);
  const ir::Arg::List* items = reads && reads->list < node->args().size() ? node->arg(reads->list).list() : nullptr;
  if (items == nullptr || items->empty()) return;
  for (const auto& region : node->regions())
    if (region->inputs().size() != reads->before + items->size()) return;
  Rewriter(context, pass, node).commit_edit(node->op(), [&] {
    for (const auto& region : node->regions())
      for (std::size_t k = items->size(); k-- > 0;) {
        replace_with_arg(region->inputs()[reads->before + k].value.get(), (*items)[k]);
        region->remove_input(reads->before + k);
      }
    node->set_arg(reads->list, ir::Arg::List());
  });
}

void run(PassContext& context) {
  ir::walk(*context.model.graph, [&](ir::Node* node) { open(context, node); });
}

}  // namespace
}  // namespace ttc::open_regions_pass

TTC_REGISTER_PASS({"open-regions",
                   "Let the regions of cond, while_loop, map and scan name outer values where they read them",
                   ttc::open_regions_pass::run});
