// Conditions of rules on what is known about a call: FIELD[_OPERATOR]: VALUE, as in batch_size_gte: 8.
//
// A call's fields become numbers once, a condition is one or two comparisons of one of them: hundreds of rules are read
// in the time of one kernel's check.
#pragma once

#include <array>
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
  // Greater where the field's value is; -1: unset. Of texts the place among their words.
  std::int64_t (*number)(const SelectionContext&) = nullptr;
  std::span<const std::string_view> (*words)() = nullptr;  // a text is one of these; nullptr: any
};
inline constexpr std::size_t field_count = 20;
const Field* find_field(std::string_view name);  // seq_len stands for seq_len_q; nullptr for no field
std::vector<std::string> field_names();

// A call's fields, in the order of the table of fields.
struct FieldNumbers {
  explicit FieldNumbers(const SelectionContext& context);

  const SelectionContext& context;
  std::array<std::int64_t, field_count> number;
};

enum class Operator : std::uint8_t { eq, ne, gt, gte, lt, lte, in, not_in, match, regex };
std::string_view to_string(Operator op);

class Condition {
  // What it compares, in front because hundreds are read in a row.
  enum class Test : std::uint8_t { range, words, list, device };
  std::int64_t low_ = 0;                // range: the least value, and how far above it the greatest is
  std::uint64_t span_ = 0, words_ = 0;  // words: one bit for each that holds, the others for what is none of them
  Test test_ = Test::range;
  bool negative_ = false;   // range and list: holds for the others
  std::uint8_t index_ = 0;  // of the field

 public:
  // "batch_size_gte": the longest suffix that is an operator, none is eq. `field` is nullptr where the rest is none;
  // field_name is the rest then.
  explicit Condition(std::string_view key);

  const Field* field = nullptr;
  Operator op = Operator::eq;
  std::string field_name;            // as written: seq_len stays seq_len
  std::vector<DocNode> values = {};  // one; any number for in and not_in
  std::shared_ptr<const std::regex> pattern = {};
  // When all of the above is set and right: makes the condition ready for matches().
  void compile();

  // A field that is unset: ne and not_in hold, nothing else does.
  bool matches(const FieldNumbers& call) const {
    const std::int64_t value = call.number[index_];
    if (test_ == Test::range) return (static_cast<std::uint64_t>(value - low_) <= span_) != negative_;
    if (test_ == Test::words) return (words_ >> (value & 63)) & 1;
    return matches_slowly(call);
  }
  // {field, operator, expected, actual}; actual is null where the field is unset.
  Json explain(const SelectionContext& context) const;

 private:
  bool matches_slowly(const FieldNumbers& call) const;
  bool holds_for(const std::string& text) const;

  std::vector<std::int64_t> list_ = {};
};

}  // namespace ttrt::dispatch
