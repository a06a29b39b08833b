// Dependencies point one way (the design's layers), and torch headers stay in the few files made for them. Reads the
// #include lines of the tree.
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/catch.h"

namespace {

namespace fs = std::filesystem;

struct Include {
  std::string file, target;  // both from the repository's root; target as written for system headers
  bool system = false;
};

const fs::path root = TTC_SOURCE_ROOT;

std::vector<Include> includes_below(const char* folder) {
  std::vector<Include> out;
  for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
    const std::string extension = entry.path().extension();
    if (extension != ".h" && extension != ".cpp") continue;
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      if (!line.starts_with("#include ")) continue;
      const char open = line[9];
      const std::size_t end = line.find(open == '<' ? '>' : '"', 10);
      if (end == std::string::npos) continue;
      Include include{
          .file = fs::relative(entry.path(), root), .target = line.substr(10, end - 10), .system = open == '<'};
      if (!include.system)
        for (const fs::path& base : {entry.path().parent_path(), root / "src", root / "runtime", root})
          if (fs::exists(base / include.target)) {
            include.target = fs::relative(fs::canonical(base / include.target), fs::canonical(root));
            break;
          }
      out.push_back(std::move(include));
    }
  }
  return out;
}

const std::vector<Include>& all_includes() {
  static const std::vector<Include> includes = [] {
    std::vector<Include> out;
    for (const char* folder : {"src", "passes", "runtime", "tools"})
      for (Include& include : includes_below(folder)) out.push_back(std::move(include));
    return out;
  }();
  return includes;
}

// What each folder may include beside itself. No folder is on both sides of another: the cycle test below reads the
// tree, not this table. What is missing here is forbidden.
const std::map<std::string, std::set<std::string>>& allowed() {
  static const std::map<std::string, std::set<std::string>> rules = {
      {"src/support", {}},
      {"src/ir", {"src/support"}},
      {"src/formats", {"src/support", "src/ir"}},
      {"src/torchscript", {"src/support", "src/ir", "src/formats"}},
      {"src/report", {"src/support", "src/ir", "src/formats"}},
      {"src/match", {"src/support", "src/ir"}},
      // Shapes are found by running ATen on the Meta device.
      {"src/shapes", {"src/support", "src/ir", "runtime/ops", "runtime/torch"}},
      {"src/pass", {"src/support", "src/ir", "src/match", "runtime/device", "runtime/ops", "runtime/modules"}},
      // Constants are folded in LibTorch.
      {"passes",
       {"src/support", "src/ir", "src/match", "src/pass", "src/shapes", "runtime/device", "runtime/ops",
        "runtime/modules", "runtime/torch"}},
      {"runtime/device", {"src/support"}},
      {"runtime/ops", {"src/support", "src/ir", "runtime/device"}},
      {"runtime/modules", {"src/support", "src/ir", "runtime/device", "runtime/ops"}},
      {"runtime/torch", {"src/support", "src/ir", "runtime/device", "runtime/ops"}},
      {"runtime/dispatch", {"src/support", "src/ir", "runtime/device", "runtime/ops"}},
      {"runtime/replay", {"src/support", "src/ir", "src/formats", "runtime/device", "runtime/ops"}},
      {"runtime/executor",
       {"src/support", "src/ir", "runtime/device", "runtime/ops", "runtime/torch", "runtime/dispatch"}},
      {"runtime/torch_library",
       {"src/support", "src/ir", "src/shapes", "runtime/device", "runtime/ops", "runtime/torch", "runtime/dispatch",
        "runtime/executor"}},
      // Loading, compiling, feeding, checking and comparing models: what tools and libraries share.
      {"src/session",
       {"src/support", "src/ir", "src/formats", "src/match", "src/shapes", "src/pass", "runtime/device", "runtime/ops",
        "runtime/torch", "runtime/executor", "runtime/torch_library"}},
      // Programs in other languages.
      {"src/emit",
       {"src/support", "src/ir", "src/formats", "src/pass", "runtime/device", "runtime/ops", "runtime/executor"}},
      {"src/api",
       {"src/support", "src/ir", "src/formats", "src/pass", "src/session", "runtime/device", "runtime/ops",
        "runtime/modules", "runtime/executor", "runtime/torch_library"}},
      {"runtime/api",
       {"src/api", "src/session", "src/support", "src/ir", "runtime/device", "runtime/ops", "runtime/modules",
        "runtime/torch", "runtime/replay", "runtime/dispatch", "runtime/executor", "runtime/torch_library"}},
      // The Python package is a user of the libraries.
      {"runtime/python", {"src/api", "runtime/api"}},
      {"tools",
       {"src/support", "src/ir", "src/formats", "src/report", "src/match", "src/shapes", "src/pass", "src/session",
        "src/emit", "runtime/device", "runtime/ops", "runtime/modules", "runtime/torch", "runtime/dispatch",
        "runtime/replay", "runtime/executor", "runtime/torch_library", "runtime/api"}},
  };
  return rules;
}

