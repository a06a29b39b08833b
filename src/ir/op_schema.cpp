// See op_schema.h. The grammar is that of LibTorch's schema strings: types with [] [N] and ?, alias annotations in
// parentheses, "*" before keyword-only arguments, defaults in Python spelling, "..." for varargs.
#include "ir/op_schema.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "ir/op_name.h"
#include "support/error.h"

namespace ttc::ir {
namespace {

constexpr std::size_t max_list_default = 64;

class SchemaParser {
 public:
  SchemaParser(std::string_view text, std::string op) : text_(text), op_(std::move(op)) {}

  OpSchema parse() {
    OpSchema schema;
    skip();
    const std::size_t open = text_.find('(', at_);
    if (open == std::string_view::npos) fail("'('");
    std::string_view name = text_.substr(at_, open - at_);
    while (!name.empty() && name.back() == ' ') name.remove_suffix(1);
    schema.op = name.empty() ? op_ : ir_op_name(name);
    at_ = open;
    arguments(schema);
    expect("->");
    returns(schema);
    skip();
    if (at_ != text_.size()) fail("the end");
    return schema;
  }

 private:
  [[noreturn]] void fail(const char* wanted) const {
    throw Error(Exit::bad_file, "",
                "malformed operator schema '" + std::string(text_.substr(0, 300)) + "': expected " + wanted +
                    " at position " + std::to_string(at_));
  }
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool accept(std::string_view token) {
    skip();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  void expect(const char* token) {
    if (!accept(token)) fail(token);
  }
  bool peek(char c) {
    skip();
    return at_ < text_.size() && text_[at_] == c;
  }
  std::string word(const char* wanted = "a name") {
    skip();
    const std::size_t from = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || std::strchr("_.", text_[at_]) != nullptr))
      ++at_;
    if (from == at_) fail(wanted);
    return std::string(text_.substr(from, at_ - from));
  }

  struct ParsedType {
    std::string text;
    bool alias = false, write = false;
    std::optional<std::size_t> list_size;
  };

  // "(a!)", "(a -> *)", "(a|b)" after a type name: never confused with Dict(...) or a tuple, whose content is types.
  void annotation(ParsedType& type) {
    const std::size_t close = text_.find(')', at_);
    if (close == std::string_view::npos) fail("')'");
    type.alias = true;
    type.write = type.write || text_.substr(at_, close - at_).find('!') != std::string_view::npos;
    at_ = close + 1;
  }

  ParsedType type(int depth = 0) {
    if (depth > 16) fail("a simpler type");
    ParsedType out;
    if (peek('(')) {
      out.text = tuple_type(depth);
    } else {
      out.text = word("a type");
      if (peek('(')) {
        if (out.text == "Dict" || out.text == "Future" || out.text == "Await" || out.text == "RRef" ||
            out.text == "Union")
          out.text += tuple_type(depth);
        else
          annotation(out);
      }
    }
    while (true) {
      if (accept("?")) {
        out.text += "?";
      } else if (accept("[")) {
        if (!peek(']')) out.list_size = count();
        expect("]");
        out.text += "[]";
      } else if (peek('(')) {
        annotation(out);
      } else {
        return out;
      }
    }
  }

  std::string tuple_type(int depth) {
    expect("(");
    std::string out;
    while (!peek(')')) {
      out += (out.empty() ? "" : ", ") + type(depth + 1).text;
      if (!accept(",")) break;
    }
    expect(")");
    return "(" + out + ")";
  }

  std::size_t count() {
    const std::string digits = word("a list size");
    std::size_t n = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
    if (error != std::errc() || *end != 0 || n > max_list_default) fail("a list size");
    return n;
  }

  void arguments(OpSchema& schema) {
    expect("(");
    bool kwarg_only = false;
    while (!peek(')')) {
      if (accept("...")) {
        schema.varargs = true;
      } else if (accept("*")) {
        kwarg_only = true;
      } else {
        argument(schema, kwarg_only);
      }
      if (!accept(",")) break;
    }
    expect(")");
  }

