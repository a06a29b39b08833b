// Runs the text files of tests/passes. A file holds cases separated by lines "// -----"; a case is
//
//   // what it shows
//   // RUN: --passes raise-linear,dce [flags]
//   graph ... (before)
//   // EXPECT
//   // REFUSED raise-linear %4 MultiUse: ...      (every refusal, in order)
//   graph ... (after, exactly as printed)
//
// TTC_UPDATE=1 in the environment rewrites what follows EXPECT. Flags: --passes, --disable, --stop-after, --replace,
// --then-replace, --activation-dtype (of the last entry), --exclude, --fallback-op, --fallback-module, --fallback-node, --weight-dtype, --fidelity, --rewrite-limit.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "torch/cpu_op.h"
#include "pass/manager.h"
#include "support/error.h"
#include "tests/catch.h"
#include "tests/golden.h"

namespace {

using namespace ttc;
namespace fs = std::filesystem;

struct Case {
  std::string before;    // comments and graph, up to EXPECT
  std::string expected;  // after it
};

std::string trimmed(std::string text) {
  const auto end = text.find_last_not_of(" \n");
  text.resize(end == std::string::npos ? 0 : end + 1);
  const auto start = text.find_first_not_of('\n');
  return start == std::string::npos ? std::string() : text.substr(start) + "\n";
}

std::vector<Case> read_cases(const fs::path& path) {
  std::ifstream file(path);
  std::vector<Case> cases(1);
  bool expecting = false;
  for (std::string line; std::getline(file, line);) {
    if (line == "// -----") {
      cases.emplace_back();
      expecting = false;
    } else if (line == "// EXPECT") {
      expecting = true;
    } else {
      (expecting ? cases.back().expected : cases.back().before) += line + "\n";
    }
  }
  for (Case& c : cases) c = {trimmed(c.before), trimmed(c.expected)};
  return cases;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);)
    if (!part.empty()) parts.push_back(part);
  return parts;
}

std::pair<std::string, std::string> pair_of(const std::string& text) {
  const auto equals = text.rfind('=');
  if (equals == std::string::npos) throw usage_error("expected KEY=VALUE, got " + text);
  return {text.substr(0, equals), text.substr(equals + 1)};
}

void apply_flag(const std::string& flag, const std::string& value, CompileOptions& options,
                PassManagerOptions& passes) {
  if (flag == "--passes")
    passes.passes = split(value, ',');
  else if (flag == "--disable")
    passes.disable = split(value, ',');
  else if (flag == "--stop-after")
    passes.stop_after = value;
  else if (flag == "--rewrite-limit")
    passes.rewrite_limit = std::stol(value);
  else if (flag == "--replace" || flag == "--then-replace") {  // an entry of the same map, and of the next
    if (options.replace.empty() || flag != "--replace") options.replace.emplace_back();
    options.replace.back().push_back(map_entry(pair_of(value).first, pair_of(value).second));
  }
  else if (flag == "--activation-dtype")
    options.replace.back().back().config.activation = ttrt::data_type_from_string(value);
  else if (flag == "--exclude")
    options.exclude.push_back(value);
  else if (flag == "--fallback-op")
    options.fallback_ops.push_back(value);
  else if (flag == "--fallback-module")
    options.fallback_modules.push_back(value);
  else if (flag == "--fallback-node")
    options.fallback_nodes.push_back(value);
  else if (flag == "--weight-dtype")
    options.weight_format.emplace_back(pair_of(value).first,
                                       ttrt::data_type_from_string(pair_of(value).second).value());
  else if (flag == "--fidelity")
    options.fidelity.emplace_back(pair_of(value).first, ttrt::math_fidelity_from_string(pair_of(value).second).value());
  else
    throw usage_error("unknown flag " + flag);
}

std::string run_case(const Case& c, const std::string& file) {
  CompileOptions options;
  PassManagerOptions passes;
  passes.verify_each = true;
  for (const std::string& line : split(c.before, '\n')) {
    if (!line.starts_with("// RUN:")) continue;
    const std::vector<std::string> words = split(line.substr(7), ' ');
    for (std::size_t i = 0; i + 1 < words.size(); i += 2) apply_flag(words[i], words[i + 1], options, passes);
  }
  const auto model = ir::parse(c.before, file);
  PassContext context(*model, options);
  run_passes(context, passes);
  std::string out;
  for (const RefusalRecord& r : context.refusals)
    out += "// REFUSED " + r.pass + " %" + r.node + " " + r.reason.text() + "\n";
  return trimmed(out + ir::print(*model));
}

void rewrite(const fs::path& path, const std::vector<Case>& cases) {
  std::ofstream file(path);
  for (std::size_t i = 0; i < cases.size(); ++i)
    file << (i ? "\n// -----\n" : "") << cases[i].before << "// EXPECT\n" << cases[i].expected;
}

std::vector<fs::path> case_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(TTC_PASS_TESTS))
    if (entry.path().extension() == ".ir") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

TEST_CASE("every case of tests/passes gives the expected graph and refusals") {
  ttrt::install_torch_schemas();
  const std::vector<fs::path> files = case_files();
  REQUIRE_FALSE(files.empty());
  const bool update = update_expected();
  for (const fs::path& path : files) {
    std::vector<Case> cases = read_cases(path);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const std::string name = path.filename().string() + " case " + std::to_string(i + 1);
      INFO(name);
      std::string got;
      try {
        got = run_case(cases[i], path.filename().string());
      } catch (const Error& error) {
        FAIL_CHECK(name << ": " << error.message());
        continue;
      }
      if (update) cases[i].expected = got;
      CHECK(got == cases[i].expected);
      // What was printed is an input too.
      CHECK(ir::print(*ir::parse(got, name)) == ir::print(*ir::parse(cases[i].expected, name)));
    }
    if (update) rewrite(path, cases);
  }
}

TEST_CASE("an unknown pass is a usage error that names the nearest one") {
  PassManagerOptions options;
  options.passes = {"raise-linaer"};
  try {
    select_passes(options);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == Exit::usage);
    CHECK(error.hint().find("raise-linear") != std::string::npos);
  }
}

TEST_CASE("every pass of the default pipeline is registered and has a summary") {
  for (const PassStep& step : select_passes({})) CHECK_FALSE(step.info->summary.empty());
}
