// Reads the text form of models that printer.cpp writes. Recursive descent; nesting and allocations are bounded, so
// that any text gives a model or an Error.
#include <limits>
#include <map>
#include <tuple>
#include <unordered_map>

#include "ir/model.h"
#include "ir/scanner.h"
#include "ir/weight_text.h"

namespace ttc::ir {
namespace {

class Parser {
 public:
  Parser(std::string_view text, const std::string& file) : in_(text, file), weights_(in_) {}

  std::unique_ptr<Model> model() {
    auto model = std::make_unique<Model>();
    model_ = model.get();
    model->info.format = "text";
    if (in_.accept_word("model")) header();
    in_.expect_word("graph");
    model->graph->name = in_.word_or_string("the graph's name");
    in_.expect('(');
    inputs(*model->graph, true);
    in_.expect('{');
    body(*model->graph);
    if (!in_.at_end()) in_.fail("expected the end of the text after the graph");
    return model;
  }

 private:
  void header() {
    ModelInfo& info = model_->info;
    in_.expect('{');
    while (!in_.accept('}')) {
      if (in_.accept_word("torch"))
        info.torch_version = in_.string();
      else if (in_.accept_word("dialect"))
        info.dialect = in_.string();
      else if (in_.accept_word("guard"))
        info.guards.push_back(in_.string());
      else if (in_.accept_word("input_name"))
        info.user_input_names.push_back(in_.string());
      else if (in_.accept_word("extra"))
        extra();
      else if (in_.accept_word("range"))
        range();
      else if (in_.accept_word("hint"))
        hint();
      else
        in_.fail("expected torch, dialect, range, hint, guard, input_name, extra or '}'");
    }
  }

  void extra() {
    const std::string name = in_.string();
    model_->extra[name] = in_.string();
  }

  void range() {
    const std::string name = in_.word_or_string("a symbol");
    in_.expect_word("in");
    in_.expect('[');
    SymRange range;
    range.min = bound();
    in_.expect(',');
    range.max = bound();
    in_.expect(']');
    if (range.min && range.max && *range.min > *range.max) in_.fail("the range of " + name + " is empty");
    if (!model_->ranges.emplace(name, range).second) in_.fail("a second range for " + name);
  }

  void hint() {
    const std::string name = in_.word_or_string("a symbol");
    in_.expect('=');
    model_->info.hints[name] = in_.integer();
  }

  std::optional<std::int64_t> bound() {
    const auto value =
        in_.peek_word() == "inf" ? (in_.accept_word("inf"), std::variant<std::int64_t, double>(0.0)) : in_.number();
    const auto* i = std::get_if<std::int64_t>(&value);
    return i != nullptr ? std::optional(*i) : std::nullopt;
  }

  // ---- types ----

  SymExpr sym(std::string_view text) {
    try {
      return parse_sym(text);
    } catch (const Error& error) {
      in_.fail(error.what());
    }
  }

  std::vector<SymExpr> dimensions(char close) {
    std::vector<SymExpr> out;
    if (in_.accept(close)) return out;
    do {
      out.push_back(sym(in_.dimension(close)));
    } while (in_.accept(','));
    in_.expect(close);
    return out;
  }

  Type tensor_type(std::optional<DType> dtype) {
    Type type = Type::unknown_tensor();
    type.has_dtype = dtype.has_value();
    if (dtype) type.dtype = *dtype;
    in_.expect('[');
    if (in_.accept('*')) {
      in_.expect(']');
      return type;
    }
    type.has_shape = true;
    type.sizes = dimensions(']');
    if (in_.accept_word("strides")) {
      in_.expect('(');
      type.strides = dimensions(')');
    }
    return type;
  }

