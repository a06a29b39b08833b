// Conditions of rules on what is known about a call: FIELD[_OPERATOR]: VALUE, as in batch_size_gte: 8.
#pragma once

#include <memory>
#include <regex>

#include "dispatch/context.h"
#include "dispatch/document.h"

namespace ttrt::dispatch {

enum class FieldKind : std::uint8_t { integer, fraction, boolean, text };

// A field of the selection context that conditions may name.
struct Field {
  std::string_view name;
  FieldKind kind = FieldKind::integer;
  std::int64_t (*integer)(const SelectionContext&) = nullptr;  // of integers and booleans; -1: unset
  std::string (*text)(const SelectionContext&) = nullptr;      // of texts; "": unset
  std::span<const std::string_view> words = {};                // a text must be one of these; empty: any
};
const Field* find_field(std::string_view name);  // seq_len stands for seq_len_q; nullptr for no field
std::vector<std::string> field_names();

enum class Operator : std::uint8_t { eq, ne, gt, gte, lt, lte, in, not_in, match, regex };
std::string_view to_string(Operator op);

struct Condition {
  const Field* field = nullptr;
  Operator op = Operator::eq;
  std::string field_name;       // as written: seq_len stays seq_len
  std::vector<DocNode> values;  // one; any number for in and not_in
  std::shared_ptr<const std::regex> pattern = {};

  // A field that is unset: ne and not_in hold, nothing else does.
  bool matches(const SelectionContext& context) const;
  // What it sees in the context: null where it is unset.
  Json actual(const SelectionContext& context) const;
  // {field, operator, expected, actual}
  Json explain(const SelectionContext& context) const;
};
// "batch_size_gte": the longest suffix that is an operator, none is eq. A condition without field where the rest is
// none; field_name is the rest then.
Condition parse_condition_key(std::string_view key);

}  // namespace ttrt::dispatch
