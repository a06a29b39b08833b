// The fields and operators there are, and what a condition says of a call.
#include "dispatch/conditions.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <nlohmann/json.hpp>

#include "device/types.h"
#include "support/glob.h"

namespace ttrt::dispatch {
namespace {

using C = SelectionContext;
using Words = std::span<const std::string_view>;

constexpr std::size_t unset_word = 63;  // where the number -1 falls in a mask

// Of the host, then those of the device that have a name of their own.
const std::vector<std::string_view>& dtype_words() {
  static const auto words = [] {
    std::vector<std::string_view> out;
    for (int i = 0; i < ttc::dtype_count; ++i) out.push_back(ttc::torch_name(static_cast<DType>(i)));
    for (const DataTypeInfo& format : data_types)
      if (std::find(out.begin(), out.end(), format.name) == out.end()) out.push_back(format.name);
    TTC_CHECK(out.size() <= unset_word, "a mask has a bit for each word");
    return out;
  }();
  return words;
}

// The words of the device's formats.
const std::array<std::int64_t, std::size(data_types)> format_words = [] {
  std::array<std::int64_t, std::size(data_types)> out{};
  for (const DataTypeInfo& format : data_types)
    out[static_cast<std::size_t>(format.type)] =
        std::find(dtype_words().begin(), dtype_words().end(), format.name) - dtype_words().begin();
  return out;
}();
std::int64_t format_word(std::uint8_t format) { return format == no_dtype ? unset : format_words[format]; }

Words words_of_dtypes() { return dtype_words(); }
// Those that documents may name.
Words words_of_platforms() { return Words(platform_names).first(static_cast<std::size_t>(Platform::tpu)); }
Words words_of_layouts() { return axis_order_names; }

// Fractions are not negative: their bits are ordered as they are.
std::int64_t number_of(double fraction) { return fraction >= 0 ? std::bit_cast<std::int64_t>(fraction + 0.0) : unset; }

constexpr std::array<Field, field_count> fields{{
    {"batch_size", FieldKind::integer, [](const C& c) { return c.batch_size; }},
    {"seq_len_q", FieldKind::integer, [](const C& c) { return c.seq_len_q; }},
    {"seq_len_k", FieldKind::integer, [](const C& c) { return c.seq_len_k; }},
    {"head_dim", FieldKind::integer, [](const C& c) { return c.head_dim; }},
    {"num_heads", FieldKind::integer, [](const C& c) { return c.num_heads; }},
    {"num_kv_heads", FieldKind::integer, [](const C& c) { return c.num_kv_heads; }},
    {"tp_size", FieldKind::integer, [](const C& c) { return std::int64_t{c.tp_size}; }},
    {"pp_size", FieldKind::integer, [](const C& c) { return std::int64_t{c.pp_size}; }},
    {"m", FieldKind::integer, [](const C& c) { return c.m; }},
    {"k", FieldKind::integer, [](const C& c) { return c.k; }},
    {"n", FieldKind::integer, [](const C& c) { return c.n; }},
    {"dropout_p", FieldKind::fraction, [](const C& c) { return number_of(c.dropout_p); }},
    {"is_causal", FieldKind::boolean, [](const C& c) { return std::int64_t{c.is_causal}; }},
    {"enable_gqa", FieldKind::boolean, [](const C& c) { return std::int64_t{c.enable_gqa}; }},
    {"requires_deterministic", FieldKind::boolean, [](const C& c) { return std::int64_t{c.requires_deterministic}; }},
    {"dtype", FieldKind::text,
     [](const C& c) { return c.format_a != no_dtype ? format_word(c.format_a) : static_cast<std::int64_t>(c.dtype); },
     words_of_dtypes},
    {"weight_dtype", FieldKind::text, [](const C& c) { return format_word(c.format_b); }, words_of_dtypes},
    {"platform", FieldKind::text, [](const C& c) { return static_cast<std::int64_t>(c.device.platform); },
     words_of_platforms},
    {"layout", FieldKind::text, [](const C& c) { return static_cast<std::int64_t>(c.layout); }, words_of_layouts},
    {"device", FieldKind::text, [](const C&) { return std::int64_t{0}; }},
}};

// Longest first: _not_in before _in.
constexpr std::array<std::pair<Operator, std::string_view>, 10> operators{{{Operator::not_in, "_not_in"},
                                                                           {Operator::match, "_match"},
                                                                           {Operator::regex, "_regex"},
                                                                           {Operator::gte, "_gte"},
                                                                           {Operator::lte, "_lte"},
                                                                           {Operator::in, "_in"},
                                                                           {Operator::eq, "_eq"},
                                                                           {Operator::ne, "_ne"},
                                                                           {Operator::gt, "_gt"},
                                                                           {Operator::lt, "_lt"}}};

// A value of a document as its field's number. Booleans count as 0 and 1 where numbers are asked for.
std::int64_t number_of(const DocNode& value, FieldKind kind) {
  const bool boolean = value.is(DocNode::Kind::boolean);
  if (kind == FieldKind::fraction) return number_of(boolean ? (value.boolean ? 1.0 : 0.0) : value.number);
  return boolean ? std::int64_t{value.boolean} : value.integer;
}

template <std::size_t... I>
std::array<std::int64_t, field_count> numbers_of(const C& context, std::index_sequence<I...> /*fields*/) {
  return {fields[I].number(context)...};
}

}  // namespace

const Field* find_field(std::string_view name) {
  if (name == "seq_len") name = "seq_len_q";
  const auto* const found = std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return f.name == name; });
  return found == fields.end() ? nullptr : found;
}

