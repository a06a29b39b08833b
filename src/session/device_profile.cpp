// Every device node becomes a call by the binder, as passes make them, and is priced as the executor prices its steps.
#include "session/device_profile.h"

#include <algorithm>
#include <map>
#include <set>

#include "executor/call_price.h"
#include "ir/body.h"
#include "ir/node_counts.h"
#include "pass/call.h"
#include "torch/scalar_ops.h"

namespace ttc {
namespace {

using ttrt::Bound;
using ttrt::TensorSpec;

// Bytes that a tensor's elements take, without what pads them to tiles.
std::int64_t useful_bytes(const TensorSpec& spec) {
  if (spec.layout != ttrt::Layout::tile || spec.tiles() == 0) return spec.nbytes();
  const double share = static_cast<double>(ttrt::volume(spec.logical)) /
                       static_cast<double>(spec.tiles() * ttrt::tile_dim * ttrt::tile_dim);
  return static_cast<std::int64_t>(static_cast<double>(spec.nbytes()) * share);
}

// What its products would take at the chip's peak of their fidelity.
double peak_us(const NodeCost& op, const ttrt::ArchProfile& arch) {
  const auto fidelity = ttrt::math_fidelity_from_string(op.fidelity);
  return fidelity ? op.flops / arch.peak_tflops(*fidelity) * 1e-6 : 0;
}

using Operands = std::vector<ir::Value*>;

class Pricing {
 public:
  Pricing(const ir::Model& model, const ttrt::ArchProfile& arch, const ir::SymBinding& shapes,
          const std::string& dispatcher)
      : model_(model),
        sizes_(example_sizes(model, shapes)),
        chooser_({.dispatcher = dispatcher, .report = [](const std::string&, std::string_view) {}}) {
    out_.arch = arch;
  }

  DeviceProfile run() {
    price_graph();
    count_calls();
    roll_up();
    out_.decode = decode_loop(model_, out_, sizes_);
    out_.weight_bytes = dram_.kept_bytes();
    out_.dram = dram_.over_time(l1_bytes_.size());
    out_.l1 = circular_buffers_over_time(out_.arch, l1_bytes_);
    if (!out_.ops.empty())
      out_.l1.held = {{out_.ops[out_.l1.peak_at].name, "circular buffers", l1_bytes_[out_.l1.peak_at]}};
    return std::move(out_);
  }

  // Without the list of what the ops cost, which takes more memory than all else.
  MemoryNeed need() {
    lists_ops_ = false;
    price_graph();
    const MemoryUse dram = dram_.over_time(l1_bytes_.size());
    return {.l1 = circular_buffers_over_time(out_.arch, l1_bytes_).peak, .dram = dram.peak, .streamed = dram.streamed};
  }

 private:
  void price_graph() {
    for (const ir::GraphOutput& output : model_.graph->outputs())
      if (output.kind == ir::OutputKind::buffer_mutation || output.kind == ir::OutputKind::parameter_mutation)
        for (const ir::GraphInput& input : model_.graph->inputs())
          if (input.target == output.target && !input.target.empty()) written_.insert(input.value.get());
    for (const ir::GraphOutput& output : model_.graph->outputs())
      if (const ir::Value* value = output.arg.value())
        (output.kind == ir::OutputKind::buffer_mutation ? buffers_ : returned_).insert(value);
    ir::NodeCounter nodes;
    ir::walk(*model_.graph, [&](ir::Node* node) {
      const bool served = price(*node);
      if (!node->origins.empty()) nodes.add(*node, served);
    });
    out_.host_nodes = static_cast<std::int64_t>(nodes.counts().cpu);
  }