  Type type(int depth = 0) {
    if (depth > text::max_depth) in_.fail("types nest too deeply");
    if (in_.accept('?')) return tensor_type({});
    const std::string word = in_.word("a type");
    const auto dtype = dtype_from_string(word);
    if (dtype && in_.peek() == '[') return tensor_type(dtype);
    static const std::map<std::string, TypeKind, std::less<>> kinds = {
        {"tensor", TypeKind::tensor}, {"float", TypeKind::floating}, {"bool", TypeKind::boolean},
        {"str", TypeKind::string},    {"none", TypeKind::none},      {"device", TypeKind::device},
        {"int", TypeKind::integer},   {"object", TypeKind::object},  {"list", TypeKind::list},
        {"tuple", TypeKind::tuple},   {"dict", TypeKind::dict}};
    const auto kind = kinds.find(word);
    if (kind == kinds.end()) in_.fail("unknown type '" + word + "'");
    Type out = Type::of(kind->second);
    if (out.kind == TypeKind::integer && in_.accept('(')) {
      out.sym = sym(in_.dimension(')'));
      in_.expect(')');
    } else if (out.kind == TypeKind::object && in_.accept('<')) {
      out.object_class = in_.string();
      in_.expect('>');
    } else if (out.kind == TypeKind::list || out.kind == TypeKind::tuple || out.kind == TypeKind::dict) {
      in_.expect('<');
      while (in_.peek() != '>') {
        out.elements.push_back(type(depth + 1));
        out.elements.back().optional = in_.accept('?');
        if (!in_.accept(',')) break;
      }
      in_.expect('>');
    }
    return out;
  }

  // ---- values and arguments ----

  struct Name {
    std::string text;
    bool weight;
    std::size_t position;
  };
  Name name() {
    const std::size_t position = in_.position();
    const bool weight = in_.peek() == '$';
    if (!weight && in_.peek() != '%') in_.fail("expected a value such as %x or $weight");
    in_.expect(weight ? '$' : '%');
    Name out{in_.word_or_string("a name"), weight, position};
    if (out.text.empty()) in_.fail("a name is empty");
    return out;
  }
  struct NewName : Name {
    Value** value;  // that it will be of
  };
  NewName new_name() {
    Name out = name();
    const auto [at, fresh] = names_.try_emplace(out.text, nullptr);
    if (!fresh) in_.fail_at(out.position, "%" + out.text + " is defined twice");
    return {std::move(out), &at->second};
  }
  void define(const NewName& name, Value* value) {
    *name.value = value;
    visible_.push_back(name.value);
  }
  Value* value() {
    const Name wanted = name();
    const auto it = names_.find(wanted.text);
    if (it == names_.end() || it->second == nullptr)
      in_.fail_at(wanted.position, "%" + wanted.text + " is not defined here");
    if (is_weight(it->second) != wanted.weight)
      in_.fail_at(wanted.position, (wanted.weight ? "$" : "%") + wanted.text +
                                       (wanted.weight ? " is no weight" : " is a weight: write $"));
    return it->second;
  }

  Arg arg(int depth = 0) {
    if (depth > text::max_depth) in_.fail("lists nest too deeply");
    const char c = in_.peek();
    if (c == '%' || c == '$') return value();
    if (c == '"') return in_.string();
    if (in_.at_number()) return std::visit([](auto v) { return Arg(v); }, in_.number());
    if (in_.accept('[')) {
      Arg::List items;
      while (in_.peek() != ']') {
        items.push_back(arg(depth + 1));
        if (!in_.accept(',')) break;
      }
      in_.expect(']');
      return items;
    }
    return named_literal(in_.word("an argument"));
  }

  Arg named_literal(const std::string& word) {
    static const std::map<std::string, Arg, std::less<>> plain = {{"none", Arg()},
                                                                  {"true", true},
                                                                  {"false", false},
                                                                  {"inf", std::numeric_limits<double>::infinity()},
                                                                  {"nan", std::numeric_limits<double>::quiet_NaN()},
                                                                  {"contiguous_format", MemoryFormatArg{1}},
                                                                  {"channels_last", MemoryFormatArg{2}},
                                                                  {"channels_last_3d", MemoryFormatArg{3}},
                                                                  {"preserve_format", MemoryFormatArg{4}},
                                                                  {"strided", LayoutArg{7}}};
    if (const auto it = plain.find(word); it != plain.end()) return it->second;
    if (!in_.accept('(')) {
      if (const auto dtype = dtype_from_string(word)) return *dtype;
      in_.fail("unknown literal '" + word + "'");
    }
    Arg out;
    if (word == "device") {
      DeviceArg device{in_.string(), {}};
      if (in_.accept(',')) device.index = small_integer();
      out = device;
    } else if (word == "memory_format") {
      out = MemoryFormatArg{small_integer()};
    } else if (word == "layout") {
      out = LayoutArg{small_integer()};
    } else if (word == "region") {
      out = RegionArg{small_integer()};
    } else if (word == "complex") {
      const double real = real_number();
      in_.expect(',');
      out = std::complex<double>(real, real_number());
    } else {
      in_.fail("unknown literal '" + word + "(...)'");
    }
    in_.expect(')');
    return out;
  }

