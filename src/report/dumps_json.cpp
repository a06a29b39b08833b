// dumps_json(): the texts of a dump folder. Dumps that follow each other have most lines in common.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unordered_map>

#include "report/page.h"
#include "support/mapped_file.h"

namespace ttc {
namespace {

namespace fs = std::filesystem;

struct DumpFile {
  fs::path path;
  long index = 0;
  std::string pass, when;
};

// "31-fuse-projections.after.ir", as src/pass/manager.cpp names them.
bool parse_name(const fs::path& path, DumpFile& out) {
  const std::string name = path.filename().string();
  const auto dash = name.find('-');
  if (dash == std::string::npos || dash == 0 || dash > 6 || !name.ends_with(".ir") ||
      name.find_first_not_of("0123456789") != dash)
    return false;
  const std::string rest = name.substr(dash + 1, name.size() - dash - 4);
  const auto dot = rest.rfind('.');
  if (dot == std::string::npos) return false;
  out = {.path = path,
         .index = std::stol(name.substr(0, dash)),
         .pass = rest.substr(0, dot),
         .when = rest.substr(dot + 1)};
  return out.when == "before" || out.when == "after";
}

std::vector<DumpFile> dump_files(const std::string& folder) {
  std::vector<DumpFile> out;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    DumpFile file;
    if (parse_name(at->path(), file)) out.push_back(std::move(file));
  }
  if (error) throw bad_file(folder, "cannot be read: " + error.message());
  if (out.empty())
    throw bad_file(folder, "holds no dump of a pass",
                   "ttc compile MODEL -o OUT --dump-after change --dump-dir " + folder + " writes them");
  std::sort(out.begin(), out.end(), [](const DumpFile& a, const DumpFile& b) {
    return std::tuple(a.index, a.when == "after") < std::tuple(b.index, b.when == "after");
  });
  return out;
}

}  // namespace

Json dumps_json(const std::string& folder) {
  std::unordered_map<std::string, std::size_t> number;
  Json lines = Json::array(), dumps = Json::array();
  for (const DumpFile& file : dump_files(folder)) {
    note_opened(file.path.string());
    std::ifstream in(file.path, std::ios::binary);
    if (!in) throw bad_file(file.path.string(), "cannot be read");
    Json list = Json::array();
    for (std::string line; std::getline(in, line);) {
      const auto [found, fresh] = number.emplace(line, number.size());
      if (fresh) lines.push_back(line);
      list.push_back(found->second);
    }
    dumps.push_back({{"index", file.index}, {"pass", file.pass}, {"when", file.when}, {"lines", std::move(list)}});
  }
  return {{"folder", folder}, {"lines", std::move(lines)}, {"dumps", std::move(dumps)}};
}

}  // namespace ttc
