// From yaml-cpp's tree to ours: scalars resolved, keys unique, sizes bounded.
#include "dispatch/document.h"

#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "support/error.h"
#include "support/json_util.h"
#include "support/mapped_file.h"

namespace ttrt::dispatch {
namespace {

using Kind = DocNode::Kind;

std::string at_line(int line, const std::string& what) {
  return line > 0 ? "line " + std::to_string(line) + ": " + what : what;
}

// A scalar without quotes, by YAML's own reading; y and n are names here. Most are names of kernels and operations, of
// which no reading into a stream is needed: only words of up to five letters are booleans, numbers begin with a sign, a
// dot or a digit.
DocNode plain_scalar(const YAML::Node& yaml, int line) {
  DocNode node{.kind = Kind::string, .line = line, .text = yaml.Scalar()};
  const bool numeric = !node.text.empty() && std::string_view("+-.0123456789").find(node.text[0]) != std::string::npos;
  if (!numeric && node.text.size() > 5) return node;
  if (node.text.size() > 1 && YAML::convert<bool>::decode(yaml, node.boolean)) {
    node.kind = Kind::boolean;
  } else if (!numeric) {
    return node;
  } else if (YAML::convert<std::int64_t>::decode(yaml, node.integer)) {
    node.kind = Kind::integer;
    node.number = static_cast<double>(node.integer);
  } else if (YAML::convert<double>::decode(yaml, node.number)) {
    node.kind = Kind::number;
  }
  return node;
}

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
        if (yaml.Tag() == "?" || yaml.Tag().empty()) return plain_scalar(yaml, line);
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

}  // namespace

DocNode parse_document(std::string_view text, const std::string& file) {
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

namespace {

ttc::Json to_json(const DocNode& node) {
  if (node.is(Kind::boolean)) return node.boolean;
  if (node.is(Kind::integer)) return node.integer;
  if (node.is(Kind::number)) return node.number;
  if (node.is(Kind::string)) return node.text;
  ttc::Json out = node.is(Kind::list) ? ttc::Json::array() : node.is(Kind::map) ? ttc::Json::object() : ttc::Json();
  for (const DocNode& item : node.items) out.push_back(to_json(item));
  for (const auto& [key, value] : node.members) out[key] = to_json(value);
  return out;
}

}  // namespace

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
  static constexpr std::string_view names[] = {"null",     "a boolean", "an integer", "a number",
                                               "a string", "a list",    "a map"};
  return names[static_cast<std::size_t>(kind)];
}

std::string read_config_file(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) throw ttc::bad_file(path, "no such file");
  if (!std::filesystem::is_regular_file(status)) throw ttc::bad_file(path, "not a regular file");
  if (std::filesystem::file_size(path, error) > max_document_bytes)
    throw ttc::bad_file(path, "larger than " + std::to_string(max_document_bytes >> 20) + " MiB");
  std::ifstream in(path, std::ios::binary);
  if (!in) throw ttc::bad_file(path, "cannot be read");
  ttc::note_opened(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

DocNode read_document(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension != ".yaml" && extension != ".yml" && extension != ".json")
    throw ttc::bad_file(path, "unknown extension '" + extension + "'",
                        "a configuration is a .yaml, .yml or .json file");
  return parse_document(read_config_file(path), path);
}

}  // namespace ttrt::dispatch