std::string layer_of(const std::string& file) {
  std::string found;
  for (const auto& [layer, ok] : allowed())
    if (file.starts_with(layer + "/") && layer.size() > found.size()) found = layer;
  return found;
}

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool is_torch(const std::string& header) {
  for (const char* prefix : {"torch/", "ATen/", "c10/", "caffe2/"})
    if (header.starts_with(prefix)) return true;
  return false;
}

}  // namespace

TEST_CASE("layers depend one way") {
  REQUIRE(all_includes().size() > 200);
  for (const Include& include : all_includes()) {
    if (include.system) continue;
    const std::string from = layer_of(include.file), to = layer_of(include.target);
    INFO(include.file << " includes " << include.target);
    REQUIRE(!from.empty());
    REQUIRE(!to.empty());
    CHECK((from == to || allowed().at(from).contains(to)));
  }
}

TEST_CASE("no folder includes a folder that includes it") {
  std::map<std::string, std::set<std::string>> reached;
  for (const Include& include : all_includes())
    if (!include.system) {
      const std::string from = layer_of(include.file), to = layer_of(include.target);
      if (from != to) reached[from].insert(to);
    }
  for (bool grew = true; grew;) {
    grew = false;
    for (auto& [from, to] : reached)
      for (const std::string& middle : std::set<std::string>(to))
        for (const std::string& far : reached[middle]) grew |= to.insert(far).second;
  }
  for (const auto& [folder, below] : reached) {
    INFO(folder);
    CHECK(!below.contains(folder));
  }
}

TEST_CASE("every folder is described where a reader looks for it") {
  for (const auto& [folder, ok] : allowed()) {
    const fs::path path(folder);
    const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path();
    const std::string text = text_of(root / (parent.empty() ? path : parent) / "README.md");
    INFO(folder);
    CHECK(!text.empty());
    if (!parent.empty()) CHECK(text.find("`" + path.filename().string() + "`") != std::string::npos);
  }
}

TEST_CASE("every file says what is in it") {
  for (const char* folder : {"src", "passes", "runtime", "tools"})
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension();
      if (extension != ".h" && extension != ".cpp") continue;
      std::ifstream in(entry.path());
      std::string first;
      std::getline(in, first);
      INFO(entry.path());
      CHECK((first.starts_with("// ") || first.starts_with("/* ")));
      CHECK(first != "// See " + entry.path().stem().string() + ".h.");
    }
}

TEST_CASE("torch headers live in the few files made for them") {
  // Each costs more than ten seconds to compile; think before adding one.
  static const std::set<std::string> allowed_files{
      "runtime/torch/cpu_op.cpp",
      "runtime/torch/random_state.cpp",
      "runtime/torch/torch_bridge.cpp",
      "runtime/torch/torch_bridge.h",
      "runtime/torch/unsound.cpp",
      "runtime/torch/unsound.h",
      "runtime/torch_library/torch_arguments.h",
      "runtime/torch_library/torch_fakes.cpp",
      "runtime/torch_library/torch_fakes.h",
      "runtime/torch_library/torch_last_resort.cpp",
      "runtime/torch_library/torch_ops.cpp",
      "src/shapes/composite.cpp",
      "src/shapes/meta_op.cpp",
      "src/shapes/meta_op.h",
      "src/shapes/shape_run.cpp",
  };
  for (const Include& include : all_includes()) {
    if (!include.system || !is_torch(include.target)) continue;
    if (layer_of(include.file) == "src/torchscript") continue;  // made for them
    INFO(include.file << " includes <" << include.target << ">");
    CHECK(allowed_files.contains(include.file));
  }
}
