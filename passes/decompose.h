// Decompositions: operators written out as those they are made of. One table of rules, with a file for each part of it
// in passes/rules; a rule says which operators it writes out, and how.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common.h"

namespace ttc {

// What takes the place of a node's results, nullptr for results that nobody uses. Empty: the node is left as it is.
struct Values : std::vector<ir::Value*> {
  Values() = default;
  Values(std::initializer_list<ir::Value*> values) : std::vector<ir::Value*>(values) {}
  Values(std::vector<ir::Value*> values) : std::vector<ir::Value*>(std::move(values)) {}
  Values(ir::Value* one) {  // NOLINT: most rules give one value or none
    if (one != nullptr) push_back(one);
  }
};

// Nothing in its place, and why.
inline Values refused(Rewriter& r, Reason why) {
  r.refuse(std::move(why));
  return {};
}

struct Decomposition {
  std::vector<std::string_view> ops;
  // Emits what computes the results, or says why not (Rewriter::refuse) and gives nothing. May commit by itself.
  std::function<Values(Rewriter&, ir::Node*)> write;
  bool (*guard)(const ir::Node&) = nullptr;  // beside that of the part
  bool numbers_too = false;                  // takes numbers where the schema has tensors
};

struct RulePart {
  std::string_view name;
  bool (*guard)(const ir::Node&) = nullptr;
  bool exact_types = false;          // give up where what was emitted is not of the results' types
  std::vector<Decomposition> rules;  // tried in order
  bool empty_too = false;            // tensors without elements as well
};

// In the order of the table (decompose.cpp): a part sees what those before it wrote.
RulePart quantized_rules();
RulePart prims_rules();
RulePart check_rules();
RulePart transformer_rules();
RulePart rnn_rules();
RulePart spectrum_rules();
RulePart transform_rules();
RulePart complex_rules();
RulePart layout_rules();
RulePart function_rules();
RulePart selection_rules();
RulePart special_rules();
RulePart algebra_rules();
RulePart move_rules();
RulePart product_rules();

// Makes operators known that only Python registers, "name.overload(Tensor a) -> Tensor"; true. Their rules write them
// out when a model is read to be run (session/model_source.cpp).
bool declare_operators(std::initializer_list<std::string_view> schemas, std::string_view library);

// The calls that LibTorch, or rules/definitions.cpp, defines the node by, in a model of their own (composite_calls),
// after these passes, without what only unused results need; or why there are none.
using Defined = std::variant<std::unique_ptr<ir::Model>, Reason>;
Defined defined(const PassContext& context, const ir::Node& node, std::vector<std::string> passes);
// These calls before the node, nullptr for results that nobody uses; nothing where a type is not the node's.
Values emit_calls(Rewriter& r, const ir::Node& node, const ir::Model& calls);
// A rule's `write`: both. For operators that other passes or rules know only written out; all others that are defined
// so are left to the pass composites, which sees to it that all of it runs on the device.
Values as_defined(Rewriter& r, ir::Node* node);
// The same for complex operands too.
Values as_defined_of_any(Rewriter& r, ir::Node* node);

// Whether a rule may write this operator out.
bool has_rule(std::string_view op);
// The formula of an operator for which LibTorch has kernels only (rules/definitions.cpp), as composite_calls takes it;
// "" where there is none.
std::string definition_of(std::string_view op);

// ---- guards

// All tensors that the node reads and gives have a shape and a dtype, and there are some of both.
bool known_tensors(const ir::Node& node);
// The same, and all are of one float dtype. A rule with this guard sees operands of other dtypes cast as PyTorch does.
bool same_floats(const ir::Node& node);
bool is_empty(const ir::Value* x);        // a tensor of a size that is 0
bool has_elements(const ir::Node& node);  // no tensor of a size that is 0
bool of_reals(const ir::Node& node);      // no complex operand

// ---- literals

// A dim argument from the front; nullopt where it is no literal or no dim of that rank.
std::optional<int> dim_of(const ir::Node& node, std::string_view name, int rank);
double number_of(const ir::Node& node, std::string_view name, double absent);
bool flag_of(const ir::Node& node, std::string_view name);  // false where it is no literal
// A number, or a list of them, as a list; nullopt for others.
std::optional<std::vector<std::int64_t>> dims_of(const ir::Arg& arg);

}  // namespace ttc