  // False for what the host computes.
  bool price(const ir::Node& node) {
    const ttrt::OpRecord* record = ttrt::find_op(node.op());
    if (ir::is_whole_module(node))
      for (std::size_t i = 0; i < node.results().size() && i < node.regions()[0]->outputs().size(); ++i)
        if (const ir::Value* made = node.regions()[0]->outputs()[i].arg.value())
          dram_.name(node.results()[i].get(), made);
    const Operands operands = node.operands();
    const bool of_shapes = follows_from_shapes(node, operands);
    const bool device = record != nullptr && (node.place != "cpu" || record->role == ttrt::Role::to_host);
    if (ttrt::role_of(node.op()) == ttrt::Role::to_host && constants_.contains(node.operand(0))) return true;
    if (set_up_once(node, operands)) {
      if (device) note_constants(node, operands, *record);
      return device;
    }
    if (!device) {
      for (const ir::Value* value : operands)  // sizes are asked for after the op before
        if (!l1_bytes_.empty()) dram_.read(value, l1_bytes_.size() - 1);
      return false;
    }
    auto made = concrete_call(*record, node.args(), sizes_, {.arch = out_.arch.arch});
    if (std::holds_alternative<Reason>(made)) {
      ++out_.unpriced;
      return true;
    }
    const ttrt::BoundCall& bound = std::get<ttrt::BoundCall>(made);
    const bool transfer = is_transfer(record->role);
    if (!transfer && bound.refusal()) return false;
    if (transfer && stays(node)) {
      if (record->role == ttrt::Role::to_device)
        dram_.keep(node.result(), bound.results().at(0));
      else
        dram_.becomes_buffer(node.operand(0));  // buffers are written when nothing can fail any more
      return true;
    }
    const ttrt::CallPrice* kernel = nullptr;
    if (!transfer) {
      const ir::Value* second = node.operand(1);
      kernel = &prices_.of(bound.call, second != nullptr && ir::is_weight(second));
      if (!kernel->on_device) return false;  // the dispatcher leaves it to the host
    }
    std::vector<TensorSpec> results;
    if (record->role != ttrt::Role::to_host) results = bound.results();
    note_lives(node, operands, bound, results);
    for (const ir::Value* value : operands)
      if (!of_shapes && of_shapes_.contains(value)) dram_.outlast(value);
    if (record->role == ttrt::Role::to_host && node.result()->users().empty() && node.result()->output_uses() == 1)
      dram_.read_at_end(node.operand(0));  // it may stay on the device for the caller
    l1_bytes_.push_back(kernel != nullptr ? circular_buffers(*kernel) : 0);
    if (lists_ops_) list_op(node, bound, std::move(results), kernel);
    return true;
  }

  // What the model writes into its buffers is kept on the device from call to call.
  bool stays(const ir::Node& node) const {
    const ir::Value* operand = node.operand(0);
    if (operand != nullptr && written_.contains(operand)) return true;
    if (node.results().empty() || !node.results()[0]->users().empty()) return false;
    const ir::Value* result = node.results()[0].get();
    return buffers_.contains(result) && !returned_.contains(result);
  }

  // What reads nothing but constants is made before the first call, as the executor does it.
  bool set_up_once(const ir::Node& node, const Operands& operands) {
    if (!node.regions().empty() || node.results().empty() || ir::is_random(node)) return false;
    if (node.schema() == nullptr || node.schema()->mutates()) return false;
    for (const ir::Value* value : operands)
      if (!constants_.contains(value) && !(ir::is_weight(value) && !written_.contains(value))) return false;
    if (ttrt::role_of(node.op()) == ttrt::Role::to_host) return false;
    for (const auto& result : node.results()) constants_.insert(result.get());
    return true;
  }
  // What follows from the inputs' shapes and constants: a plan keeps what of it others read, from call to call
  // (executor/program_shapes.cpp).
  bool follows_from_shapes(const ir::Node& node, const Operands& operands) {
    if (!node.regions().empty() || node.results().empty() || ir::is_random(node)) return false;
    if (node.schema() == nullptr || node.schema()->mutates() || ttrt::role_of(node.op()) == ttrt::Role::to_host)
      return false;
    const bool asks_for_sizes = ttrt::asks_for_sizes(node.op());
    for (const ir::Value* value : operands)
      if (!asks_for_sizes && !of_shapes_.contains(value) && !constants_.contains(value) &&
          !(ir::is_weight(value) && !written_.contains(value)))
        return false;
    for (const auto& result : node.results()) of_shapes_.insert(result.get());
    return true;
  }
  // What it makes stays on the device like the weights that it reads, if calls read it.
  void note_constants(const ir::Node& node, const Operands& operands, const ttrt::OpRecord& record) {
    auto made = concrete_call(record, node.args(), sizes_, {.arch = out_.arch.arch});
    if (std::holds_alternative<Reason>(made)) return;
    const ttrt::BoundCall& bound = std::get<ttrt::BoundCall>(made);
    if (!is_transfer(record.role)) keep_weights(operands, bound);
    const std::vector<TensorSpec> results = bound.results();
    for (std::size_t i = 0; i < results.size() && i < node.results().size(); ++i)
      computed_.emplace(node.results()[i].get(), results[i]);
  }

