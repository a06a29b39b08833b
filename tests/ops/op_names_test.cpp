// No op is named outside of its record's file: what decides something about an op reads its record (a role, a family, a
// predicate), so that a new op needs no line elsewhere. Reads the string literals of the tree.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "ops/op.h"
#include "tests/catch.h"

namespace {

namespace fs = std::filesystem;

// Files and folders that name ops or ATen operators, and what for.
const std::map<std::string, std::string_view>& legitimate() {
  static const std::map<std::string, std::string_view> places{
      {"runtime/dispatch/context.cpp", "operations as rules call them: attention.causal"},
      {"runtime/dispatch/dispatchers_builtin.cpp", "the operators that the dispatcher tensor_ops is made of"},
      {"runtime/executor/buffers.cpp", "calls LibTorch's copy"},
      {"runtime/executor/control_flow.cpp", "calls LibTorch to take rows apart and to stack them"},
      {"runtime/executor/functionalized_op.cpp", "calls LibTorch for the views of what an operator writes"},
      {"runtime/executor/signature.cpp", "how a program compares an integer with numbers"},
      {"runtime/replay/", "functions of the op library as recorded, each as calls of records"},
      {"src/emit/python_text.cpp", "functions of size expressions, which have names of ops"},
      {"src/pass/rewriter.cpp", "reads sizes; functions of size expressions"},
      {"src/pass/rewriter_math.cpp", "writes the ATen operators that rules ask for"},
      {"src/session/input_maker.cpp", "kinds of made inputs, one of which is arange"},
      {"src/session/part.cpp", "reads sizes that come from outside of a part"},
  };
  return places;
}

// The literals of one line, with what stands before each; comments are none.
template <typename F>
void for_literals(const std::string& line, F&& f) {
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line.compare(i, 2, "//") == 0) return;
    if (line[i] == '\'' && i + 2 < line.size()) i += line[i + 1] == '\\' ? 3 : 2;
    if (line[i] != '"') continue;
    const std::size_t begin = i + 1;
    while (++i < line.size() && line[i] != '"') i += line[i] == '\\' ? 1 : 0;
    f(line.substr(0, begin - 1), line.substr(begin, i - begin));
  }
}

bool is_compared(std::string before) {
  while (!before.empty() && before.back() == ' ') before.pop_back();
  if (before.ends_with("starts_with(") || before.ends_with("ends_with(")) return true;
  if (!before.ends_with("==") && !before.ends_with("!=")) return false;
  before.resize(before.size() - 2);
  while (!before.empty() && before.back() == ' ') before.pop_back();
  return !before.ends_with("family");  // a family has the name of its first op
}

bool names_an_op(const std::string& file, const std::string& before, const std::string& text) {
  if (text.starts_with("tt.")) return ttrt::find_op(text) != nullptr;
  // How ATen's operators become ops, and what LibTorch does with them, is what these are for.
  for (const char* folder : {"passes/", "runtime/torch/", "src/formats/", "src/ir/", "src/match/", "src/shapes/",
                             "src/torchscript/", "runtime/modules/"})
    if (file.starts_with(folder)) return false;
  if (text.starts_with("aten.") && text.size() > 5) return true;
  return is_compared(before) && ttrt::find_op("tt." + text) != nullptr;
}

}  // namespace

TEST_CASE("no op is named outside of its file", "[names]") {
  const fs::path root = TTC_SOURCE_ROOT;
  std::set<std::string> used;
  int files = 0;
  for (const char* folder : {"src", "passes", "runtime", "tools"})
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string file = fs::relative(entry.path(), root).generic_string();
      if (!file.ends_with(".cpp") && !file.ends_with(".h")) continue;
      if (file.starts_with("runtime/ops/")) continue;
      ++files;
      std::ifstream in(entry.path());
      int number = 0;
      bool commented = false;  // by C's comments
      for (std::string line; std::getline(in, line);) {
        ++number;
        commented = commented || line.find("/*") != line.npos;
        const bool skipped = commented;
        commented = commented && line.find("*/") == line.npos;
        if (skipped) continue;
        for_literals(line, [&](const std::string& before, const std::string& text) {
          if (!names_an_op(file, before, text)) return;
          const auto place = std::find_if(legitimate().begin(), legitimate().end(),
                                          [&](const auto& one) { return file.starts_with(one.first); });
          INFO(file << ":" << number << " names " << text);
          CHECK(place != legitimate().end());
          if (place != legitimate().end()) used.insert(place->first);
        });
      }
    }
  CHECK(files > 400);
  for (const auto& [place, reason] : legitimate()) {
    INFO(place << " names none any more");
    CHECK(used.contains(place));
  }
}
