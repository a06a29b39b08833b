// The caches are found by the signature alone: names differ from exporter to exporter.
#include "session/decode_loop.h"

#include <algorithm>
#include <set>
#include <vector>

#include "executor/signature.h"
#include "session/device_profile.h"

namespace ttc {
namespace {

constexpr std::size_t cache_dims = 3;  // what has fewer counts or remembers a position

using Sizes = std::vector<std::int64_t>;

// Of floating-point tensors with as many dims as caches have, else empty.
Sizes sizes_of(const ir::Type& type, const ir::SymBinding& sizes) {
  Sizes out;
  if (!type.is_tensor() || !type.has_shape || !type.has_dtype || !is_floating(type.dtype)) return out;
  if (type.sizes.size() < cache_dims) return out;
  for (const ir::SymExpr& size : type.sizes) out.push_back(size.evaluate(sizes).value_or(-1));
  return out;
}

bool grown(const Sizes& before, const Sizes& after) {
  if (before.empty() || before.size() != after.size()) return false;
  std::size_t longer = 0;
  for (std::size_t d = 0; d < before.size(); ++d) {
    if (before[d] < 0 || after[d] < before[d]) return false;
    longer += after[d] > before[d];
  }
  return longer <= 1;
}

class Caches {
 public:
  Caches(const ir::Model& model, const ir::SymBinding& sizes) : graph_(*model.graph), sizes_(sizes) {
    const std::vector<ttrt::UserInput> given = ttrt::user_inputs(model);
    for (const ir::GraphOutput& output : graph_.outputs()) {
      const ir::Value* value = output.arg.value();
      if (value == nullptr || sizes_of(value->type, sizes).empty()) continue;
      if (output.kind == ir::OutputKind::buffer_mutation) ++count;
      if (output.kind == ir::OutputKind::user) add(input_that_became(value), value);
      if (output.kind != ir::OutputKind::user_input_mutation) continue;
      const int written = ttrt::user_input_index(model, output.target);
      if (written >= 0) add(given[static_cast<std::size_t>(written)].input->value.get(), value);
    }
  }

  std::int64_t count = 0;
  std::set<const ir::Value*> inputs, outputs;

 private:
  void add(const ir::Value* input, const ir::Value* output) {
    if (input == nullptr) return;
    ++count;
    inputs.insert(input), outputs.insert(output);
  }
  const ir::Value* input_that_became(const ir::Value* output) const {
    for (const ir::GraphInput& input : graph_.inputs())
      if (input.kind == ir::InputKind::user && !inputs.contains(input.value.get()) &&
          grown(sizes_of(input.value->type, sizes_), sizes_of(output->type, sizes_)))
        return input.value.get();
    return nullptr;
  }

  const ir::Graph& graph_;
  const ir::SymBinding& sizes_;
};

}  // namespace

std::optional<DecodeLoop> decode_loop(const ir::Model& model, const DeviceProfile& profile,
                                      const ir::SymBinding& sizes) {
  if (profile.tokens == 0 || profile.tokens != profile.samples) return std::nullopt;
  const Caches caches(model, sizes);
  if (caches.count == 0) return std::nullopt;
  DecodeLoop out{.users = profile.samples, .caches = caches.count, .token_us = profile.us, .first = {}};
  for (const NodeCost& op : profile.ops) {
    if (!op.transfer) continue;
    const bool given = op.node->operand(0) != nullptr && caches.inputs.contains(op.node->operand(0));
    const bool made = !op.node->results().empty() && caches.outputs.contains(op.node->result());
    if (given || made) out.token_us -= op.time.us;
  }
  return out;
}

OrderedJson to_json(const DecodeLoop& loop) {
  OrderedJson out{{"users", loop.users},
                  {"caches", loop.caches},
                  {"token_us", loop.token_us},
                  {"tokens_per_s", loop.tokens_per_s()},
                  {"tokens_per_s_user", loop.token_us > 0 ? 1e6 / loop.token_us : 0}};
  if (loop.first)
    out["first_token"] = {{"us", loop.first->us},
                          {"prompt_tokens", loop.first->tokens},
                          {"users", loop.first->users},
                          {"model", loop.first->model}};
  return out;
}

}  // namespace ttc
