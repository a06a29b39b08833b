// The types of values as .pt2 files have them: tables by kind, symbolic sizes as expressions with an example of each.
#include <algorithm>

#include "formats/pt2_names.h"
#include "formats/pt2_write_graph.h"
#include "ir/sym_text.h"

namespace ttc {
namespace {

using ir::TypeKind;
using ir::Value;

bool is_unbacked(const std::string& symbol) {
  return symbol.starts_with("zuf") ||
         (symbol.size() > 1 && symbol[0] == 'u' && std::isdigit(static_cast<unsigned char>(symbol[1])));
}

// What types differ in that are written differently.
void append_key(std::string& key, const ir::Type& type) {
  const auto add = [&](const std::vector<ir::SymExpr>& values) {
    for (const ir::SymExpr& value : values) {
      key += value.is_number() ? std::to_string(value.number()) : value.str();
      key += ',';
    }
    key += ';';
  };
  key += type.has_dtype ? std::to_string(static_cast<int>(type.dtype)) : "?";
  key += type.has_shape ? ' ' : '*';
  add(type.sizes);
  add(type.strides);
}

}  // namespace

Json tagged(const char* tag, Json value) { return json_of(tag, std::move(value)); }

Json host_device() { return json_of("type", "cpu", "index", nullptr); }

Error Pt2GraphWriter::cannot_write(const ir::Node* node, const std::string& what) {
  return {Exit::unsupported, "",
          (node ? "node " + node->op() + ": " : std::string()) + what + " cannot be saved as .pt2",
          "save TorchScript models with -o NAME.pt, or give the shapes of all inputs"};
}

Pt2GraphWriter::Pt2GraphWriter(const ir::Model& model) : model_(model), hints_(model.info.hints) {
  // PyTorch wants an example value for each size; distinct ones, so that nothing looks equal by accident.
  std::int64_t next = 3;
  for (const auto& [symbol, range] : model.ranges) {
    if (symbol.starts_with("u") && symbol.size() > 1)
      next_unbacked_ = std::max(next_unbacked_, std::atoi(symbol.c_str() + 1) + 1);
    if (is_unbacked(symbol) || hints_.contains(symbol)) continue;
    const std::int64_t value = std::max(next++, range.min.value_or(0));
    hints_[symbol] = range.max ? std::min(value, *range.max) : value;
  }
}

std::string Pt2GraphWriter::fresh_symbol(const char* prefix) {
  std::string symbol = prefix + std::to_string(next_unbacked_++);
  symbols_.insert(symbol);
  return symbol;
}

Json Pt2GraphWriter::sym_expr(const ir::SymExpr& expr) {
  std::vector<std::string> used;
  expr.collect_symbols(used);
  symbols_.insert(used.begin(), used.end());
  const auto positive = [&](const std::string& symbol) {
    if (is_unbacked(symbol)) return false;
    const auto range = model_.ranges.find(symbol);
    return range == model_.ranges.end() || !range->second.min || *range->second.min >= 1;
  };
  const auto hint = expr.evaluate(hints_);
  return json_of("expr_str", ir::to_srepr(expr, positive), "hint", hint ? tagged("as_int", *hint) : Json());
}

Json Pt2GraphWriter::sym_int(const ir::SymExpr& expr) {
  return expr.is_number() ? tagged("as_int", expr.number()) : tagged("as_expr", sym_expr(expr));
}

std::shared_ptr<const Pt2Type> Pt2GraphWriter::tensor_type(const Value& value) {
  const ir::Weight* weight = model_.weight_of(&value);
  std::string key = weight && weight->requires_grad ? "grad " : "";
  append_key(key, value.type);
  auto& found = tensor_types_[std::move(key)];
  if (!found) found = std::make_shared<const Pt2Type>(tensor_meta(value));
  return found;
}

Json Pt2GraphWriter::tensor_meta(const Value& value) {
  const ir::Type& type = value.type;
  if (!type.has_dtype || !type.has_shape)
    throw cannot_write(value.def(), "value '" + value.name + "' of unknown shape");
  std::vector<ir::SymExpr> strides = type.strides;
  if (strides.size() != type.sizes.size()) {
    strides.assign(type.sizes.size(), ir::SymExpr(1));
    for (std::size_t i = strides.size(); i-- > 1;)
      strides[i - 1] = strides[i] * (type.sizes[i] == ir::SymExpr(0) ? ir::SymExpr(1) : type.sizes[i]);
  }
  const auto numbers = [this](const std::vector<ir::SymExpr>& values) {
    Json out = Json::array();
    auto& items = out.get_ref<Json::array_t&>();
    items.reserve(values.size());
    for (const ir::SymExpr& value : values) items.push_back(sym_int(value));
    return out;
  };
  const ir::Weight* weight = model_.weight_of(&value);
  return json_of("dtype", pt2_code(type.dtype), "sizes", numbers(type.sizes), "requires_grad",
                 weight && weight->requires_grad, "device", host_device(), "strides", numbers(strides),
                 "storage_offset", tagged("as_int", 0), "layout", 7);
}

// Gives a value its name and its entry in the table of its kind.
void Pt2GraphWriter::declare(Scope& scope, const Value& value) {
  if (value.type.kind == TypeKind::none) return;  // what an operator without results gives
  const std::string& name = names_.at(&value);
  const auto& sym = value.type.sym;
  const auto add = [&](const char* table, Json type) {
    scope.types.push_back({table, name, std::make_shared<const Pt2Type>(std::move(type))});
  };
  switch (value.type.kind) {
    case TypeKind::tensor:
      scope.types.push_back({"tensor_values", name, tensor_type(value)});
      return;
    case TypeKind::integer:
      add("sym_int_values", sym_int(sym ? *sym : ir::SymExpr::symbol(fresh_symbol("u"))));
      return;
    case TypeKind::boolean: {
      const ir::SymExpr expr = sym ? *sym : ir::SymExpr::call("Equality", {ir::SymExpr::symbol(fresh_symbol("u")), 1});
      add("sym_bool_values", tagged("as_expr", sym_expr(expr)));
      return;
    }
    case TypeKind::floating:
      add("sym_float_values", tagged("as_expr", sym_expr(sym ? *sym : ir::SymExpr::symbol(fresh_symbol("zuf")))));
      return;
    case TypeKind::object:
      add("custom_obj_values", {{"name", name}, {"class_fqn", value.type.object_class}});
      return;
    default:
      throw cannot_write(value.def(), "value '" + value.name + "' of type " + value.type.str());
  }
}

Json Pt2GraphWriter::range_constraints() {
  Json out = Json::object();
  const auto bound = [](const std::optional<std::int64_t>& value) { return value ? Json(*value) : Json(); };
  for (const auto& [symbol, range] : model_.ranges)
    out[symbol] = {{"min_val", bound(range.min)}, {"max_val", bound(range.max)}};
  for (const auto& symbol : symbols_)
    if (!out.contains(symbol)) out[symbol] = {{"min_val", is_unbacked(symbol) ? Json() : Json(0)}, {"max_val", Json()}};
  return out;
}

}  // namespace ttc
