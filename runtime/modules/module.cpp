// The registry of TT modules, and what a record's fields mean.
#include "modules/module.h"

#include <algorithm>
#include <map>
#include <set>

#include "support/error.h"
#include "support/glob.h"

namespace ttrt {
namespace {

// Leaked, as the registry of op records.
std::map<std::string_view, const ModuleRecord*>& modules_by_name() {
  static auto* instance = new std::map<std::string_view, const ModuleRecord*>;
  return *instance;
}

std::string_view after_last_dot(std::string_view name) { return name.substr(name.rfind('.') + 1); }

std::string joined_names(const auto& names, std::string_view last) {
  std::string out;
  std::size_t left = names.size();
  for (const std::string_view name : names) {
    if (!out.empty()) out += left == 1 ? last : ", ";
    out += name;
    --left;
  }
  return out;
}

bool is_batch_norm(std::string_view aten) { return aten.find("batch_norm") != aten.npos; }

const ttc::ir::Node* only_reader(const ttc::ir::Node& node) {
  const ttc::ir::Value* out = node.result();
  return out->use_count() == 1 && !out->users().empty() ? out->users().front() : nullptr;
}

}  // namespace

ModuleConfig ModuleConfig::over(const ModuleConfig& preset) const {
  ModuleConfig out = *this;
  if (!out.weight) out.weight = preset.weight;
  if (!out.activation) out.activation = preset.activation;
  if (!out.fidelity) out.fidelity = preset.fidelity;
  if (!out.fp32_acc) out.fp32_acc = preset.fp32_acc;
  if (!out.fallback) out.fallback = preset.fallback;
  return out;
}

bool ModuleRecord::is_about(std::string_view aten) const {
  return std::ranges::any_of(computes, [&](std::string_view glob) { return ttc::glob_match(glob, aten); });
}

bool ModuleRecord::permits(std::string_view device_op) const {
  if (whole) return true;
  const OpRecord* op = find_op(device_op);
  return op != nullptr && std::ranges::any_of(op->lowers, [&](const Lowering& one) { return is_about(one.aten); });
}

bool ModuleRecord::takes_along(std::string_view aten) const {
  return aten == activation || (folds_batch_norm && is_batch_norm(aten));
}

ttc::Refusal ModuleRecord::refusal(const ttc::ir::Node& node) const {
  if (activation.empty() || !is_about(node.op())) return std::nullopt;
  const ttc::ir::Node* reader = only_reader(node);
  if (reader != nullptr && folds_batch_norm && is_batch_norm(reader->op())) reader = only_reader(*reader);
  if (reader != nullptr && reader->op() == activation) return std::nullopt;
  return ttc::Reason{ttc::ReasonCode::PatternNearMiss,
                     std::string(name) + " wants a layer that " + std::string(activation) + " alone reads"};
}

std::string ModuleRecord::accepts() const {
  std::set<std::string_view> aten, device;
  for (const OpRecord* op : all_ops())
    for (const Lowering& one : op->lowers)
      if (is_about(one.aten)) aten.insert(one.aten), device.insert(op->name);
  std::string out = whole ? "all within, by whatever device operators there are"
                          : joined_names(aten, " and ") + " as " + joined_names(device, " or ");
  if (!as_one.empty()) out += ", as one " + joined_names(as_one, " or ");
  if (!activation.empty()) out += ", with the " + std::string(activation) + " that alone reads it";
  if (folds_batch_norm) out += ", with the batch norm behind it folded in";
  return out;
}

bool names_class(std::string_view pattern, std::string_view klass) {
  if (ttc::glob_match(pattern, klass)) return true;
  if (!ttc::glob_match(after_last_dot(pattern), after_last_dot(klass))) return false;
  const std::string_view package = pattern.substr(0, pattern.size() - after_last_dot(pattern).size());
  return !klass.empty() && (package.empty() || klass.starts_with(package));
}

bool stands_for(const ModuleRecord& record, std::string_view klass) {
  return std::ranges::any_of(record.classes, [&](std::string_view known) { return names_class(known, klass); });
}

const ModuleRecord* find_module(std::string_view name) {
  const auto found = modules_by_name().find(name);
  return found == modules_by_name().end() ? nullptr : found->second;
}

std::vector<const ModuleRecord*> all_modules() {
  std::vector<const ModuleRecord*> out;
  for (const auto& [name, record] : modules_by_name()) out.push_back(record);
  return out;
}

void register_module(const ModuleRecord& record) {
  TTC_CHECK(modules_by_name().emplace(record.name, &record).second, "two TT modules " + std::string(record.name));
}

}  // namespace ttrt