  static std::int64_t circular_buffers(const ttrt::CallPrice& kernel) {
    return kernel.split.l1_bytes > 0 ? kernel.split.l1_bytes : kernel.work.l1_bytes;
  }

  void list_op(const ir::Node& node, const ttrt::BoundCall& bound, std::vector<TensorSpec> results,
               const ttrt::CallPrice* kernel) {
    NodeCost& cost = out_.ops.emplace_back();
    cost.node = &node, cost.name = ir::node_name(node), cost.op = node.op();
    cost.module = node.provenance->module_path;
    cost.operands = bound.call.tensors, cost.results = std::move(results);
    cost.transfer = kernel == nullptr;
    kernel == nullptr ? tell_transfer(cost) : tell_kernel(cost, *kernel);
  }

  void tell_transfer(NodeCost& cost) {
    const TensorSpec& spec = cost.results.empty() ? cost.operands.at(0) : cost.results[0];
    cost.time = ttrt::estimate_transfer(spec, out_.arch);
    cost.bytes = cost.padded_bytes = spec.nbytes();
    cost.useful_bytes = useful_bytes(spec);
  }

  static void tell_kernel(NodeCost& cost, const ttrt::CallPrice& price) {
    const ttrt::CoreSplit& split = price.split;
    const ttrt::Work& work = price.work;
    cost.kernel = price.kernel, cost.time = price.time;
    if (split.product) cost.program = to_string(split.product->program);
    cost.cores = split.cores, cost.split = split;
    cost.l1_bytes = circular_buffers(price);
    cost.flops = work.flops;
    cost.bytes = work.moved_bytes();
    for (const ttrt::Pages& pages : work.moved)
      if (pages.memory == ttrt::BufferType::dram) cost.dram_bytes += pages.count * pages.bytes;
    if (work.tile_products > 0) cost.fidelity = to_string(work.fidelity);
    for (const std::vector<TensorSpec>* specs : {&cost.operands, &cost.results})
      for (const TensorSpec& spec : *specs) cost.padded_bytes += spec.nbytes(), cost.useful_bytes += useful_bytes(spec);
  }

  void keep_weights(const Operands& operands, const ttrt::BoundCall& bound) {
    std::size_t operand = 0;
    for (const ir::Value* value : operands) {
      if (!value->type.is_tensor()) continue;
      if (ir::is_weight(value) && operand < bound.call.tensors.size()) dram_.keep(value, bound.call.tensors[operand]);
      ++operand;
    }
  }
  void note_lives(const ir::Node& node, const Operands& operands, const ttrt::BoundCall& bound,
                  const std::vector<TensorSpec>& results) {
    const std::size_t now = l1_bytes_.size();
    keep_weights(operands, bound);
    for (const ir::Value* value : operands) {
      if (const auto made = computed_.find(value); made != computed_.end()) dram_.keep(value, made->second);
      dram_.read(value, now);
    }
    for (std::size_t i = 0; i < results.size() && i < node.results().size(); ++i)
      dram_.make(node.results()[i].get(), results[i], now);
  }

