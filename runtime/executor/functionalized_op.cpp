// See functionalized_op.h. Layouts: torch/_higher_order_ops/auto_functionalize.py.
#include "executor/functionalized_op.h"

#include <map>

#include "executor/device_step.h"
#include "torch/scalar_ops.h"
#include "executor/signature.h"
#include "support/error.h"

namespace ttrt {
namespace {

using ttc::ir::Node;
using ttc::ir::OpSchema;

constexpr std::string_view first_form = "higher_order.auto_functionalized";
constexpr std::string_view second_form = "higher_order.auto_functionalized_v2";

// "torch.ops.ns.name.overload" as the IR spells it.
std::string inner_name(const Node& node) {
  constexpr std::string_view prefix = "torch.ops.";
  const std::string* target = node.args().empty() ? nullptr : node.arg(0).get_if<std::string>();
  if (target == nullptr) return {};
  return target->starts_with(prefix) ? target->substr(prefix.size()) : *target;
}

RtValue clone(const RtValue& value) {
  if (value.is_none()) return {};
  if (const auto* list = value.get_if<RtValue::List>()) {
    RtValue::List out;
    for (const RtValue& item : *list) out.push_back(clone(item));
    return out;
  }
  return call_torch("aten.clone.default", {value, RtValue()})[0];
}

class FunctionalizedOp : public CpuOp {
 public:
  FunctionalizedOp(const Node& node, const OpSchema& schema, const CpuOp& op) : node_(node), schema_(schema), op_(op) {}

 protected:
  void call_impl(std::span<const RtValue> args, std::vector<RtValue>& results) const override {
    Named named;
    for (std::size_t i = 1; i < args.size(); ++i) {
      if (i >= node_.arg_names.size() || node_.arg_names[i].empty())
        fail("argument " + std::to_string(i) + " has no name");
      named[node_.arg_names[i]] = &args[i];
    }
    std::vector<RtValue> written;
    std::vector<RtValue> actual = node_.op() == second_form ? from_bases(named, written) : from_copies(named, written);
    op_.call(actual, results);
    if (results.empty()) results.emplace_back();
    for (RtValue& value : written) results.push_back(std::move(value));
  }

 private:
  using Named = std::map<std::string, const RtValue*, std::less<>>;

  [[noreturn]] void fail(const std::string& what) const { throw ttc::bad_file("", node_.op() + ": " + what); }

  const RtValue* find(const Named& named, const std::string& name) const {
    const auto it = named.find(name);
    return it == named.end() ? nullptr : it->second;
  }
  const RtValue& get(const Named& named, const std::string& name) const {
    const RtValue* value = find(named, name);
    if (value == nullptr) fail("'" + name + "' is missing");
    return *value;
  }

  RtValue plain(const Named& named, const ttc::ir::SchemaArg& formal) const {
    if (const RtValue* value = find(named, formal.name)) return *value;
    if (!formal.default_value) fail("'" + formal.name + "' is missing");
    return literal_value(*formal.default_value);
  }

  std::vector<RtValue> from_copies(const Named& named, std::vector<RtValue>& written) const {
    std::vector<RtValue> actual;
    for (const auto& formal : schema_.args) {
      actual.push_back(plain(named, formal));
      if (!formal.mutated) continue;
      actual.back() = clone(actual.back());
      if (!actual.back().is_none()) written.push_back(actual.back());
    }
    return actual;
  }

  std::vector<RtValue> from_bases(const Named& named, std::vector<RtValue>& bases) const {
    const auto* given = get(named, "_all_bases").get_if<RtValue::List>();
    if (given == nullptr) fail("'_all_bases' is no list");
    for (const RtValue& base : *given) bases.push_back(clone(base));
    std::vector<RtValue> actual;
    for (const auto& formal : schema_.args) {
      const std::string prefix = "_" + formal.name;
      if (!formal.mutated) {
        actual.push_back(plain(named, formal));
      } else if (const RtValue* length = find(named, prefix + "_length")) {
        actual.push_back(length->is_none() ? RtValue() : views(named, prefix, to_integer(*length), bases));
      } else {
        actual.push_back(view(named, prefix, bases));
      }
    }
    return actual;
  }

  RtValue views(const Named& named, const std::string& prefix, std::int64_t length,
                const std::vector<RtValue>& bases) const {
    RtValue::List items;
    for (std::int64_t i = 0; i < length; ++i) items.push_back(view(named, prefix + "_" + std::to_string(i), bases));
    return items;
  }

  RtValue view(const Named& named, const std::string& prefix, const std::vector<RtValue>& bases) const {
    const RtValue& index = get(named, prefix + "_base_index");
    if (index.is_none()) return {};
    const std::int64_t i = to_integer(index);
    if (i < 0 || static_cast<std::size_t>(i) >= bases.size()) fail("there is no base " + std::to_string(i));
    const RtValue& base = bases[static_cast<std::size_t>(i)];
    if (find(named, prefix + "_slice_dim") != nullptr)
      return call_torch("aten.slice.Tensor",
                        {base, get(named, prefix + "_slice_dim"), get(named, prefix + "_slice_start"),
                         get(named, prefix + "_slice_end"), RtValue(std::int64_t{1})})[0];
    if (find(named, prefix + "_storage_offset") != nullptr)
      return call_torch("aten.as_strided.default", {base, get(named, prefix + "_size"), get(named, prefix + "_stride"),
                                                    get(named, prefix + "_storage_offset")})[0];
    return base;
  }

  const Node& node_;
  const OpSchema& schema_;  // the registry keeps it for the process
  const CpuOp& op_;
};

}  // namespace

std::shared_ptr<const CpuOp> functionalized_op(const Node& node) {
  if (node.op() != first_form && node.op() != second_form) return nullptr;
  const std::string op = inner_name(node);
  const OpSchema* schema = ttc::ir::find_schema(op);
  const CpuOp* found = CpuOp::find(op);
  if (schema == nullptr || schema->varargs || found == nullptr) return nullptr;
  return std::make_shared<FunctionalizedOp>(node, *schema, *found);
}

}  // namespace ttrt
