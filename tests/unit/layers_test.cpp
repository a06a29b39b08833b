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

// The layer of a file: the longest of these prefixes it starts with.
const std::map<std::string, std::set<std::string>>& allowed() {
  static const std::set<std::string> compiler{"src/support", "src/ir",   "src/formats",
                                              "src/match",   "src/pass", "passes"};
  static const std::map<std::string, std::set<std::string>> rules = {
      {"src/support", {"src/support"}},
      {"src/ir", {"src/support", "src/ir"}},
      // The torch bridge is how the TorchScript reader and the shape runner reach LibTorch; tensors are the device's.
      {"src/formats", {"src/support", "src/ir", "src/formats", "runtime/device", "runtime"}},
      {"src/match", {"src/support", "src/ir", "src/match", "runtime/device", "runtime/ops", "runtime/value.h"}},
      {"src/pass",
       {"src/support", "src/ir", "src/formats", "src/match", "src/pass", "runtime/device", "runtime/ops", "runtime"}},
      {"passes",
       {"src/support", "src/ir", "src/formats", "src/match", "src/pass", "passes", "runtime/device", "runtime/ops",
        "runtime"}},
      {"runtime/device", {"src/support", "runtime/device"}},
      {"runtime/ops", {"src/support", "src/ir", "runtime/device", "runtime/ops", "runtime"}},
      {"runtime/replay", {"src/support", "src/formats", "src/ir", "runtime/device", "runtime/ops", "runtime/replay"}},
      {"runtime/dispatch", {"src/support", "src/ir", "runtime/device", "runtime/ops", "runtime/dispatch", "runtime"}},
      {"runtime",
       {"src/support", "src/ir", "src/formats", "runtime/device", "runtime/ops", "runtime/dispatch", "runtime"}},
      {"tools",
       {"src/support", "src/ir", "src/formats", "src/match", "src/pass", "runtime/device", "runtime/ops",
        "runtime/dispatch", "runtime/replay", "runtime", "tools"}},
  };
  return rules;
}

std::string layer_of(const std::string& file) {
  std::string found;
  for (const auto& [layer, ok] : allowed())
    if (file.starts_with(layer + "/") && layer.size() > found.size()) found = layer;
  return found;
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
    if (from.empty() || to.empty()) continue;
    INFO(include.file << " includes " << include.target);
    CHECK((allowed().at(from).contains(to) || allowed().at(from).contains(include.target)));
  }
}

TEST_CASE("ops and device know nothing of the executor") {
  for (const Include& include : all_includes()) {
    if (!include.file.starts_with("runtime/ops/") && !include.file.starts_with("runtime/device/")) continue;
    INFO(include.file << " includes " << include.target);
    CHECK(include.target != "runtime/executor.h");
    CHECK(include.target != "runtime/program.h");
    CHECK(include.target != "runtime/device_step.h");
  }
}

TEST_CASE("torch headers live in the few files made for them") {
  // Each costs more than ten seconds to compile; think before adding one.
  static const std::set<std::string> allowed_files{
      "runtime/cpu_op.cpp",        "runtime/torch_bridge.cpp",      "runtime/torch_bridge.h",
      "runtime/torch_ops.cpp",     "runtime/torch_last_resort.cpp", "src/formats/pickle_read.cpp",
      "src/formats/shape_run.cpp", "src/formats/ts_containers.cpp", "src/formats/ts_lower.cpp",
      "src/formats/ts_lower.h",    "src/formats/ts_pch.h",          "src/formats/ts_read.cpp",
      "src/formats/ts_values.cpp", "src/formats/ts_write.cpp",
  };
  for (const Include& include : all_includes()) {
    if (!include.system || !is_torch(include.target)) continue;
    INFO(include.file << " includes <" << include.target << ">");
    CHECK(allowed_files.contains(include.file));
  }
}
