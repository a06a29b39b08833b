// The registry of op records, and access to the arguments of a concrete call by schema name.
#include "ops/op.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <ranges>
#include <set>
#include <unordered_map>

#include "device/parallel.h"
#include "ir/op_schema.h"
#include "ops/core_split.h"
#include "ops/plugin.h"
#include "support/error.h"

namespace ttrt {
namespace {

struct Registry {
  std::unordered_map<std::string_view, const OpRecord*> by_name;
  std::unordered_map<const OpRecord*, const ttc::ir::OpSchema*> schemas;
  std::vector<const OpRecord*> sorted;
  std::unordered_map<std::string_view, std::vector<std::pair<const OpRecord*, const Lowering*>>> by_aten;
  std::vector<void (*)(const OpRecord&)> watchers;
  std::map<Role, const OpRecord*> by_role;
  std::map<std::string_view, const OpFamily*> families;      // by name, "fft_*" too
  std::map<std::string_view, const OpFamily*> family_globs;  // the latter without the star
  std::set<const OpRecord*> latest;                          // registered since a plug-in was opened last
};

// Leaked: records register and unregister never, whatever the order in which libraries are torn down.
Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

// "aten.linalg_vector_norm.default" is of the family "linalg_vector_norm", or else of the longest "lin*" that fits.
const OpFamily* family_of(std::string_view op) {
  constexpr std::string_view prefix = "aten.";
  if (!op.starts_with(prefix)) return nullptr;
  op.remove_prefix(prefix.size());
  const std::string_view name = op.substr(0, op.find('.'));
  const auto& families = registry().families;
  if (const auto exact = families.find(name); exact != families.end()) return exact->second;
  // Of the globs that fit the longest comes last, as each begins with those before it.
  const OpFamily* found = nullptr;
  for (const auto& [glob, family] : registry().family_globs)
    if (name.starts_with(glob)) found = family;
  return found;
}

int schema_index(const OpCall& call, std::string_view name) {
  TTC_CHECK(call.op != nullptr, "a call without its record");
  return schema_of(*call.op).index_of(name);
}

[[noreturn]] void wrong_kind(const OpCall& call, std::string_view name, std::string_view wanted) {
  throw ttc::usage_error(std::string(call.op->name) + ": argument '" + std::string(name) + "' is not " +
                         std::string(wanted));
}

// A text whose words nobody states would be taken as it comes.
void check_words(const OpRecord& record, const ttc::ir::SchemaArg& arg) {
  if (!arg.type.starts_with("str") || arg.name == "fidelity" || arg.name.ends_with("format")) return;
  TTC_CHECK(
      std::any_of(record.words.begin(), record.words.end(), [&](const Words& w) { return w.literal == arg.name; }),
      "which words are '" + arg.name + "'? " + std::string(record.name));
}

}  // namespace

Kernel::Kernel(Parts of) : parts(std::make_shared<const Parts>(std::move(of))) {
  static_cast<std::function<void(const KernelArgs&)>&>(*this) = [all = parts](const KernelArgs& args) {
    parallel_ranges(all->count, all->count >= all->worth,
                    [&](std::int64_t first, std::int64_t last) { all->run(args, first, last); });
  };
}

const OpRecord* find_op(std::string_view name) {
  const auto& by_name = registry().by_name;
  const auto it = by_name.find(name);
  return it == by_name.end() ? nullptr : it->second;
}

const ttc::ir::OpSchema& schema_of(const OpRecord& record) {
  const auto& schemas = registry().schemas;
  const auto it = schemas.find(&record);
  TTC_CHECK(it != schemas.end(), "no schema for " + std::string(record.name));
  return *it->second;
}

Role role_of(std::string_view name) {
  const OpRecord* record = find_op(name);
  return record == nullptr ? Role::none : record->role;
}

const OpRecord& op_for(Role role) {
  const auto found = registry().by_role.find(role);
  TTC_CHECK(found != registry().by_role.end(), "no op for a role");
  return *found->second;
}

std::span<const OpRecord* const> all_ops() { return registry().sorted; }

std::vector<std::pair<const OpRecord*, const Lowering*>> lowerings_of(std::string_view aten) {
  const auto& by_aten = registry().by_aten;
  const auto it = by_aten.find(aten);
  if (it == by_aten.end()) return {};
  return it->second;
}

void register_op(const OpRecord& record) {
  Registry& r = registry();
  TTC_CHECK(r.by_name.emplace(record.name, &record).second, "op registered twice: " + std::string(record.name));
  TTC_CHECK(record.prepare == nullptr || (record.infer != nullptr && record.work != nullptr),
            "an op with a kernel has `infer` and `work`: " + std::string(record.name));
  for (const Operand& operand : record.operands)
    TTC_CHECK(operand.kind != OperandKind::packed, "`packed` says what is: " + std::string(record.name));
  const auto by_record_name = [](const OpRecord* a, const OpRecord* b) { return a->name < b->name; };
  r.latest.insert(&record);
  r.sorted.insert(std::upper_bound(r.sorted.begin(), r.sorted.end(), &record, by_record_name), &record);
  for (const Lowering& lowering : record.lowers) {
    auto& entries = r.by_aten[lowering.aten];
    const auto older =
        std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return !r.latest.contains(e.first); });
    entries.emplace(std::upper_bound(entries.begin(), older, &record,
                                     [&](const OpRecord* a, const auto& b) { return by_record_name(a, b.first); }),
                    &record, &lowering);
  }
  TTC_CHECK(record.role == Role::none || r.by_role.emplace(record.role, &record).second,
            "another op does the same: " + std::string(record.name));
  ttc::ir::OpSchema schema = ttc::ir::parse_schema(record.schema, std::string(record.name));
  for (const ttc::ir::SchemaArg& arg : schema.args) check_words(record, arg);
  schema.transfer = is_transfer(record.role);
  r.schemas[&record] = ttc::ir::register_schema(std::move(schema));
  for (const auto watcher : r.watchers) watcher(record);
}