  void count_calls() {
    for (const ir::GraphInput& input : model_.graph->inputs()) {
      if (input.kind != ir::InputKind::user || !input.value->type.is_tensor() || !input.value->type.has_shape) continue;
      std::int64_t elements = 1, first = 0;
      for (const ir::SymExpr& size : input.value->type.sizes) {
        const std::int64_t n = size.evaluate(sizes_).value_or(1);
        if (first == 0) first = n;
        elements *= n;
      }
      if (out_.samples == 0 && first > 0) out_.samples = first;
      const bool ids = input.value->type.has_dtype && !is_floating(input.value->type.dtype);
      if (ids && out_.tokens == 0 && input.value->type.rank() == 2) out_.tokens = elements;
    }
    for (const ir::GraphOutput& output : model_.graph->outputs())
      out_.keeps_state = out_.keeps_state || output.kind == ir::OutputKind::buffer_mutation;
  }

  void roll_up() {
    struct Sum {
      ModuleTime cost;
      std::array<double, ttrt::bounds> by_bound{};
    };
    std::map<std::string, Sum> sums;
    for (const NodeCost& op : out_.ops) {
      const auto bound = static_cast<std::size_t>(op.time.bound);
      out_.us += op.time.us, out_.us_by_bound[bound] += op.time.us, out_.flops += op.flops;
      if (op.transfer) out_.transfer_us += op.time.us;
      for (std::size_t end = 0;; end = op.module.find('.', end + 1)) {
        const std::string path = op.module.substr(0, end);
        Sum& sum = sums[path];
        sum.cost.path = path, sum.cost.us += op.time.us, sum.cost.flops += op.flops, ++sum.cost.ops;
        sum.cost.dram_bytes += op.dram_bytes, sum.cost.peak_us += peak_us(op, out_.arch);
        sum.cost.useful_bytes += op.useful_bytes, sum.cost.padded_bytes += op.padded_bytes;
        sum.by_bound[bound] += op.time.us;
        if (end == std::string::npos || op.module.empty()) break;
      }
    }
    for (auto& [path, sum] : sums) {
      const auto most = std::max_element(sum.by_bound.begin(), sum.by_bound.end());
      sum.cost.bound = static_cast<Bound>(most - sum.by_bound.begin());
      out_.modules.push_back(sum.cost);
    }
  }

