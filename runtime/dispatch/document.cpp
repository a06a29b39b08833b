// See document.h. yaml-cpp parses YAML; JSON goes through nlohmann's event parser, whose position gives the lines.
#include "dispatch/document.h"

#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include "support/error.h"
#include "support/json_util.h"

namespace ttrt::dispatch {
namespace {

using Kind = DocNode::Kind;

std::string at_line(int line, const std::string& what) {
  return line > 0 ? "line " + std::to_string(line) + ": " + what : what;
}

// ---- scalars -------------------------------------------------------------------------------------------------------

bool one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

std::optional<std::int64_t> integer_of(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  int base = 10;
  if (text.starts_with("0x")) {
    base = 16;
    text.remove_prefix(2);
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || text.front() == '-' || error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return negative ? -value : value;
}

std::optional<double> number_of(std::string_view text) {
  if (one_of(text, {".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"})) return HUGE_VAL;
  if (one_of(text, {"-.inf", "-.Inf", "-.INF"})) return -HUGE_VAL;
  if (one_of(text, {".nan", ".NaN", ".NAN"})) return std::nan("");
  if (text.find_first_not_of("+-.0123456789eE") != std::string_view::npos) return std::nullopt;
  if (text.find_first_of("0123456789") == std::string_view::npos) return std::nullopt;
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

DocNode plain_scalar(std::string text, int line) {
  DocNode node{.kind = Kind::string, .line = line};
  if (one_of(text, {"", "~", "null", "Null", "NULL"})) {
    node.kind = Kind::null;
  } else if (one_of(text, {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"})) {
    node.kind = Kind::boolean;
    node.boolean = true;
  } else if (one_of(text, {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"})) {
    node.kind = Kind::boolean;
  } else if (const auto integer = integer_of(text)) {
    node.kind = Kind::integer;
    node.integer = *integer;
    node.number = static_cast<double>(*integer);
  } else if (const auto number = number_of(text)) {
    node.kind = Kind::number;
    node.number = *number;
  }
  node.text = std::move(text);
  return node;
}

// ---- YAML ----------------------------------------------------------------------------------------------------------

class YamlReader {
 public:
  explicit YamlReader(const std::string& file) : file_(file) {}

  DocNode read(const YAML::Node& yaml, int depth) {
    const int line = yaml.Mark().line + 1;
    if (++nodes_ > max_document_nodes)
      fail(line, "the document has more than " + std::to_string(max_document_nodes) + " values");
    if (depth > max_document_depth)
      fail(line, "the document is nested deeper than " + std::to_string(max_document_depth) + " levels");
    switch (yaml.Type()) {
      case YAML::NodeType::Scalar:
        // "!" marks quotes, "?" a plain scalar; other tags name types of YAML's schema.
        if (yaml.Tag() == "?" || yaml.Tag().empty()) return plain_scalar(yaml.Scalar(), line);
        if (yaml.Tag() != "!" && yaml.Tag() != "tag:yaml.org,2002:str") fail(line, "tags are not read: " + yaml.Tag());
        return DocNode{.kind = Kind::string, .line = line, .text = yaml.Scalar()};
      case YAML::NodeType::Sequence: {
        DocNode node{.kind = Kind::list, .line = line};
        for (const YAML::Node& item : yaml) node.items.push_back(read(item, depth + 1));
        return node;
      }
      case YAML::NodeType::Map:
        return read_map(yaml, line, depth);
      default:
        return DocNode{.kind = Kind::null, .line = line};
    }
  }

 private:
  DocNode read_map(const YAML::Node& yaml, int line, int depth) {
    DocNode node{.kind = Kind::map, .line = line};
    for (const auto& entry : yaml) {
      const int key_line = entry.first.Mark().line + 1;
      if (!entry.first.IsScalar()) fail(key_line, "a key must be a string");
      const std::string& key = entry.first.Scalar();
      if (const DocNode* known = node.find(key))
        fail(key_line, "key '" + key + "' is there twice, first on line " + std::to_string(known->line));
      DocNode value = read(entry.second, depth + 1);
      value.line = key_line;  // the line a reader looks for
      node.members.emplace_back(key, std::move(value));
    }
    return node;
  }

  [[noreturn]] void fail(int line, const std::string& what) const { throw ttc::bad_file(file_, at_line(line, what)); }

  const std::string& file_;
  std::size_t nodes_ = 0;
};

DocNode parse_yaml(std::string_view text, const std::string& file) {
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text));
    if (documents.empty()) return {};
    if (documents.size() > 1)
      throw ttc::bad_file(file, at_line(documents[1].Mark().line + 1, "a second document in one file"));
    return YamlReader(file).read(documents[0], 0);
  } catch (const YAML::DeepRecursion& error) {
    throw ttc::bad_file(file, at_line(error.mark.line + 1, "malformed YAML: nested too deeply"));
  } catch (const YAML::Exception& error) {
    throw ttc::bad_file(file, at_line(error.mark.line + 1, "malformed YAML: " + error.msg));
  }
}

// ---- JSON ----------------------------------------------------------------------------------------------------------

// Counts the line ends before the character that was read last.
struct LineCounter {
  int line = 1;
  char last = 0;
};

class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, LineCounter* counter) : at_(at), counter_(counter) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    if (counter_->last == '\n') ++counter_->line;
    counter_->last = *at_++;
    return *this;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  LineCounter* counter_;
};

class JsonReader : public nlohmann::json_sax<ttc::Json> {
 public:
  JsonReader(const LineCounter& lines, const std::string& file) : lines_(lines), file_(file) {}
  DocNode take() { return std::move(root_); }

  bool null() override { return add(scalar(Kind::null, "null")); }
  bool boolean(bool value) override {
    DocNode node = scalar(Kind::boolean, value ? "true" : "false");
    node.boolean = value;
    return add(std::move(node));
  }
  bool number_integer(number_integer_t value) override { return add(integer(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value <= static_cast<number_unsigned_t>(INT64_MAX)) return add(integer(static_cast<std::int64_t>(value)));
    return number_float(static_cast<double>(value), std::to_string(value));
  }
  bool number_float(number_float_t value, const string_t& text) override {
    DocNode node = scalar(Kind::number, text);
    node.number = value;
    return add(std::move(node));
  }
  bool string(string_t& value) override { return add(scalar(Kind::string, value)); }
  bool binary(binary_t&) override { fail("binary values are not read"); }
  bool start_object(std::size_t) override { return open(Kind::map); }
  bool start_array(std::size_t) override { return open(Kind::list); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& value) override {
    if (const DocNode* known = open_.back()->find(value))
      fail("key '" + value + "' is there twice, first on line " + std::to_string(known->line));
    key_ = value;
    key_line_ = lines_.line;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& error) override {
    const std::string what = error.what();
    const auto colon = what.find(": ");
    fail("malformed JSON: " + (colon == std::string::npos ? what : what.substr(colon + 2)));
  }

 private:
  DocNode scalar(Kind kind, std::string text) const {
    return {.kind = kind, .line = lines_.line, .text = std::move(text)};
  }
  DocNode integer(std::int64_t value) const {
    DocNode node = scalar(Kind::integer, std::to_string(value));
    node.integer = value;
    node.number = static_cast<double>(value);
    return node;
  }
  // Places keep: only the innermost open node grows, and its children are complete or on the stack's top.
  bool add(DocNode node) {
    if (++nodes_ > max_document_nodes)
      fail("the document has more than " + std::to_string(max_document_nodes) + " values");
    if (open_.empty()) {
      root_ = std::move(node);
    } else if (open_.back()->is(Kind::list)) {
      open_.back()->items.push_back(std::move(node));
    } else {
      node.line = key_line_;
      open_.back()->members.emplace_back(key_, std::move(node));
    }
    return true;
  }
  bool open(Kind kind) {
    if (open_.size() >= static_cast<std::size_t>(max_document_depth))
      fail("the document is nested deeper than " + std::to_string(max_document_depth) + " levels");
    add({.kind = kind, .line = lines_.line});
    if (open_.empty())
      open_.push_back(&root_);
    else
      open_.push_back(open_.back()->is(Kind::list) ? &open_.back()->items.back()
                                                   : &open_.back()->members.back().second);
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  [[noreturn]] void fail(const std::string& what) const { throw ttc::bad_file(file_, at_line(lines_.line, what)); }

  const LineCounter& lines_;
  const std::string& file_;
  DocNode root_;
  std::vector<DocNode*> open_;
  std::string key_;
  int key_line_ = 0;
  std::size_t nodes_ = 0;
};

DocNode parse_json_document(std::string_view text, const std::string& file) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return {};
  LineCounter lines;
  JsonReader reader(lines, file);
  ttc::Json::sax_parse(CountingIterator(text.data(), &lines), CountingIterator(text.data() + text.size(), &lines),
                       &reader);
  return reader.take();
}

ttc::Json to_json(const DocNode& node) {
  switch (node.kind) {
    case Kind::null:
      return nullptr;
    case Kind::boolean:
      return node.boolean;
    case Kind::integer:
      return node.integer;
    case Kind::number:
      return node.number;
    case Kind::string:
      return node.text;
    case Kind::list: {
      ttc::Json out = ttc::Json::array();
      for (const DocNode& item : node.items) out.push_back(to_json(item));
      return out;
    }
    case Kind::map: {
      ttc::Json out = ttc::Json::object();
      for (const auto& [key, value] : node.members) out[key] = to_json(value);
      return out;
    }
  }
  return nullptr;
}

}  // namespace

// ---- nodes ---------------------------------------------------------------------------------------------------------

const DocNode* DocNode::find(std::string_view key) const {
  const auto it = std::find_if(members.begin(), members.end(), [&](const auto& m) { return m.first == key; });
  return it == members.end() ? nullptr : &it->second;
}

std::string DocNode::canonical() const {
  return to_json(*this).dump(-1, ' ', false, ttc::Json::error_handler_t::replace);
}

std::string DocNode::shown() const {
  constexpr std::size_t limit = 60;
  std::string out = is(Kind::list) || is(Kind::map) || is(Kind::null) ? canonical()
                    : is(Kind::string)                                ? "'" + text + "'"
                                                                      : text;
  if (out.size() > limit) out = out.substr(0, limit) + "...";
  return out;
}

std::string_view to_string(DocNode::Kind kind) {
  switch (kind) {
    case Kind::null:
      return "null";
    case Kind::boolean:
      return "a boolean";
    case Kind::integer:
      return "an integer";
    case Kind::number:
      return "a number";
    case Kind::string:
      return "a string";
    case Kind::list:
      return "a list";
    case Kind::map:
      return "a map";
  }
  return "";
}

// ---- files ---------------------------------------------------------------------------------------------------------

DocumentFormat document_format(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".yaml" || extension == ".yml") return DocumentFormat::yaml;
  if (extension == ".json") return DocumentFormat::json;
  throw ttc::bad_file(path, "unknown extension '" + extension + "'", "a configuration is a .yaml, .yml or .json file");
}

DocNode parse_document(std::string_view text, DocumentFormat format, const std::string& file) {
  return format == DocumentFormat::yaml ? parse_yaml(text, file) : parse_json_document(text, file);
}

std::string read_config_file(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) throw ttc::bad_file(path, "no such file");
  if (!std::filesystem::is_regular_file(status)) throw ttc::bad_file(path, "not a regular file");
  std::ifstream in(path, std::ios::binary);
  if (!in) throw ttc::bad_file(path, "cannot be read");
  std::string text;
  char buffer[1 << 16];
  while (in.read(buffer, sizeof(buffer)) || in.gcount() > 0) {
    text.append(buffer, static_cast<std::size_t>(in.gcount()));
    if (text.size() > max_document_bytes)
      throw ttc::bad_file(path, "larger than " + std::to_string(max_document_bytes >> 20) + " MiB");
  }
  if (in.bad()) throw ttc::bad_file(path, "cannot be read");
  return text;
}

DocNode read_document(const std::string& path, DocumentFormat format) {
  return parse_document(read_config_file(path), format, path);
}

}  // namespace ttrt::dispatch