  int small_integer() {
    const std::int64_t value = in_.integer();
    if (value < -1000000000 || value > 1000000000) in_.fail(std::to_string(value) + " is out of range");
    return static_cast<int>(value);
  }
  double real_number() {
    const Arg value = arg(text::max_depth);
    if (const auto number = value.number()) return *number;
    in_.fail("expected a number");
  }

  // ---- graphs ----

  void inputs(Graph& graph, bool outermost) {
    while (in_.peek() != ')') {
      input(graph, outermost);
      if (!in_.accept(',')) break;
    }
    in_.expect(')');
  }

  void input(Graph& graph, bool outermost) {
    static const std::map<std::string, InputKind, std::less<>> kinds = {
        {"user", InputKind::user},         {"parameter", InputKind::parameter},   {"buffer", InputKind::buffer},
        {"constant", InputKind::constant}, {"custom_obj", InputKind::custom_obj}, {"token", InputKind::token}};
    const NewName n = new_name();
    in_.expect(':');
    Type t = type();
    InputKind kind = InputKind::user;
    if (const auto it = kinds.find(in_.peek_word()); it != kinds.end()) {
      kind = it->second;
      in_.accept_word(it->first);
    }
    std::string target = in_.peek() == '"' ? in_.string() : "";
    Value* v = graph.add_input(std::move(t), n.text, kind, target);
    define(n, v);
    if (is_weight(v) != n.weight)
      in_.fail("the name of a parameter, buffer or constant starts with '$', others with '%'");
    GraphInput& in = graph.input(static_cast<std::size_t>(v->index()));
    if (in_.accept_word("nonpersistent")) in.persistent = false;
    if (n.weight && outermost && v->type.is_static()) {
      if (!model_->weights.emplace(target, weights_.parse(v->type)).second)
        in_.fail("a second weight " + text::quoted(target));
    } else if (in_.accept('=')) {
      in.literal = arg();
    }
  }

  // Nodes, the return line and the closing brace.
  void body(Graph& graph) {
    while (in_.peek_word() != "return") node(graph);
    in_.expect_word("return");
    graph.returns_single = in_.accept_word("single");
    while (in_.peek() != '}') {
      output(graph);
      if (!in_.accept(',')) break;
    }
    in_.expect('}');
  }

  void output(Graph& graph) {
    OutputKind kind = OutputKind::user;
    std::string target;
    if (in_.accept_word("mutation")) {
      if (in_.accept_word("buffer"))
        kind = OutputKind::buffer_mutation;
      else if (in_.accept_word("input"))
        kind = OutputKind::user_input_mutation;
      else if (in_.accept_word("parameter"))
        kind = OutputKind::parameter_mutation;
      else
        in_.fail("expected buffer, input or parameter");
    } else if (in_.accept_word("token")) {
      kind = OutputKind::token;
    } else if (in_.accept_word("other")) {
      kind = OutputKind::other;
    }
    if (kind != OutputKind::user && kind != OutputKind::token) {
      target = in_.string();
      in_.expect('=');
    }
    graph.add_output(arg(), kind, std::move(target));
  }

  void node(Graph& graph) {
    std::vector<std::pair<NewName, Type>> results;
    if (in_.peek() == '%') {
      do {
        NewName n = new_name();
        if (n.weight) in_.fail("a result's name starts with '%'");
        in_.expect(':');
        results.emplace_back(std::move(n), type());
      } while (in_.accept(','));
      in_.expect('=');
    }
    const bool quoted_op = in_.peek() == '"';
    std::string op = in_.word_or_string("an operator or return");
    if (op.empty() || (!quoted_op && (op.find('.') == std::string::npos || !text::is_identifier(op))))
      in_.fail("'" + op + "' is no operator such as aten.relu.default");
    Node* n = graph.append(op, {});
    in_.expect('(');
    arguments(*n);
    while (in_.accept('{')) region(*n);
    for (auto& [result, t] : results) define(result, n->add_result(std::move(t), std::move(result.text)));
    attributes(*n);
  }