  const ir::Model& model_;
  const ir::SymBinding sizes_;
  ttrt::KernelChooser chooser_;
  DeviceProfile out_;
  bool lists_ops_ = true;
  std::vector<std::int64_t> l1_bytes_;  // of the ops as yet
  ttrt::CallPrices prices_{out_.arch, chooser_};
  DramUse dram_{out_.arch};
  std::map<const ir::Value*, TensorSpec> computed_;  // of constants; those that calls read stay on the device
  std::set<const ir::Value*> constants_, written_, of_shapes_;
  std::set<const ir::Value*> buffers_, returned_;  // what the graph's outputs write, and the others
};

OrderedJson memory_json(const MemoryUse& use, const DeviceProfile& profile) {
  OrderedJson out{{"bytes", use.bytes}, {"peak", use.peak}, {"fits", use.fits()}};
  out["peak_at"] = profile.ops.empty() ? "" : profile.ops[use.peak_at].name;
  out["over_time"] = out["held"] = OrderedJson::array();
  for (std::size_t i = 0; i < use.over_time.size(); ++i)
    out["over_time"].push_back({{"node", profile.ops[i].name},
                                {"op", profile.ops[i].op},
                                {"module", profile.ops[i].module},
                                {"bytes", use.over_time[i]}});
  for (const Held& held : use.held)
    out["held"].push_back({{"name", held.name}, {"kind", held.kind}, {"bytes", held.bytes}});
  return out;
}

OrderedJson op_json(const NodeCost& op, const ttrt::ArchProfile& arch, double total_us) {
  OrderedJson out{{"node", op.name},
                  {"op", op.op},
                  {"module", op.module},
                  {"kernel", op.kernel},
                  {"us", op.time.us},
                  {"share", total_us > 0 ? op.time.us / total_us : 0},
                  {"cycles", op.time.cycles},
                  {"bound", to_string(op.time.bound)},
                  {"flops", op.flops},
                  {"bytes", op.bytes},
                  {"dram_bytes", op.dram_bytes},
                  {"useful_bytes", op.useful_bytes},
                  {"padded_bytes", op.padded_bytes},
                  {"cores", op.cores},
                  {"l1_bytes", op.l1_bytes}};
  if (!op.program.empty()) out["program"] = op.program;
  if (!op.fidelity.empty()) {
    out["fidelity"] = op.fidelity;
    out["utilization"] = op.time.us > 0 ? peak_us(op, arch) / op.time.us : 0;
  }
  for (std::size_t i = 0; i < ttrt::bounds; ++i)
    if (op.time.terms[i] > 0) out["terms"][std::string(to_string(static_cast<Bound>(i)))] = op.time.terms[i];
  return out;
}

}  // namespace

Bound DeviceProfile::bound() const {
  return static_cast<Bound>(std::max_element(us_by_bound.begin(), us_by_bound.end()) - us_by_bound.begin());
}

DeviceProfile profile_device(const ir::Model& model, const ttrt::ArchProfile& arch, const ir::SymBinding& shapes,
                             const std::string& dispatcher) {
  return Pricing(model, arch, shapes, dispatcher).run();
}

MemoryNeed memory_need(const ir::Model& model, const ttrt::ArchProfile& arch, const ir::SymBinding& shapes) {
  return Pricing(model, arch, shapes, {}).need();
}

OrderedJson to_json(const DeviceProfile& p) {
  OrderedJson total{{"us", p.us},
                    {"transfer_us", p.transfer_us},
                    {"bound", to_string(p.bound())},
                    {"flops", p.flops},
                    {"ops", p.ops.size()},
                    {"host_nodes", p.host_nodes},
                    {"unpriced_nodes", p.unpriced},
                    {"weight_bytes", p.weight_bytes}};
  const double device_us = p.us - p.transfer_us;
  total["device_us"] = device_us;
  total["samples_per_s"] = p.us > 0 ? static_cast<double>(p.samples) / p.us * 1e6 : 0;
  if (p.tokens > 0) total["tokens_per_s"] = p.us > 0 ? static_cast<double>(p.tokens) / p.us * 1e6 : 0;
  for (std::size_t i = 0; i < ttrt::bounds; ++i)
    if (p.us_by_bound[i] > 0) total["us_by_bound"][std::string(to_string(static_cast<Bound>(i)))] = p.us_by_bound[i];
  OrderedJson out{{"arch", p.arch.name}, {"total", total}};
  if (p.decode) out["decode"] = to_json(*p.decode);
  out["ops"] = out["modules"] = OrderedJson::array();
  for (const NodeCost& op : p.ops) out["ops"].push_back(op_json(op, p.arch, p.us));
  for (const ModuleTime& m : p.modules)
    out["modules"].push_back({{"path", m.path},
                              {"us", m.us},
                              {"share", p.us > 0 ? m.us / p.us : 0},
                              {"ops", m.ops},
                              {"flops", m.flops},
                              {"bound", to_string(m.bound)},
                              {"utilization", m.us > 0 ? m.peak_us / m.us : 0},
                              {"dram_bytes", m.dram_bytes},
                              {"useful_bytes", m.useful_bytes},
                              {"padded_bytes", m.padded_bytes}});
  out["memory"] = {{"dram", memory_json(p.dram, p)}, {"l1", memory_json(p.l1, p)}};
  return out;
}

}  // namespace ttc