  void argument(OpSchema& schema, bool kwarg_only) {
    const ParsedType parsed = type();
    SchemaArg arg;
    arg.type = parsed.text;
    arg.mutated = parsed.write;
    arg.kwarg_only = kwarg_only;
    arg.name = word();
    if (accept("=")) {
      Arg value = literal(parsed.text);
      const bool list_type = parsed.text.find("[]") != std::string::npos;
      if (list_type && parsed.list_size && !value.is_none() && !value.list())
        value = Arg::List(*parsed.list_size, value);
      arg.default_value = std::move(value);
    }
    schema.args.push_back(std::move(arg));
  }

  Arg literal(const std::string& type, int depth = 0) {
    if (depth > 8) fail("a simpler default");
    if (accept("[")) {
      Arg::List items;
      while (!peek(']')) {
        items.push_back(literal(type, depth + 1));
        if (!accept(",") || items.size() > max_list_default) break;
      }
      expect("]");
      return items;
    }
    for (const char quote : {'\'', '"'}) {
      if (!peek(quote)) continue;
      const std::size_t close = text_.find(quote, at_ + 1);
      if (close == std::string_view::npos) fail("a closing quote");
      std::string value(text_.substr(at_ + 1, close - at_ - 1));
      at_ = close + 1;
      if (type.starts_with("Device")) return DeviceArg{value, {}};
      return value;
    }
    skip();
    const std::size_t from = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || std::strchr("_.+-", text_[at_]) != nullptr))
      ++at_;
    if (from == at_) fail("a default value");
    return named_or_number(std::string(text_.substr(from, at_ - from)), type);
  }

  Arg named_or_number(const std::string& text, const std::string& type) {
    static const std::map<std::string, Arg, std::less<>> names = {{"None", Arg()},
                                                                  {"True", true},
                                                                  {"False", false},
                                                                  {"contiguous_format", MemoryFormatArg{1}},
                                                                  {"preserve_format", MemoryFormatArg{4}},
                                                                  {"channels_last", MemoryFormatArg{2}},
                                                                  {"strided", LayoutArg{7}},
                                                                  {"Mean", 1},
                                                                  {"Sum", 2},
                                                                  {"long", DType::i64},
                                                                  {"float", DType::f32}};
    if (const auto it = names.find(text); it != names.end()) return it->second;
    const char *begin = text.data(), *end = begin + text.size();
    std::int64_t integer = 0;
    if (const auto r = std::from_chars(begin, end, integer); r.ec == std::errc() && r.ptr == end)
      return typed(integer, type);
    double number = 0;
    if (const auto r = std::from_chars(begin, end, number); r.ec == std::errc() && r.ptr == end) return number;
    fail("a default value");
  }

  // Enumerations appear as c10's numbers; the IR holds those of .pt2 files.
  Arg typed(std::int64_t n, const std::string& type) const {
    if (type.starts_with("float")) return static_cast<double>(n);
    if (type.starts_with("bool")) return n != 0;
    if (n < 0 || n > 64) return n;
    const int code = static_cast<int>(n);
    if (type.starts_with("ScalarType"))
      if (const auto dtype = dtype_from_c10(code)) return *dtype;
    if (type.starts_with("MemoryFormat")) return MemoryFormatArg{code == 0 ? 1 : code == 1 ? 4 : code};
    if (type.starts_with("Layout")) return LayoutArg{code == 0 ? 7 : code};
    return n;
  }

  void returns(OpSchema& schema) {
    if (accept("...")) {
      schema.varargs = true;
      return;
    }
    if (!accept("(")) {
      add_return(schema);
      skip();
      if (at_ != text_.size()) word();  // a result may be named
      return;
    }
    while (!peek(')')) {
      if (accept("...")) {
        schema.varargs = true;
      } else {
        add_return(schema);
        if (!peek(',') && !peek(')')) word();  // a result may be named
      }
      if (!accept(",")) break;
    }
    expect(")");
  }

  void add_return(OpSchema& schema) {
    const ParsedType parsed = type();
    schema.returns.push_back(parsed.text);
    schema.returns_alias.push_back(parsed.alias);
  }

  std::string_view text_;
  std::string op_;
  std::size_t at_ = 0;
};

