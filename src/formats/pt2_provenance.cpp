// Node metadata of .pt2 files -> ir::Provenance.
#include <algorithm>
#include <charconv>

#include "formats/pt2_read_graph.h"
#include "formats/pt2_write_graph.h"

namespace ttc {
namespace {

// Splits at `separator` outside of brackets.
std::vector<std::string_view> split_outside_brackets(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '[' || c == '(') ++depth;
    if (c == ']' || c == ')') --depth;
    if (c == separator && depth <= 0) {
      parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  parts.push_back(text.substr(begin));
  return parts;
}

// "L['self'].layer[0].fc" (strict export) and "layer.0.fc" name the same module.
std::string module_path(std::string_view path) {
  constexpr std::string_view self = "L['self']";
  if (!path.starts_with(self)) return std::string(path);
  path.remove_prefix(self.size());
  std::string out;
  for (const char c : path) {
    if (c == ']' || c == '\'') continue;
    out += c == '[' ? '.' : c;
  }
  return out.starts_with('.') ? out.substr(1) : out;
}

bool is_internal(std::string_view file) {
  return file.find("site-packages/torch/") != file.npos || file.starts_with("torch/") || file.starts_with("<");
}

}  // namespace

std::string source_of_trace(std::string_view trace) {
  constexpr std::string_view opening = "File \"", middle = "\", line ";
  std::string source;
  for (auto at = trace.find(opening); at != trace.npos; at = trace.find(opening, at)) {
    at += opening.size();
    const auto quote = trace.find(middle, at);
    if (quote == trace.npos) break;
    std::string_view file = trace.substr(at, quote - at);
    const char* digits = trace.data() + quote + middle.size();
    int line = 0;
    const bool numbered = std::from_chars(digits, trace.data() + trace.size(), line).ec == std::errc();
    at = quote;
    if (!numbered || is_internal(file)) continue;
    if (const auto slash = file.find_last_of("/\\"); slash != file.npos) file.remove_prefix(slash + 1);
    source = std::string(file) + ":" + std::to_string(line);
  }
  return source;
}

// The number behind the last @ of "L__self__encoder.0@1"; 0 where there is none.
int call_of_key(std::string_view key) {
  const auto at = key.rfind('@');
  int call = 0;
  if (at == key.npos ||
      std::from_chars(key.data() + at + 1, key.data() + key.size(), call).ptr != key.data() + key.size())
    return 0;
  return std::max(call, 0);
}

void read_module_stack(std::string_view text, ir::Provenance& to) {
  for (const auto item : split_outside_brackets(text, ';')) {
    const auto parts = split_outside_brackets(item, ',');
    if (parts.size() != 3 || parts[0].starts_with("_empty_nn_module_stack")) continue;
    to.stack.emplace_back(module_path(parts[1]), std::string(parts[2]));
    to.calls.push_back(call_of_key(parts[0]));
  }
  if (std::ranges::all_of(to.calls, [](int call) { return call == 0; })) to.calls.clear();
}

namespace {

int call_at(const ir::Provenance& where, std::size_t entry) {
  return entry < where.calls.size() ? where.calls[entry] : 0;
}

// The modules that a node between these stands in; after the last node, the root.
std::shared_ptr<const ir::Provenance> between(const ir::Provenance& before, const ir::Provenance* after) {
  auto made = std::make_shared<ir::Provenance>();
  for (std::size_t i = 0; i < before.stack.size(); ++i) {
    if (after == nullptr ? !before.stack[i].first.empty()
                         : i == after->stack.size() || before.stack[i] != after->stack[i] ||
                               call_at(before, i) != call_at(*after, i))
      break;
    made->stack.push_back(before.stack[i]), made->calls.push_back(call_at(before, i));
  }
  return made;
}

}  // namespace

std::vector<std::shared_ptr<const ir::Provenance>> written_provenance(const ir::Graph& graph) {
  std::vector<std::shared_ptr<const ir::Provenance>> out;
  for (const auto& node : graph.nodes()) out.push_back(node->provenance);
  std::vector<const ir::Provenance*> after(out.size());
  const ir::Provenance* last = nullptr;
  for (std::size_t i = out.size(); i-- > 0;) {
    after[i] = last;
    if (!out[i]->stack.empty()) last = out[i].get();
  }
  const ir::Provenance* before = nullptr;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!out[i]->stack.empty()) {
      before = out[i].get();
    } else if (before != nullptr && out[i]->source.empty()) {
      out[i] = between(*before, after[i]);
    }
  }
  return out;
}

std::shared_ptr<const ir::Provenance> Pt2GraphReader::provenance(const Json& node) {
  const Json* metadata = find_member(node, "metadata");
  if (!metadata) return ir::Node::empty_provenance();
  const auto text = [&](const char* key) {
    const Json* found = find_member(*metadata, key);
    return found && found->is_string() ? std::string_view(found->get_ref<const std::string&>()) : std::string_view();
  };
  const std::string_view modules = text("nn_module_stack");
  std::string source = source_of_trace(text("stack_trace"));
  auto& known = provenances_[source + '\n' + std::string(modules)];
  if (known) return known;
  auto made = std::make_shared<ir::Provenance>();
  read_module_stack(modules, *made);
  if (!made->stack.empty()) std::tie(made->module_path, made->module_class) = made->stack.back();
  made->source = std::move(source);
  known = std::move(made);
  return known;
}

}  // namespace ttc
