// Running cases and judging their results.
#include "replay/replay.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <sstream>

#include "ops/library.h"
#include "support/progress.h"

namespace ttrt::replay {
namespace {

struct Registered {
  Runner run;
  std::string_view inputs;
  Undetermined undetermined = nullptr;
  std::string_view why = {};
};

std::map<std::string, Registered, std::less<>>& runners() {
  static std::map<std::string, Registered, std::less<>> all;
  return all;
}

std::int32_t word(float f) { return std::bit_cast<std::int32_t>(f); }

// Words in the order of their values, +0 and -0 one apart of nothing.
std::int64_t ordered(float f) {
  const std::int32_t u = word(f);
  return u < 0 ? -static_cast<std::int64_t>(u & 0x7FFFFFFF) : u;
}

// Exponents of the shared exponent's block an element sits in: 16 consecutive elements of its row.
double block_step(const Tensor& expected, std::size_t index) {
  const auto width = static_cast<std::size_t>(expected.shape.empty() ? 1 : expected.shape.back());
  const std::size_t row = index / width * width, first = row + (index - row) / 16 * 16;
  const std::size_t last = std::min(first + 16, row + width);
  int shared = 1;
  for (std::size_t i = first; i < last; ++i) shared = std::max(shared, (word(expected.values[i]) >> 23) & 0xFF);
  return std::ldexp(1.0, shared - 127 - (magnitude_bits(expected.dtype) - 1));
}

// Distance in units of the last place of the output's format.
double ulps(const Tensor& expected, std::size_t index, float got) {
  const float want = expected.values[index];
  if (word(want) == word(got)) return 0;
  if (!std::isfinite(want) || !std::isfinite(got)) return std::numeric_limits<double>::infinity();
  if (is_block_format(expected.dtype)) return std::abs(static_cast<double>(want) - got) / block_step(expected, index);
  const auto steps = static_cast<double>(std::abs(ordered(want) - ordered(got)));
  return expected.dtype == DataType::bfloat16 ? steps / 65536 : steps;
}

// Sums for the correlation over several outputs.
struct Correlation {
  double n = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0;
  void add(double a, double b) { n += 1, x += a, y += b, xx += a * a, yy += b * b, xy += a * b; }
  double value(bool equal) const {
    if (n == 0) return equal ? 1 : 0;
    const double vx = xx - x * x / n, vy = yy - y * y / n;
    if (!(vx > 0) || !(vy > 0)) return equal ? 1 : 0;
    return (xy - x * y / n) / std::sqrt(vx) / std::sqrt(vy);
  }
};

void compare(const Case& c, const Outputs& outputs, Undetermined undetermined, CaseResult& result) {
  Correlation all;
  bool equal = true;
  for (std::size_t o = 0; o < c.expected.size(); ++o) {
    const std::int64_t before = result.mismatches;
    const Tensor& want = c.expected[o];
    double scale = 0;  // keeps the squares of values near overflow finite
    for (const float v : want.values)
      scale = std::isfinite(v) ? std::max(scale, std::abs(static_cast<double>(v))) : scale;
    for (std::size_t i = 0; i < want.values.size(); ++i) {
      const float x = want.values[i], y = outputs[o][i];
      ++result.elements;
      if (word(x) != word(y) && undetermined != nullptr && o == 0 && undetermined(c, i)) {
        ++result.undetermined;
        continue;
      }
      if (word(x) != word(y)) ++result.mismatches;
      const double distance = ulps(want, i, y);
      result.max_ulp = std::max(result.max_ulp, distance);
      if (!std::isfinite(x) || !std::isfinite(y)) {
        equal = equal && word(x) == word(y);
        continue;
      }
      equal = equal && x == y;
      result.sum_ulp += distance;
      result.max_abs = std::max(result.max_abs, std::abs(static_cast<double>(x) - y));
      all.add(scale > 0 ? x / scale : x, scale > 0 ? y / scale : y);
    }
    if (before == 0 && result.mismatches > 0 && o > 0) result.reason = "from out" + std::to_string(o) + " on";
  }
  result.pcc = all.value(equal);
  result.bit_exact = result.mismatches == 0 && result.undetermined == 0;
}

std::string check_sizes(const Case& c, const Outputs& outputs) {
  if (outputs.size() != c.expected.size()) return "the op gave another number of outputs";
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    if (outputs[o].size() != c.expected[o].values.size()) return "output " + std::to_string(o) + " has another size";
  }
  return "";
}

void judge(const Options& options, CaseResult& result) {
  if (result.bit_exact) {
    result.status = Status::bit_exact;
    return;
  }
  if (result.mismatches == 0) {
    result.status = Status::undetermined;
    result.reason = std::to_string(result.undetermined) + " elements: " + std::string(runners().at(result.op).why);
    return;
  }
  const bool exact = options.numerics == Numerics::exact;
  const bool close = exact ? result.max_ulp <= options.max_ulp : result.pcc >= options.min_pcc;
  result.status = close ? Status::within_tolerance : Status::failed;
  if (close) return;
  const std::string where = result.reason.empty() ? "" : ", " + result.reason;
  result.reason = (exact ? "further than the tolerance in ulp" : "PCC below the tolerance") + where;
}

}  // namespace

