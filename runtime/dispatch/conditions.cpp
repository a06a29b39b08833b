// The fields and operators there are, and what a condition says of a call.
#include "dispatch/conditions.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "device/types.h"
#include "support/glob.h"

namespace ttrt::dispatch {
namespace {

using C = SelectionContext;

// Of the host and of the device.
const std::vector<std::string_view> dtype_words = [] {
  std::vector<std::string_view> out;
  for (int i = 0; i < ttc::dtype_count; ++i) out.push_back(ttc::torch_name(static_cast<DType>(i)));
  for (const DataTypeInfo& format : data_types)
    if (std::find(out.begin(), out.end(), format.name) == out.end()) out.push_back(format.name);
  return out;
}();
constexpr std::array<std::string_view, 6> platform_words{"cuda", "rocm", "cpu", "hpu", "xpu", "tt"};
constexpr std::array<std::string_view, axis_order_count> layout_words{"BSHD", "BHSD", "NHD", "HND"};

std::string format_name(std::uint8_t format) {
  return format == no_dtype ? std::string() : std::string(to_string(static_cast<DataType>(format)));
}

const std::array fields{
    Field{"batch_size", FieldKind::integer, [](const C& c) { return c.batch_size; }},
    Field{"seq_len_q", FieldKind::integer, [](const C& c) { return c.seq_len_q; }},
    Field{"seq_len_k", FieldKind::integer, [](const C& c) { return c.seq_len_k; }},
    Field{"head_dim", FieldKind::integer, [](const C& c) { return c.head_dim; }},
    Field{"num_heads", FieldKind::integer, [](const C& c) { return c.num_heads; }},
    Field{"num_kv_heads", FieldKind::integer, [](const C& c) { return c.num_kv_heads; }},
    Field{"tp_size", FieldKind::integer, [](const C& c) { return std::int64_t{c.tp_size}; }},
    Field{"pp_size", FieldKind::integer, [](const C& c) { return std::int64_t{c.pp_size}; }},
    Field{"m", FieldKind::integer, [](const C& c) { return c.m; }},
    Field{"k", FieldKind::integer, [](const C& c) { return c.k; }},
    Field{"n", FieldKind::integer, [](const C& c) { return c.n; }},
    Field{"dropout_p", FieldKind::fraction},
    Field{"is_causal", FieldKind::boolean, [](const C& c) { return std::int64_t{c.is_causal}; }},
    Field{"enable_gqa", FieldKind::boolean, [](const C& c) { return std::int64_t{c.enable_gqa}; }},
    Field{"requires_deterministic", FieldKind::boolean,
          [](const C& c) { return std::int64_t{c.requires_deterministic}; }},
    Field{
        "dtype", FieldKind::text, nullptr,
        [](const C& c) { return c.format_a != no_dtype ? format_name(c.format_a) : std::string(torch_name(c.dtype)); },
        dtype_words},
    Field{"weight_dtype", FieldKind::text, nullptr, [](const C& c) { return format_name(c.format_b); }, dtype_words},
    Field{"platform", FieldKind::text, nullptr, [](const C& c) { return std::string(to_string(c.device.platform)); },
          platform_words},
    Field{"layout", FieldKind::text, nullptr, [](const C& c) { return std::string(to_string(c.layout)); },
          layout_words},
    Field{"device", FieldKind::text, nullptr, [](const C& c) { return c.device.text(); }},
};

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

template <typename T, typename Of>
bool compares(Operator op, const T& actual, const std::vector<DocNode>& values, const Of& of) {
  const auto any = [&] {
    return std::any_of(values.begin(), values.end(), [&](const DocNode& v) { return of(v) == actual; });
  };
  switch (op) {
    case Operator::eq:
    case Operator::in:
      return any();
    case Operator::ne:
    case Operator::not_in:
      return !any();
    case Operator::gt:
      return actual > of(values[0]);
    case Operator::gte:
      return actual >= of(values[0]);
    case Operator::lt:
      return actual < of(values[0]);
    case Operator::lte:
      return actual <= of(values[0]);
    default:
      return false;
  }
}

// Booleans count as 0 and 1 where numbers are asked for.
std::int64_t integer_of(const DocNode& v) { return v.is(DocNode::Kind::boolean) ? (v.boolean ? 1 : 0) : v.integer; }
double number_of(const DocNode& v) { return v.is(DocNode::Kind::boolean) ? (v.boolean ? 1 : 0) : v.number; }

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

std::string_view to_string(Operator op) {
  for (const auto& [each, suffix] : operators)
    if (each == op) return suffix.substr(1);
  return "";
}

Condition parse_condition_key(std::string_view key) {
  Condition out{.field = find_field(key), .field_name = std::string(key), .values = {}};
  for (const auto& [op, suffix] : operators) {
    if (out.field) break;
    if (!key.ends_with(suffix)) continue;
    out.field_name = key.substr(0, key.size() - suffix.size());
    out.field = find_field(out.field_name);
    out.op = op;
    if (!out.field) break;
  }
  return out;
}

bool Condition::matches(const SelectionContext& context) const {
  const bool negative = op == Operator::ne || op == Operator::not_in;
  if (field->kind == FieldKind::fraction) return compares(op, context.dropout_p, values, number_of);
  if (field->kind != FieldKind::text) {
    const std::int64_t actual = field->integer(context);
    return actual == unset ? negative : compares(op, actual, values, integer_of);
  }
  const std::string actual = field->text(context);
  if (actual.empty()) return negative;
  if (op == Operator::match) return ttc::glob_match(values[0].text, actual);
  if (op == Operator::regex) return std::regex_search(actual, *pattern);
  if (op >= Operator::gt && op <= Operator::lte) return false;  // a text is never greater or less
  return compares(op, actual, values, [](const DocNode& v) -> const std::string& { return v.text; });
}

Json Condition::actual(const SelectionContext& context) const {
  if (field->kind == FieldKind::fraction) return context.dropout_p;
  if (field->kind == FieldKind::text) {
    const std::string text = field->text(context);
    return text.empty() ? Json() : Json(text);
  }
  const std::int64_t value = field->integer(context);
  if (field->kind == FieldKind::boolean) return value != 0;
  return value == unset ? Json() : Json(value);
}

Json Condition::explain(const SelectionContext& context) const {
  Json expected = Json::array();
  for (const DocNode& value : values) expected.push_back(Json::parse(value.canonical()));
  const bool list = op == Operator::in || op == Operator::not_in;
  return {{"field", field_name},
          {"operator", to_string(op)},
          {"expected", list ? expected : expected[0]},
          {"actual", actual(context)}};
}

}  // namespace ttrt::dispatch
