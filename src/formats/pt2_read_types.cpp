// The types of values as .pt2 files have them: tables by kind, or the entries of a part; symbolic sizes.
#include <algorithm>

#include "formats/pt2_names.h"
#include "formats/pt2_read_graph.h"
#include "ir/sym_text.h"

namespace ttc {
namespace {

using ir::Type;
using ir::TypeKind;

constexpr std::size_t max_rank = 64;

const Pt2TypeEntry* find_entry(const Pt2TypeEntries& types, std::string_view table, const std::string& name) {
  const auto found =
      std::ranges::find_if(types, [&](const auto& entry) { return entry.name == name && entry.table == table; });
  return found == types.end() ? nullptr : &*found;
}

}  // namespace

ir::SymExpr Pt2GraphReader::expression(const Json& json) {
  const std::string& text = as_string(member(json, "expr_str"));
  auto found = expressions_.find(text);
  if (found == expressions_.end())
    found = expressions_.emplace(text, ir::parse_sym(text, ir::SymSpelling::srepr)).first;
  const Json* hint = find_member(json, "hint");
  if (hint && found->second.is_symbol()) {
    const auto [tag, value] = as_union(*hint);
    if (tag == "as_int") model_.info.hints.emplace(found->second.name(), as_int(value));
  }
  return found->second;
}

ir::SymExpr Pt2GraphReader::dimension(const Json& json) {
  const auto [tag, value] = as_union(json);
  if (tag == "as_int") return ir::SymExpr(as_int(value));
  if (tag == "as_expr") return expression(value);
  throw bad_file("", "unknown kind of dimension '" + std::string(tag) + "'");
}

Type Pt2GraphReader::tensor_type(const Json& meta) {
  const Json& code = member(meta, "dtype");
  const auto dtype = dtype_from_pt2(static_cast<int>(std::clamp<std::int64_t>(as_int(code), -1, 1 << 20)));
  if (!dtype) throw bad_file("", "unknown dtype code " + code.dump());
  std::vector<ir::SymExpr> sizes;
  std::int64_t elements = 1;
  for (const Json& size : as_array(member(meta, "sizes"))) {
    sizes.push_back(dimension(size));
    if (!sizes.back().is_number()) continue;
    const std::int64_t number = sizes.back().number();
    if (number < 0 || __builtin_mul_overflow(elements, std::max<std::int64_t>(number, 1), &elements))
      throw bad_file("", "impossible sizes " + member(meta, "sizes").dump());
  }
  if (sizes.size() > max_rank) throw bad_file("", "a tensor of rank " + std::to_string(sizes.size()));
  Type type = Type::tensor(*dtype, std::move(sizes));
  if (const Json* strides = find_member(meta, "strides"))
    for (const Json& stride : as_array(*strides)) type.strides.push_back(dimension(stride));
  if (type.strides.size() != type.sizes.size()) throw bad_file("", "sizes and strides differ in number");
  return type;
}

const Json* Pt2GraphReader::find_type(const Scope& scope, const char* table, const std::string& name) {
  if (scope.types) {
    const Pt2TypeEntry* entry = find_entry(*scope.types, table, name);
    return entry ? &entry->type->json : nullptr;
  }
  const Json* values = find_member(*scope.json, table);
  return values ? find_member(*values, name.c_str()) : nullptr;
}

const Type& Pt2GraphReader::shared_type(const std::shared_ptr<const Pt2Type>& type) {
  const auto known = shared_types_.find(type);
  return known != shared_types_.end() ? known->second
                                      : shared_types_.emplace(type, tensor_type(type->json)).first->second;
}

Type Pt2GraphReader::type_of(const Scope& scope, const std::string& name, std::string_view kind) {
  const auto lookup = [&](const char* table) { return find_type(scope, table, name); };
  try {
    if (kind == "as_tensor") {
      if (scope.types)
        if (const Pt2TypeEntry* entry = find_entry(*scope.types, "tensor_values", name))
          return shared_type(entry->type);
      const Json* meta = lookup("tensor_values");
      if (!meta) throw bad_file("", "it has no entry in tensor_values");
      return tensor_type(*meta);
    }
    if (kind == "as_custom_obj") {
      Type type = Type::of(TypeKind::object);
      if (const Json* object = lookup("custom_obj_values")) type.object_class = as_string(member(*object, "class_fqn"));
      return type;
    }
    const bool integer = kind == "as_sym_int";
    Type type = integer ? Type::integer() : Type::of(kind == "as_sym_bool" ? TypeKind::boolean : TypeKind::floating);
    if (const Json* value = lookup(integer                 ? "sym_int_values"
                                   : kind == "as_sym_bool" ? "sym_bool_values"
                                                           : "sym_float_values")) {
      const auto [value_tag, content] = as_union(*value);
      if (value_tag == "as_expr") type.sym = expression(content);
      if (value_tag == "as_int") type.sym = ir::SymExpr(as_int(content));
    }
    return type;
  } catch (const Error& error) {
    throw add_context(error, "value '" + name + "'");
  }
}

}  // namespace ttc