void register_runner(std::string_view op, Runner run, std::string_view inputs) {
  const bool added = runners().emplace(op, Registered{.run = run, .inputs = inputs}).second;
  TTC_CHECK(added, "an op is replayed by one runner: " + std::string(op));
}

void register_undetermined(std::string_view op, Undetermined element, std::string_view why) {
  Registered& registered = runners().find(op)->second;
  registered.undetermined = element, registered.why = why;
}

Runner find_runner(std::string_view op) {
  const auto at = runners().find(op);
  if (at != runners().end()) return at->second.run;
  return ops::find_library_op(op) != nullptr ? run_library : nullptr;
}

std::string input_name(std::string_view op, std::size_t index) {
  const auto at = runners().find(op);
  std::istringstream names(at == runners().end() ? std::string() : std::string(at->second.inputs));
  std::string name;
  for (std::size_t i = 0; i <= index; ++i)
    if (!(names >> name)) return "input" + std::to_string(index);
  return name;
}

std::string_view to_string(Status status) {
  switch (status) {
    case Status::bit_exact:
      return "bit_exact";
    case Status::within_tolerance:
      return "within_tolerance";
    case Status::failed:
      return "failed";
    case Status::unsupported:
      return "unsupported";
    case Status::undetermined:
      return "undetermined";
  }
  return "";
}

namespace {

Outcome outcome_of(const Case& c, Numerics numerics) {
  if (c.unreadable) return *c.unreadable;
  const Runner run = find_runner(c.op);
  if (run == nullptr) return ttc::Reason{ttc::ReasonCode::Unimplemented, "no op of this name is replayed"};
  return run(c, numerics);
}

// Replaces the recorded results by what `numerics` give. A refusal where they do not serve the case.
ttc::Refusal expect(Case& c, Numerics numerics) {
  Outcome outcome = outcome_of(c, numerics);
  if (auto* reason = std::get_if<ttc::Reason>(&outcome)) return std::move(*reason);
  auto& outputs = std::get<Outputs>(outcome);
  if (const std::string wrong = check_sizes(c, outputs); !wrong.empty()) throw ttc::bad_file(c.id, wrong);
  for (std::size_t i = 0; i < outputs.size(); ++i) c.expected[i].values = std::move(outputs[i]);
  c.recorded = false;
  return std::nullopt;
}

CaseResult run_against(const Case& c, Options options) {
  Case with = c;
  const Numerics numerics = *options.against;
  options.against.reset();
  CaseResult result;
  result.id = c.id;
  result.op = c.op;
  try {
    const auto refusal = expect(with, numerics);
    if (!refusal) return run_case(with, options);
    result.status = Status::unsupported;
    result.reason = refusal->text();
  } catch (const ttc::Error& error) {
    result.reason = error.what();
  }
  return result;
}

}  // namespace

CaseResult run_case(const Case& c, const Options& options) {
  if (options.against) return run_against(c, options);
  CaseResult result;
  result.id = c.id;
  result.op = c.op;
  const auto start = std::chrono::steady_clock::now();
  Outcome outcome = Outputs{};
  try {
    outcome = outcome_of(c, options.numerics);
  } catch (const ttc::Error& error) {
    result.reason = error.what();
    return result;
  }
  result.wall_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  if (const auto* reason = std::get_if<ttc::Reason>(&outcome)) {
    result.status = Status::unsupported;
    result.reason = reason->text();
    return result;
  }
  const auto& outputs = std::get<Outputs>(outcome);
  result.reason = check_sizes(c, outputs);
  if (!result.reason.empty()) return result;
  const auto at = runners().find(c.op);
  compare(c, outputs, c.recorded && at != runners().end() ? at->second.undetermined : nullptr, result);
  judge(options, result);
  return result;
}