  void arguments(Node& node) {
    std::vector<std::pair<std::string, Arg>> given;
    while (in_.peek() != ')') {
      std::string name;
      if (in_.peek() == '"') {
        name = in_.string();
        if (in_.accept('='))
          given.emplace_back(std::move(name), arg());
        else
          given.emplace_back("", Arg(std::move(name)));
      } else if (text::is_alpha(in_.peek()) || in_.peek() == '_') {
        name = in_.word("an argument");
        if (in_.accept('='))
          given.emplace_back(std::move(name), arg());
        else
          given.emplace_back("", named_literal(name));
      } else {
        given.emplace_back("", arg());
      }
      if (!in_.accept(',')) break;
    }
    in_.expect(')');
    if (node.schema() != nullptr && !node.schema()->varargs) return by_schema(node, given);
    std::vector<Arg> args;
    bool named = false;
    for (auto& [name, a] : given) {
      named = named || !name.empty();
      node.arg_names.push_back(name);
      args.push_back(std::move(a));
    }
    if (!named) node.arg_names.clear();
    node.set_args(std::move(args));
  }

  void by_schema(Node& node, std::vector<std::pair<std::string, Arg>>& given) {
    const OpSchema& schema = *node.schema();
    std::vector<std::optional<Arg>> slots(schema.args.size());
    std::size_t next = 0;
    for (auto& [name, a] : given) {
      const int found = name.empty() ? static_cast<int>(next++) : schema.index_of(name);
      if (found < 0) in_.fail(node.op() + " has no argument '" + name + "'");
      if (static_cast<std::size_t>(found) >= slots.size())
        in_.fail(node.op() + " takes " + std::to_string(slots.size()) + " arguments");
      auto& slot = slots[static_cast<std::size_t>(found)];
      if (slot)
        in_.fail("argument '" + schema.args[static_cast<std::size_t>(found)].name + "' of " + node.op() +
                 " is given twice");
      slot = std::move(a);
    }
    std::vector<Arg> args;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (!slots[i]) slots[i] = schema.args[i].default_value;
      if (!slots[i]) in_.fail("argument '" + schema.args[i].name + "' of " + node.op() + " is missing");
      args.push_back(std::move(*slots[i]));
    }
    node.set_args(std::move(args));
  }

  void region(Node& node) {
    if (++depth_ > text::max_depth) in_.fail("regions nest too deeply");
    const std::size_t outer = visible_.size();
    Graph* graph = node.add_region();
    if (in_.accept('^')) {
      if (in_.peek() != '(') graph->name = in_.word_or_string("the region's name");
      in_.expect('(');
      inputs(*graph, false);
      in_.expect(':');
    }
    body(*graph);
    for (; visible_.size() > outer; visible_.pop_back()) *visible_.back() = nullptr;
    --depth_;
  }

  void attributes(Node& node) {
    if (in_.accept_word("place")) {
      in_.expect('=');
      node.place = in_.string();
    }
    if (in_.accept_word("origins")) {
      in_.expect('=');
      in_.expect('[');
      while (in_.peek() != ']') {
        node.origins.push_back(small_integer());
        if (!in_.accept(',')) break;
      }
      in_.expect(']');
    }
    Provenance p;
    if (in_.accept('@')) {
      std::tie(p.module_path, p.module_class) = module();
      if (in_.accept_word("in")) do {
          p.stack.push_back(module());
        } while (in_.accept(','));
      p.stack.emplace_back(p.module_path, p.module_class);
    }
    if (in_.accept_word("at")) p.source = in_.source();
    if (!(p == Provenance())) node.provenance = std::make_shared<const Provenance>(std::move(p));
  }

  std::pair<std::string, std::string> module() {
    std::string path = in_.word_or_string("a module path");
    return {std::move(path), in_.accept(':') ? in_.word_or_string("a class") : std::string()};
  }

  Scanner in_;
  WeightParser weights_;
  Model* model_ = nullptr;
  std::unordered_map<std::string, Value*> names_;  // of the whole text; nullptr: not visible here
  std::vector<Value**> visible_;                   // their values, in order of definition
  int depth_ = 0;
};

}  // namespace

std::unique_ptr<Model> parse(std::string_view text, const std::string& file) { return Parser(text, file).model(); }

}  // namespace ttc::ir