namespace {

std::vector<std::string>& opened_plugins() {
  static std::vector<std::string> paths;
  return paths;
}

}  // namespace

std::vector<std::string> open_plugins() { return opened_plugins(); }

std::string open_plugin(const std::string& path, void** library) {
  registry().latest.clear();
  void* const opened = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) *library = opened;
  if (opened != nullptr) {
    std::error_code error;
    const std::filesystem::path whole = std::filesystem::absolute(path, error);
    opened_plugins().push_back(error ? path : whole.lexically_normal().string());
    return {};
  }
  const char* const why = dlerror();
  return why != nullptr ? why : path + ": cannot be loaded";
}

void register_family(const OpFamily& family) {
  for (const auto one : std::views::split(family.names, ' ')) {
    const std::string_view name(one.begin(), one.end());
    TTC_CHECK(registry().families.emplace(name, &family).second, "two families of aten." + std::string(name));
    if (name.ends_with('*')) registry().family_globs.emplace(name.substr(0, name.size() - 1), &family);
  }
}

std::vector<const OpFamily*> all_families() {
  std::vector<const OpFamily*> out;
  for (const auto& [name, family] : registry().families)
    if (std::find(out.begin(), out.end(), family) == out.end()) out.push_back(family);
  return out;
}

std::string_view host_reason(std::string_view aten) {
  const OpFamily* family = family_of(aten);
  return family == nullptr ? std::string_view() : family->reason;
}

double flops_of(const ttc::ir::Node& node, const ttc::ir::SymBinding& shapes) {
  if (node.results().empty()) return 0;
  for (const auto& [record, lowering] : lowerings_of(node.op()))
    if (lowering->flops != nullptr) return lowering->flops(node, shapes);
  const OpFamily* family = family_of(node.op());
  return family != nullptr && family->flops != nullptr ? family->flops(node, shapes) : 0;
}

CoreSplit core_split(const Work& work, const ArchProfile& profile, const KernelVariant* variant,
                     const VariantQuery& sizes) {
  const bool shared = variant != nullptr && variant->split != nullptr;
  return shared ? variant->split(sizes) : even_split(work.pieces, profile);
}

Time device_time(const OpCall& call, const ArchProfile& profile, const KernelVariant* variant,
                 const VariantQuery& sizes) {
  Work work = call.op->work(call);
  if (variant != nullptr && variant->more != nullptr) variant->more(sizes, work);
  return estimate(work, profile, core_split(work, profile, variant, sizes));
}

void watch_ops(void (*f)(const OpRecord&)) {
  for (const OpRecord* record : registry().sorted) f(*record);
  registry().watchers.push_back(f);
}

