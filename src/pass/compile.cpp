// Counts, fallbacks with the last refusal of each, modules, transfers and memory, read off the rewritten graph.
#include "pass/compile.h"

#include <algorithm>
#include <future>
#include <unordered_map>

#include "ir/body.h"
#include "pass/call.h"
#include "pass/manifest.h"
#include "pass/swaps.h"
#include "pass/numbering.h"
#include "support/error.h"

namespace ttc {
namespace {

// On the device, as far as the compiler decides: a run may find that a dispatcher leaves it to the host.
bool placed_on_device(const ir::Node& node) { return is_device_node(node) && node.place != "cpu"; }

void count_work(const PassContext& context, CompileResult& result) {
  ir::NodeCounter counter;
  ir::walk(*context.model.graph, [&](ir::Node* node) {
    if (!node->origins.empty()) counter.add(*node, placed_on_device(*node));
  });
  result.nodes = counter.counts();
  for (std::size_t i = 0; i < counter.seen().size(); ++i) {
    const double flops = context.canonical.at(i).flops;
    if (counter.seen()[i] != ir::NodeCounter::Seen::nowhere) result.flops.total += flops;
    if (counter.seen()[i] == ir::NodeCounter::Seen::device) result.flops.device += flops;
  }
}

// What kept each node off the device, by its name: its last refusal, by a raising pass only where no other refused it.
std::unordered_map<std::string_view, const RefusalRecord*> refusals_by_node(const PassContext& context) {
  std::unordered_map<std::string_view, const RefusalRecord*> out;
  for (const RefusalRecord& refusal : context.refusals) {
    const RefusalRecord*& found = out[refusal.node];
    if (!found || !refusal.pass.starts_with("raise-")) found = &refusal;
  }
  return out;
}

void collect_fallbacks(const PassContext& context, CompileResult& result) {
  const auto refusals = refusals_by_node(context);
  ir::walk(*context.model.graph, [&](ir::Node* node) {
    if (node->origins.empty() || placed_on_device(*node)) return;
    const auto found = refusals.find(node_name(*node));
    const RefusalRecord* refusal = found == refusals.end() ? nullptr : found->second;
    Reason reason =
        refusal ? refusal->reason
        : node->graph()->parent()
            ? Reason{ReasonCode::ControlFlow, "inside " + node->graph()->parent()->op() + ", which runs on the host"}
        : !ttrt::lowerings_of(node->op()).empty()
            ? Reason{ReasonCode::UserExcluded, "no pass that puts it on the device was run"}
            : Reason{ReasonCode::Unimplemented, "no device kernel for " + node->op()};
    result.fallbacks.push_back({.node = node_name(*node),
                                .op = node->op(),
                                .module = node->provenance->module_path,
                                .reason = std::move(reason),
                                .source = node->provenance->source});
  });
}

std::string literal(const ir::Node& node, std::string_view name) {
  const ir::Arg* arg = node.arg(name);
  const std::string* text = arg ? arg->get_if<std::string>() : nullptr;
  return text ? *text : std::string();
}

void collect_modules(const PassContext& context, CompileResult& result) {
  std::unordered_map<std::string, std::vector<std::size_t>> by_path;
  const auto add = [&](const ir::Node& node, const std::string& path, const std::string& klass) {
    ModuleReport report{.path = path,
                        .klass = klass,
                        .op = node.op(),
                        .weight_format = literal(node, "weight_format"),
                        .fidelity = literal(node, "fidelity")};
    std::vector<std::size_t>& there = by_path[path];
    if (std::ranges::any_of(there, [&](std::size_t i) { return result.modules[i] == report; })) return;
    there.push_back(result.modules.size());
    result.modules.push_back(std::move(report));
  };
  ir::walk(*context.model.graph, [&](ir::Node* node) {
    const ir::Provenance& where = *node->provenance;
    if (!is_device_node(*node) || where.module_path.empty()) return;
    const ttrt::OpRecord* record = ttrt::find_op(node->op());
    if (!(record && (!record->packed.empty() || !record->family.empty())) && !ir::is_whole_module(*node)) return;
    for (const auto& [path, klass] : where.merged) add(*node, path, klass);
    if (where.merged.empty()) add(*node, where.module_path, where.module_class);
  });
  // Activations that became a part of their layer, and operators without weights, where a map names them.
  for (const Swap& swap : result.swaps)
    if (by_path.try_emplace(swap.path).second)
      result.modules.push_back(
          {.path = swap.path, .klass = swap.klass, .op = swap.op, .weight_format = {}, .fidelity = {}});
}

std::int64_t device_bytes(const ir::Value* value, const PassContext& context) {
  if (!value->type.is_tensor() || !value->type.has_shape || !value->type.has_dtype) return 0;
  const auto format = ttrt::exact_format(value->type.dtype);
  if (!format) return 0;
  ttrt::TensorSpec spec;
  spec.dtype = *format;
  for (const ir::SymExpr& size : value->type.sizes) spec.logical.push_back(size.evaluate(context.shapes).value_or(1));
  return spec.nbytes();
}

void count_transfers(const PassContext& context, CompileResult& result) {
  ir::walk(*context.model.graph, [&](ir::Node* node) {
    const ttrt::Role role = ttrt::role_of(node->op());
    if (!ttrt::is_transfer(role) || node->operands().empty() || ir::is_weight(node->operand(0))) return;
    ++result.transfers.count;
    const bool up = role == ttrt::Role::to_device;
    result.transfers.bytes += device_bytes(up ? node->result() : node->operand(0), context);
  });
}

void note_memory(const ttrt::ArchProfile& arch, const MemoryNeed& need, CompileResult& result) {
  result.memory.dram = arch.dram_banks * arch.dram_bank_bytes;
  result.memory.l1 = arch.l1_bytes - arch.l1_reserved;
  result.memory.l1_peak = need.l1, result.memory.dram_peak = need.dram, result.memory.dram_streamed = need.streamed;
}

}  // namespace

CompileResult compile(ir::Model& model, const CompileOptions& options, const PassManagerOptions& passes,
                      const CompileInput& input) {
  name_shared_modules(model);
  PassContext context(model, options);
  CompileResult result;
  result.arch = options.profile.name;
  result.weights.bytes_in = static_cast<std::int64_t>(model.weight_bytes());
  result.passes = run_passes(context, passes);
  if (context.canonical.empty()) number_nodes(context);  // a pipeline of the user's own

  // The ops' costs are beside what else is read off the graph. Where there is no thread to be had, it is at the end.
  std::future<MemoryNeed> need =
      std::async([&] { return input.memory ? input.memory(model, options.shapes) : MemoryNeed(); });
  count_work(context, result);
  collect_fallbacks(context, result);
  result.swaps = collect_swaps(context);
  collect_modules(context, result);
  count_transfers(context, result);
  result.weights.bytes_out = static_cast<std::int64_t>(model.weight_bytes());
  result.refusals = std::move(context.refusals);
  result.matches = std::move(context.matches);
  ManifestRows rows = manifest_rows(model, result);
  note_memory(options.profile, need.get(), result);
  if (options.require_full && (result.nodes.cpu > 0 || !result.memory.fits()))
    throw Error(Exit::unsupported, model.info.path,
                result.nodes.cpu > 0 ? std::to_string(result.nodes.cpu) + " nodes stay on the CPU" : result.shortage(),
                result.summary())
        .with_report(result.json());
  if (const std::string unmet = unmet_entry(context, result); !unmet.empty())
    throw Error(Exit::unsupported, model.info.path, unmet, result.summary()).with_report(result.json());
  model.extra[std::string(manifest_name)] = manifest_text(model, options, input, result, std::move(rows));
  return result;
}

}  // namespace ttc
