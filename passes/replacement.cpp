// The user's map, and the search among the device operators that lower a node.
#include "replacement.h"

#include <algorithm>
#include <cstring>

#include "device/buffer.h"
#include "ops/library.h"
#include "pass/call.h"
#include "pass/user_names.h"
#include "support/error.h"
#include "support/glob.h"

namespace ttc {
namespace {

template <typename T>
std::optional<T> last_match(const std::vector<std::pair<std::string, T>>& entries, const ir::Provenance& where) {
  for (auto it = entries.rbegin(); it != entries.rend(); ++it)
    if (names_path(it->first, where)) return it->second;
  return std::nullopt;
}

}  // namespace

Refusal user_refusal(const PassContext& context, const ir::Node& node, std::string_view device_op) {
  if (Refusal no = exclusion(context.options, node, device_op)) return no;
  if (context.options.replace.empty()) return std::nullopt;
  Refusal declined;
  if (find_entry(context.options.replace, node, device_op, &declined) != nullptr) return std::nullopt;
  return declined ? declined : user_excluded("no entry of the map replaces it by " + std::string(device_op));
}

Refusal joining_refusal(const PassContext& context, const ir::Node& layer, const ir::Node& node,
                        std::string_view device_op) {
  if (Refusal no = exclusion(context.options, node, device_op)) return no;
  const MapEntry* entry = nullptr;
  if (ttrt::find_op(layer.op()) != nullptr)
    entry = context.entry_for(layer, layer.op());
  else
    for (const auto& [record, lowering] : ttrt::lowerings_of(layer.op()))
      if (entry == nullptr) entry = context.entry_for(layer, record->name);
  const bool along = entry != nullptr && entry->module != nullptr && entry->module->takes_along(node.op());
  return along ? std::nullopt : user_refusal(context, node, device_op);
}

Refusal user_refusal_of(const PassContext& context, const ir::Node& node, std::string_view aten) {
  const auto found = ttrt::lowerings_of(aten);
  TTC_CHECK(!found.empty(), "no device operator lowers " + std::string(aten));
  return user_refusal(context, node, found.front().first->name);
}

namespace {

// float64 is float32 on the device, whatever the activation format.
bool computes_wide(const ir::Node& node) {
  const auto is = [](const ir::Value* value, bool (*what)(DType)) {
    return value->type.is_tensor() && value->type.has_dtype && what(value->type.dtype);
  };
  const auto wide = [](DType dtype) { return dtype == DType::f64; };
  if (node.results().empty()) return false;
  if (is(node.result(), wide)) return true;
  const auto operands = node.operands();
  return !is(node.result(), is_floating) &&
         std::any_of(operands.begin(), operands.end(), [&](const ir::Value* value) { return is(value, wide); });
}

}  // namespace

static ttrt::DataType activation_of(const PassContext& context, const MapEntry* entry) {
  const auto own = entry != nullptr ? entry->config.activation : std::nullopt;
  return own.value_or(context.options.activation);
}

ttrt::LowerOptions lower_options(const PassContext& context, const ir::Node& node, const MapEntry* entry) {
  const CompileOptions& options = context.options;
  const ir::Provenance& where = *node.provenance;
  const ttrt::ModuleConfig config = entry != nullptr ? entry->config : ttrt::ModuleConfig{};
  ttrt::LowerOptions out;
  const bool wide = computes_wide(node);
  out.activation = wide ? ttrt::DataType::float32 : activation_of(context, entry);
  const auto narrow = config.weight.value_or(ttrt::DataType::bfloat16);
  out.weight = last_match(options.weight_format, where).value_or(wide ? ttrt::DataType::float32 : narrow);
  out.fidelity = last_match(options.fidelity, where).value_or(config.fidelity);
  out.fp32_acc = last_match(options.fp32_acc, where).value_or(config.fp32_acc);
  return out;
}

namespace {

// An integer of a constant that int32, in which the device computes, cannot hold.
std::optional<std::int64_t> too_wide(const ir::Weight& weight) {
  if (weight.dtype != DType::i64 || !weight.storage || weight.storage->absent() || !weight.fits_storage())
    return std::nullopt;
  const auto [owner, data] = weight.storage->load();
  // The whole storage: a view that leaves the large one out is refused too.
  for (std::size_t at = 0; at + sizeof(std::int64_t) <= weight.storage->bytes; at += sizeof(std::int64_t)) {
    std::int64_t value = 0;
    std::memcpy(&value, data + at, sizeof value);
    if (value != static_cast<std::int32_t>(value)) return value;
  }
  return std::nullopt;
}

Refusal constant_refusal(const PassContext& context, const std::vector<ir::Arg>& args) {
  Refusal found;
  for (const ir::Arg& arg : args)
    arg.for_each_value([&](const ir::Value* value) {
      const ir::Weight* weight = context.model.weight_of(value);
      if (const auto wide = weight && !found ? too_wide(*weight) : std::nullopt)
        found = Reason{ReasonCode::DtypeUnsupported,
                       value->name + " holds " + std::to_string(*wide) + ", which does not fit int32"};
    });
  return found;
}

// The call, where a kernel serves it.
std::variant<ttrt::BoundCall, Reason> served_call(const PassContext& context, const ttrt::OpRecord& record,
                                                  const std::vector<ir::Arg>& args, const MapEntry* entry) {
  if (Refusal refused = constant_refusal(context, args)) return *std::move(refused);
  auto call = concrete_call(record, args, context.shapes,
                            {.activation = activation_of(context, entry), .arch = context.options.profile.arch});
  if (const auto* bound = std::get_if<ttrt::BoundCall>(&call)) {
    if (Refusal refused = bound->refusal()) return *std::move(refused);
    if (Refusal refused = ttrt::check_dram(context.options.profile, record.name, bound->call.tensors, bound->results()))
      return *std::move(refused);
  }
  return call;
}

}  // namespace

Refusal call_refusal(const PassContext& context, const ttrt::OpRecord& record, const std::vector<ir::Arg>& args) {
  const auto call = served_call(context, record, args, nullptr);
  const Reason* reason = std::get_if<Reason>(&call);
  return reason == nullptr ? std::nullopt : Refusal(*reason);
}

Refusal settle_call(const PassContext& context, const ir::Node& node, const ttrt::OpRecord& record,
                    std::vector<ir::Arg>& args) {
  if (Refusal refused = user_refusal(context, node, record.name)) return refused;
  const MapEntry* entry = context.entry_for(node, record.name);
  ttrt::ops::ask_configuration(record, lower_options(context, node, entry), args);
  const auto call = served_call(context, record, args, entry);
  if (const Reason* reason = std::get_if<Reason>(&call)) return *reason;
  ttrt::ops::write_configuration(std::get<ttrt::BoundCall>(call).call, args);
  return std::nullopt;
}

namespace {

// Which results of the node the operator gives; a Reason where another one is used.
std::variant<std::vector<int>, Reason> match_results(const ir::Node& node, const ttrt::Lowered& lowered) {
  for (const auto& result : node.results())
    if (result->type.kind == ir::TypeKind::list)
      return Reason{ReasonCode::Unsupported, "its result is a list whose length is not known"};
  std::vector<int> results = lowered.results;
  if (results.empty())
    for (std::size_t i = 0; i < node.results().size(); ++i) results.push_back(static_cast<int>(i));
  for (std::size_t i = 0; i < node.results().size(); ++i)
    if (std::find(results.begin(), results.end(), static_cast<int>(i)) == results.end() && node.result(i)->has_uses())
      return Reason{ReasonCode::MultiUse,
                    "result " + std::to_string(i) + " is used, which the device operator does not give"};
  return results;
}

}  // namespace

std::variant<Replacement, Reason> find_replacement(const PassContext& context, const WrittenMemory& written,
                                                   const ir::Node& node) {
  const auto lowerings = ttrt::lowerings_of(node.op());
  if (lowerings.empty()) {
    const std::string why(ttrt::host_reason(node.op()));
    return Reason{ReasonCode::Unimplemented, "no device kernel for " + node.op() + (why.empty() ? "" : ": " + why)};
  }
  if (written.gives(node))
    return Reason{ReasonCode::Unsupported, "its memory, or that which it views, is written in place on the host"};
  std::optional<Reason> first;
  for (const auto& [record, lowering] : lowerings) {
    const auto refuse = [&](Reason reason) {
      // That a weight is computed is no reason where another operator takes computed ones.
      if (!first || first->code == ReasonCode::NonConstantWeight) first = std::move(reason);
    };
    if (const Refusal no = user_refusal(context, node, record->name)) {
      refuse(*no);
      continue;
    }
    const MapEntry* entry = context.entry_for(node, record->name);
    const ttrt::LowerOptions options = lower_options(context, node, entry);
    ttrt::LowerResult result = ttrt::ops::lower_node(*record, *lowering, {.node = node, .options = options});
    if (const Reason* reason = std::get_if<Reason>(&result)) {
      refuse(*reason);
      continue;
    }
    auto& lowered = std::get<ttrt::Lowered>(result);
    auto results = match_results(node, lowered);
    if (const Reason* reason = std::get_if<Reason>(&results)) {
      refuse(*reason);
      continue;
    }
    auto call = served_call(context, *record, lowered.args, entry);
    if (Reason* reason = std::get_if<Reason>(&call)) {
      refuse(std::move(*reason));
      continue;
    }
    ttrt::ops::write_configuration(std::get<ttrt::BoundCall>(call).call, lowered.args);
    return Replacement{.record = record,
                       .args = std::move(lowered.args),
                       .results = std::get<std::vector<int>>(results),
                       .entry = entry};
  }
  return *first;
}

ir::Node* replace_node(PassContext& context, std::string_view pass, ir::Node* node, Replacement replacement) {
  ir::Node* made = Rewriter(context, pass, node)
                       .commit_as(std::string(replacement.record->name), std::move(replacement.args),
                                  {.results = std::move(replacement.results)});
  if (made != nullptr && replacement.entry != nullptr) context.taken[node_name(*made)] = replacement.entry;
  return made;
}

}  // namespace ttc