const OpArg& OpCall::arg(std::string_view name) const {
  static const OpArg none;
  const int i = schema_index(*this, name);
  TTC_CHECK(i >= 0, std::string(op->name) + " has no argument " + std::string(name));
  return static_cast<std::size_t>(i) < args.size() ? args[static_cast<std::size_t>(i)] : none;
}

bool OpCall::has(std::string_view name) const { return !std::holds_alternative<std::monostate>(arg(name)); }

const TensorSpec* OpCall::tensor(std::string_view name) const {
  const int i = tensor_index(name);
  return i < 0 ? nullptr : &tensors.at(static_cast<std::size_t>(i));
}

int OpCall::tensor_index(std::string_view name) const {
  const OpArg& value = arg(name);
  if (std::holds_alternative<std::monostate>(value)) return -1;
  const auto* ref = std::get_if<TensorRef>(&value);
  if (ref == nullptr) wrong_kind(*this, name, "a tensor");
  return ref->index;
}

std::int64_t OpCall::integer(std::string_view name) const {
  const OpArg& value = arg(name);
  if (const auto* i = std::get_if<std::int64_t>(&value)) return *i;
  if (const auto* b = std::get_if<bool>(&value)) return *b ? 1 : 0;
  wrong_kind(*this, name, "an integer");
}

double OpCall::number(std::string_view name) const {
  const OpArg& value = arg(name);
  if (const auto* d = std::get_if<double>(&value)) return *d;
  if (const auto* i = std::get_if<std::int64_t>(&value)) return static_cast<double>(*i);
  if (const auto* b = std::get_if<bool>(&value)) return *b ? 1 : 0;
  wrong_kind(*this, name, "a number");
}

bool OpCall::boolean(std::string_view name) const {
  const OpArg& value = arg(name);
  if (const auto* b = std::get_if<bool>(&value)) return *b;
  if (const auto* i = std::get_if<std::int64_t>(&value)) return *i != 0;
  wrong_kind(*this, name, "a bool");
}

const std::string& OpCall::string(std::string_view name) const {
  static const std::string none;
  const OpArg& value = arg(name);
  if (std::holds_alternative<std::monostate>(value)) return none;
  const auto* s = std::get_if<std::string>(&value);
  if (s == nullptr) wrong_kind(*this, name, "a string");
  return *s;
}

std::vector<std::int64_t> OpCall::integers(std::string_view name) const {
  const OpArg& value = arg(name);
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) return *list;
  if (const auto* i = std::get_if<std::int64_t>(&value)) return {*i};
  // An empty list may arrive as a list of any element type.
  if (const auto* none = std::get_if<std::vector<double>>(&value); none != nullptr && none->empty()) return {};
  if (const auto* none = std::get_if<std::vector<TensorRef>>(&value); none != nullptr && none->empty()) return {};
  wrong_kind(*this, name, "a list of integers");
}

ComputeConfig OpCall::compute_config() const {
  ComputeConfig config;
  if (schema_index(*this, "fidelity") >= 0) {
    const auto fidelity = math_fidelity_from_string(string("fidelity"));
    if (!fidelity) wrong_kind(*this, "fidelity", "one of LoFi, HiFi2, HiFi3, HiFi4");
    config.math_fidelity = *fidelity;
  }
  if (schema_index(*this, "fp32_acc") >= 0) config.fp32_dest_acc_en = boolean("fp32_acc");
  if (schema_index(*this, "approx") >= 0) config.math_approx_mode = boolean("approx");
  if (schema_index(*this, "packer_l1_acc") >= 0) config.packer_l1_acc = boolean("packer_l1_acc");
  return config;
}

HostTensor packed_values(const HostTensor& matrix, const Packed& packed, const TensorSpec& spec) {
  if (!packed.multiplied || spec.dtype != DataType::float32) return matrix;
  const HostTensor from = contiguous(convert(matrix, DType::f32));
  HostTensor to = empty_host(DType::f32, from.sizes);
  const auto* bits = from.as<std::uint32_t>();
  auto* rounded = to.as<std::uint32_t>();
  constexpr std::uint32_t cut = (1U << 14) - 1;
  for (std::int64_t i = 0; i < from.numel(); ++i) {
    const std::uint32_t up = (bits[i] + cut / 2 + (bits[i] >> 14 & 1)) & ~cut;
    const bool finite = (up & 0x7F800000) != 0x7F800000;
    rounded[i] = finite ? up : bits[i];
  }
  return to;
}

}  // namespace ttrt