std::vector<std::string> field_names() {
  std::vector<std::string> out{"seq_len"};
  for (const Field& field : fields) out.emplace_back(field.name);
  return out;
}

FieldNumbers::FieldNumbers(const SelectionContext& c)
    : context(c), number(numbers_of(c, std::make_index_sequence<field_count>())) {}

std::string_view to_string(Operator op) {
  for (const auto& [each, suffix] : operators)
    if (each == op) return suffix.substr(1);
  return "";
}

Condition::Condition(std::string_view key) : field(find_field(key)), field_name(key) {
  for (const auto& [each, suffix] : operators) {
    if (field) return;
    if (!key.ends_with(suffix)) continue;
    field_name = key.substr(0, key.size() - suffix.size());
    field = find_field(field_name);
    op = each;
    if (!field) return;
  }
}

// ---- holding -------------------------------------------------------------------------------------------------------

void Condition::compile() {
  index_ = static_cast<std::uint8_t>(field - fields.data());
  negative_ = op == Operator::ne || op == Operator::not_in;
  if (field->kind == FieldKind::text) {
    test_ = field->words ? Test::words : Test::device;
    words_ = negative_ ? ~std::uint64_t{0} : 0;  // unset, or none of the words
    for (std::size_t i = 0; field->words && i < field->words().size(); ++i)
      if (holds_for(std::string(field->words()[i])) != negative_) words_ ^= std::uint64_t{1} << i;
    return;
  }
  for (const DocNode& value : values) list_.push_back(number_of(value, field->kind));
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const std::int64_t value = list_.empty() ? 0 : list_[0];
  const bool none = (op == Operator::gt && value == most) || (op == Operator::lt && value == 0);
  test_ = op == Operator::in || op == Operator::not_in || none ? Test::list : Test::range;
  if (none) list_.clear();
  const bool upwards = op == Operator::gt || op == Operator::gte, downwards = op == Operator::lt || op == Operator::lte;
  low_ = downwards ? 0 : op == Operator::gt && !none ? value + 1 : value;
  const std::int64_t high = upwards ? most : op == Operator::lt ? value - 1 : value;
  span_ = static_cast<std::uint64_t>(high - low_);
}

bool Condition::matches_slowly(const FieldNumbers& call) const {
  if (test_ == Test::device) return holds_for(call.context.device.text());
  return (std::find(list_.begin(), list_.end(), call.number[index_]) != list_.end()) != negative_;
}

// Of texts, which are never greater or less than another.
bool Condition::holds_for(const std::string& text) const {
  if (op == Operator::match) return ttc::glob_match(values[0].text, text);
  if (op == Operator::regex) return std::regex_search(text, *pattern);
  if (op >= Operator::gt && op <= Operator::lte) return false;
  return std::any_of(values.begin(), values.end(), [&](const DocNode& v) { return v.text == text; }) != negative_;
}

Json Condition::explain(const SelectionContext& context) const {
  Json expected = Json::array(), actual;
  for (const DocNode& value : values) expected.push_back(Json::parse(value.canonical()));
  const std::int64_t number = field->number(context);
  if (field->kind == FieldKind::fraction)
    actual = context.dropout_p;
  else if (field->kind == FieldKind::boolean)
    actual = number != 0;
  else if (field->words)
    actual = static_cast<std::size_t>(number) < field->words().size()
                 ? Json(field->words()[static_cast<std::size_t>(number)])
                 : Json();
  else if (field->kind == FieldKind::text)
    actual = context.device.text();
  else if (number != unset)
    actual = number;
  const bool list = op == Operator::in || op == Operator::not_in;
  return {{"field", field_name},
          {"operator", to_string(op)},
          {"expected", list ? expected : expected[0]},
          {"actual", actual}};
}

}  // namespace ttrt::dispatch
