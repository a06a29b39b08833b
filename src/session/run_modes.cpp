// One list of names, whoever reads them.
#include "session/run_modes.h"

#include <cctype>
#include <cstdlib>

#include "session/compare.h"
#include "support/error.h"

namespace ttc {
namespace {

// "DPL_NO_ERROR_PROP" -> "dpl-no-error-prop"
std::string canonical(std::string name) {
  for (char& c : name) c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

}  // namespace

std::vector<std::string> run_modes() {
  std::vector<std::string> out = {"device", "normal", "normal-with-fallback", "cpu", "traced", "lightweight"};
  for (const std::string& mode : compare_modes()) out.push_back(mode);
  return out;
}

bool fails_on_fallback(const std::string& mode) {
  const std::string plain = canonical(mode);
  return plain == "normal" || plain == "traced" || plain == "lightweight";
}

std::string known_run_mode(const std::string& name, const std::vector<std::string>& known, const std::string& source) {
  std::string all;
  std::vector<std::string> plain;
  for (const std::string& one : known) {
    plain.push_back(canonical(one));
    if (plain.back() == canonical(name)) return one;
    all += (all.empty() ? "there are " : ", ") + one;
  }
  const std::string close = nearest(canonical(name), plain.data(), plain.size());
  for (std::size_t i = 0; i < known.size(); ++i)
    if (!close.empty() && plain[i] == close) all = "did you mean '" + known[i] + "'?";
  throw usage_error(source + ": there is no run mode '" + name + "'", all);
}

std::string run_mode_of_environment(const std::vector<std::string>& known) {
  const char* value = std::getenv(run_mode_variable);
  if (value == nullptr || *value == '\0') return "";
  return known_run_mode(value, known, std::string(run_mode_variable) + "=" + value);
}

}  // namespace ttc