struct Registry {
  std::mutex mutex;
  std::unordered_map<std::string_view, std::unique_ptr<const OpSchema>> schemas;  // by a name that is the schema's
  SchemaResolver resolver;

  const OpSchema* add(OpSchema schema) {
    auto kept = std::make_unique<const OpSchema>(std::move(schema));
    const std::string_view op = kept->op;
    const std::lock_guard lock(mutex);
    return schemas.try_emplace(op, std::move(kept)).first->second.get();
  }
};
Registry& registry() {
  static Registry r;
  return r;
}

// Control flow and arithmetic on sizes take whatever operands their file gives them.
bool takes_anything(std::string_view op) {
  for (const std::string_view prefix : {"prim.", "higher_order.", "_operator.", "math.", "torch."})
    if (op.starts_with(prefix)) return true;
  return false;
}

}  // namespace

int OpSchema::index_of(std::string_view name) const {
  for (std::size_t i = 0; i < args.size(); ++i)
    if (args[i].name == name) return static_cast<int>(i);
  return -1;
}

bool OpSchema::mutates() const {
  return std::any_of(args.begin(), args.end(), [](const SchemaArg& arg) { return arg.mutated; });
}

OpSchema parse_schema(std::string_view text, std::string op) { return SchemaParser(text, std::move(op)).parse(); }

const OpSchema* find_schema(std::string_view op) {
  Registry& r = registry();
  SchemaResolver resolver;
  {
    const std::lock_guard lock(r.mutex);
    if (const auto it = r.schemas.find(op); it != r.schemas.end()) return it->second.get();
    resolver = r.resolver;
  }
  std::optional<OpSchema> schema = resolver ? resolver(op) : std::nullopt;
  if (!schema && takes_anything(op)) {
    schema.emplace();
    schema->varargs = true;
  }
  if (!schema) return nullptr;
  schema->op = op;
  return r.add(std::move(*schema));
}

const OpSchema* register_schema(OpSchema schema) { return registry().add(std::move(schema)); }

void set_schema_resolver(SchemaResolver resolver) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  r.resolver = std::move(resolver);
}

std::string_view base_name(std::string_view op) {
  const auto dot = op.find('.');
  if (dot == std::string_view::npos) return op;
  op.remove_prefix(dot + 1);
  return op.substr(0, op.find('.'));
}

std::pair<std::string, std::string> torch_op_name(std::string_view op) {
  const auto dot = op.find('.');
  if (dot == std::string_view::npos) return {std::string(op), ""};
  const std::string space(op.substr(0, dot));
  const auto second = op.find('.', dot + 1);
  if (second == std::string_view::npos) return {space + "::" + std::string(op.substr(dot + 1)), ""};
  const std::string_view overload = op.substr(second + 1);
  return {space + "::" + std::string(op.substr(dot + 1, second - dot - 1)),
          overload == "default" ? "" : std::string(overload)};
}

std::string ir_op_name(std::string_view torch_name, std::string_view overload) {
  const auto colons = torch_name.find("::");
  if (colons == std::string_view::npos) return std::string(torch_name);
  std::string out = std::string(torch_name.substr(0, colons)) + "." + std::string(torch_name.substr(colons + 2));
  if (!overload.empty()) return out + "." + std::string(overload);
  const bool bare = out.starts_with("tt.") || out.starts_with("prim.");
  return torch_name.find('.', colons) == std::string_view::npos && !bare ? out + ".default" : out;
}

}  // namespace ttc::ir