std::vector<CaseResult> replay_directory(const std::string& path, const Options& options) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
      if (it->path().extension() == ".safetensors") files.push_back(it->path().string());
    }
  } else if (fs::is_regular_file(path, error)) {
    files.push_back(path);
  }
  if (files.empty())
    throw ttc::bad_file(path, "no recorded cases here", "name a directory of .safetensors files, or one of them");
  std::sort(files.begin(), files.end());
  std::erase_if(files, [&](const std::string& file) {
    return fs::path(file).stem().string().find(options.filter) == std::string::npos;
  });
  std::vector<CaseResult> results;
  ttc::Phase phase("replaying", files.size());
  for (const std::string& file : files) {
    const std::string id = fs::path(file).stem().string();
    phase.at(id);
    try {
      results.push_back(run_case(read_case(file), options));
    } catch (const ttc::Error& error) {
      results.push_back({.id = id, .op = {}, .reason = error.what()});
    }
    phase.advance();
  }
  return results;
}

std::vector<OpSummary> summarise(const std::vector<CaseResult>& results) {
  std::map<std::string, OpSummary> by_op;
  for (const CaseResult& r : results) {
    OpSummary& s = by_op[r.op];
    s.op = r.op;
    ++s.cases;
    s.unsupported += r.status == Status::unsupported;
    if (r.elements == 0) continue;
    s.bit_exact += r.bit_exact;
    s.elements += r.elements;
    s.mismatches += r.mismatches;
    s.max_ulp = std::max(s.max_ulp, r.max_ulp);
    s.mean_ulp += r.sum_ulp;
    s.min_pcc = std::min(s.min_pcc, r.pcc);
  }
  std::vector<OpSummary> out;
  for (auto& [op, s] : by_op) {
    if (s.elements > 0) s.mean_ulp /= static_cast<double>(s.elements);
    out.push_back(std::move(s));
  }
  return out;
}

namespace {

ttc::Json ops_json(const std::vector<CaseResult>& results) {
  ttc::Json ops = ttc::Json::array();
  for (const OpSummary& s : summarise(results)) {
    ops.push_back({{"op", s.op},
                   {"cases", s.cases},
                   {"bit_exact", s.bit_exact},
                   {"unsupported", s.unsupported},
                   {"elements", s.elements},
                   {"mismatches", s.mismatches},
                   {"max_ulp", std::isfinite(s.max_ulp) ? ttc::Json(s.max_ulp) : ttc::Json("inf")},
                   {"mean_ulp", s.mean_ulp},
                   {"min_pcc", s.min_pcc}});
  }
  return ops;
}

}  // namespace

ttc::Json report(const std::vector<CaseResult>& results) {
  ttc::Json cases = ttc::Json::array();
  std::int64_t counts[5] = {};
  for (const CaseResult& r : results) {
    ++counts[static_cast<int>(r.status)];
    ttc::Json one = {{"id", r.id},
                     {"op", r.op},
                     {"status", to_string(r.status)},
                     {"bit_exact", r.bit_exact},
                     {"elements", r.elements},
                     {"mismatches", r.mismatches},
                     {"undetermined", r.undetermined},
                     {"max_ulp", r.max_ulp},
                     {"pcc", r.pcc},
                     {"max_abs", r.max_abs},
                     {"wall_ms", r.wall_ms}};
    if (!std::isfinite(r.max_ulp)) one["max_ulp"] = "inf";
    if (!r.reason.empty()) one["reason"] = r.reason;
    cases.push_back(std::move(one));
  }
  return {{"cases", std::move(cases)},
          {"ops", ops_json(results)},
          {"totals",
           {{"cases", results.size()},
            {"bit_exact", counts[0]},
            {"within_tolerance", counts[1]},
            {"failed", counts[2]},
            {"unsupported", counts[3]},
            {"undetermined", counts[4]}}}};
}

}  // namespace ttrt::replay
