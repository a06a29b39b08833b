// The rates by compass search over the rows' logarithmic errors; no derivative is wanted of a model full of maxima.
#include "device/time_fit.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <tuple>

#include "support/error.h"

namespace ttrt {
namespace {

using Rates = std::array<double, 10>;

constexpr std::array<FittedRate, 10> rates{{
    {"matmul_overhead", &ArchProfile::matmul_overhead},
    {"matmul_product_cycles", &ArchProfile::matmul_product_cycles},
    {"matmul_subblock_cycles", &ArchProfile::matmul_subblock_cycles},
    {"matmul_start_cycles", &ArchProfile::matmul_start_cycles},
    {"srca_bytes_per_cycle", &ArchProfile::srca_bytes_per_cycle},
    {"srcb_bytes_per_cycle", &ArchProfile::srcb_bytes_per_cycle},
    {"reader_bytes_per_cycle", &ArchProfile::reader_bytes_per_cycle},
    {"mcast_bytes_per_cycle", &ArchProfile::mcast_bytes_per_cycle},
    {"page_issue_cycles", &ArchProfile::page_issue_cycles},
    {"block_sync_cycles", &ArchProfile::block_sync_cycles},
}};

// What the documents let one expect; the fit does not depend on what the profiles hold.
Rates expected(const ArchProfile& p) {
  return {1.05, 1, 10, 2700, 64, 64, p.noc_bytes_per_cycle, p.noc_bytes_per_cycle, 50, 300};
}
// A rate beyond it bounds nothing in the tables.
constexpr double fastest = 256, slowest = 1e-3;
// The tables' smallest products take many times a start and few blocks, so that they do not tell one from the other,
// nor both from what a block's tiles take: with starts of 2,000 to 4,600 cycles Blackhole's products are predicted
// equally well from each other. No more is taken than lets a newer board's smallest product take no longer.
constexpr double latest_start = 2700, longest_sync = 480;

double most_of(const FittedRate& rate) {
  if (rate.member == &ArchProfile::matmul_start_cycles) return latest_start;
  if (rate.member == &ArchProfile::block_sync_cycles) return longest_sync;
  return rate.key.ends_with("bytes_per_cycle") ? fastest : 1e6;
}

ArchProfile with(const ArchProfile& base, const Rates& values) {
  ArchProfile p = base;
  for (std::size_t i = 0; i < rates.size(); ++i) p.*rates[i].member = values[i];
  return p;
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  for (const char c : line) {
    if (c == ',')
      cells.emplace_back();
    else if (c != '\r' && c != '"')
      cells.back() += c;
  }
  return cells;
}

class Reader {
 public:
  Reader(const std::string& path, const std::string& header) : path_(path), names_(cells_of(header)) {
    for (const char* name : {"arch", "m", "k", "n", "dtype", "fidelity"})
      if (column(name) == names_.size())
        throw ttc::bad_file(path, "no column \"" + std::string(name) + "\" in its first line",
                            "a table of products has arch, m, k, n, dtype and fidelity");
  }

  GemmRow read(const std::string& line, int number) const {
    const std::vector<std::string> cells = cells_of(line);
    const auto text = [&](const char* name) {
      const std::size_t i = column(name);
      return i < cells.size() ? cells[i] : std::string();
    };
    const auto wrong = [&](const char* name) {
      return ttc::bad_file(path_, "line " + std::to_string(number) + ": \"" + text(name) + "\" is no " + name);
    };
    const auto size = [&](const char* name) {
      const std::string t = text(name);
      std::int64_t n = 0;
      const auto [end, error] = std::from_chars(t.data(), t.data() + t.size(), n);
      if (error != std::errc() || end != t.data() + t.size() || n < 1 || n > 1 << 24) throw wrong(name);
      return n;
    };
    GemmRow row;
    row.line = number, row.arch = text("arch"), row.dtype = text("dtype"), row.fidelity = text("fidelity");
    row.config = text("config").empty() ? "oob" : text("config");
    std::string lower = row.dtype;
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
    const auto dtype = data_type_from_string(lower);
    if (!dtype) throw wrong("dtype");
    if (!math_fidelity_from_string(row.fidelity)) throw wrong("fidelity");
    row.shape.m = size("m"), row.shape.k = size("k"), row.shape.n = size("n");
    row.shape.a = row.shape.b = row.shape.out = *dtype;
    read_grid(row, text("grid"), wrong);
    row.in0_sharded = text("in0_sharded") == "True", row.out_sharded = text("out_sharded") == "True";
    const std::string cycles = text("device_cycles_implied");
    std::from_chars(cycles.data(), cycles.data() + cycles.size(), row.cycles);
    return row;
  }

 private:
  std::size_t column(std::string_view name) const {
    return static_cast<std::size_t>(std::find(names_.begin(), names_.end(), name) - names_.begin());
  }
  template <typename Wrong>
  static void read_grid(GemmRow& row, const std::string& grid, const Wrong& wrong) {
    if (grid.empty()) return;
    const char* const end = grid.data() + grid.size();
    const auto x = std::from_chars(grid.data(), end, row.grid_x);
    if (x.ec != std::errc() || x.ptr == end || *x.ptr != 'x') throw wrong("grid");
    const auto y = std::from_chars(x.ptr + 1, end, row.grid_y);
    if (y.ec != std::errc() || y.ptr != end || row.grid_x < 1 || row.grid_y < 1) throw wrong("grid");
  }

  std::string path_;
  std::vector<std::string> names_;
};

bool out_of_the_box(const GemmRow& row) { return row.config == "oob"; }

// What "single_core subblock4x2 num_blocks=8" says: a core's own product of operands in its L1, over several blocks of
// K of the row's size.
std::int64_t blocks_of(const GemmRow& row) {
  constexpr std::string_view key = "num_blocks=";
  const std::size_t at = row.config.find(key);
  return at == std::string::npos ? 1 : std::max(1, std::atoi(row.config.c_str() + at + key.size()));
}
bool single_core(const GemmRow& row) { return row.config.starts_with("single_core"); }

MatmulShape whole_shape(const GemmRow& row) {
  MatmulShape shape = row.shape;
  if (single_core(row)) shape.k *= blocks_of(row);
  return shape;
}

// A row whose program does not change while rates are tried.
struct Case {
  const GemmRow* row;
  ArchProfile profile;
  MatmulProgram program;
};

double error_of(const Case& c, const ArchProfile& rated) {
  ArchProfile p = rated;
  p.grid_x = c.profile.grid_x, p.grid_y = c.profile.grid_y;
  return matmul_time(whole_shape(*c.row), c.program, fidelity_of(*c.row), p).cycles / c.row->cycles - 1;
}

// Tuned rows count twice: the others hold what the library's choice loses.
double loss(std::span<const Case> cases, const ArchProfile& p) {
  double sum = 0, weights = 0;
  for (const Case& c : cases) {
    const double weight = out_of_the_box(*c.row) ? 0.5 : 1;
    sum += weight * std::abs(std::log1p(error_of(c, p)));
    weights += weight;
  }
  return weights > 0 ? sum / weights : 0;
}

// Rates that the search moves, and what they come to.
class Search {
 public:
  Search(std::span<const Case> cases, const ArchProfile& base)
      : cases_(cases), base_(base), at_(expected(base)), best_(loss(cases, with(base, at_))) {}

  // Compass search: each rate by itself, then two at a time, as some make up for others, a step up or down in
  // proportion; where none helps, the step is halved.
  ArchProfile run() {
    for (double step = 0.3; step > 1e-3;) {
      bool helped = false;
      for (std::size_t i = 0; i < at_.size(); ++i)
        helped = try_move(i, step, i, 0) || try_move(i, -step, i, 0) || helped;
      for (std::size_t i = 0; i < at_.size() && !helped; ++i)
        for (std::size_t j = 0; j < at_.size() && !helped; ++j)
          for (const double way : {step, -step}) helped = helped || (i != j && try_move(i, way, j, i < j ? way : -way));
      if (!helped) step /= 2;
    }
    for (double& value : at_) {
      const double digits = std::pow(10, 2 - std::floor(std::log10(value)));
      value = value < 0.01 ? 0 : std::round(value * digits) / digits;
    }
    return with(base_, at_);
  }

 private:
  void move(Rates& to, std::size_t i, double step) const {
    to[i] = std::clamp(to[i] * std::exp(step), slowest, most_of(rates[i]));
  }
  bool try_move(std::size_t i, double step, std::size_t j, double other) {
    Rates next = at_;
    move(next, i, step);
    move(next, j, other);
    const double l = loss(cases_, with(base_, next));
    if (l >= best_) return false;
    best_ = l, at_ = next;
    return true;
  }

  std::span<const Case> cases_;
  const ArchProfile& base_;
  Rates at_;
  double best_;
};

auto key_of(const GemmRow& r) {
  return std::tuple(r.config, r.grid_x, r.grid_y, r.shape.m, r.shape.k, r.shape.n, r.shape.a, fidelity_of(r),
                    r.in0_sharded, r.out_sharded);
}

// Times of the same product, traced or not and in several releases, are within a few percent of each other.
std::vector<GemmRow> medians(std::span<const GemmRow> rows) {
  std::map<decltype(key_of(rows[0])), std::vector<const GemmRow*>> alike;
  for (const GemmRow& row : rows)
    if (row.cycles > 0) alike[key_of(row)].push_back(&row);
  std::vector<GemmRow> out;
  for (auto& [key, group] : alike) {
    std::sort(group.begin(), group.end(), [](const GemmRow* a, const GemmRow* b) { return a->cycles < b->cycles; });
    out.push_back(*group[group.size() / 2]);
    if (group.size() % 2 == 0) out.back().cycles = (out.back().cycles + group[group.size() / 2 - 1]->cycles) / 2;
  }
  return out;
}

}  // namespace

std::vector<GemmRow> read_gemm_rows(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!file || !std::getline(file, line)) throw ttc::bad_file(path, "cannot be read, or is empty");
  const Reader reader(path, line);
  std::vector<GemmRow> rows;
  for (int number = 2; std::getline(file, line); ++number)
    if (line.find_first_not_of(" \r") != std::string::npos) rows.push_back(reader.read(line, number));
  if (rows.empty()) throw ttc::bad_file(path, "holds no rows");
  return rows;
}

ArchProfile profile_of(const GemmRow& row, const std::string& path) {
  const std::string name = row.arch.substr(0, row.arch.find('('));
  ArchProfile profile;
  if (const auto arch = arch_from_string(name.substr(0, name.find('_')))) {
    profile = default_profile(*arch);
  } else {
    try {
      profile = find_profile(name);
    } catch (const ttc::Error& error) {
      throw ttc::bad_file(path, "line " + std::to_string(row.line) + ": " + error.what(), error.hint());
    }
  }
  if (row.grid_x > 0) profile.grid_x = row.grid_x, profile.grid_y = row.grid_y;
  return profile;
}

MathFidelity fidelity_of(const GemmRow& row) {
  if (!out_of_the_box(row)) return *math_fidelity_from_string(row.fidelity);
  return is_block_format(row.shape.a) && is_block_format(row.shape.b) ? MathFidelity::LoFi : MathFidelity::HiFi2;
}

MatmulProgram program_of(const GemmRow& row, const ArchProfile& profile) {
  const MatmulDevice device(profile);
  if (out_of_the_box(row)) return library_program(row.shape, device);
  MatmulProgram program = tuned_program(row.shape, row.in0_sharded, row.out_sharded, device);
  if (!single_core(row)) return program;
  program.in1_sharded = true, program.in0_block_w = row.shape.k_tiles();
  std::int64_t h = 0, w = 0;
  const std::size_t at = row.config.find("subblock");
  if (at != std::string::npos && std::sscanf(row.config.c_str() + at, "subblock%" SCNd64 "x%" SCNd64, &h, &w) == 2 &&
      h > 0 && w > 0)
    program.subblock_h = h, program.subblock_w = w;
  return program;
}

Time predict(const GemmRow& row, const ArchProfile& profile) {
  return matmul_time(whole_shape(row), program_of(row, profile), fidelity_of(row), profile);
}

std::span<const FittedRate> fitted_rates() { return rates; }

TimeFit fit_rates(std::span<const GemmRow> rows, const ArchProfile& base, const std::string& path) {
  TimeFit fit;
  fit.rows = medians(rows);
  std::vector<Case> cases;
  for (const GemmRow& row : fit.rows) {
    const ArchProfile profile = profile_of(row, path);
    cases.push_back({&row, profile, program_of(row, profile)});
  }
  fit.profile = Search(cases, base).run();
  using ShapeKey = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
  const auto shape_key = [](const Case& c) { return ShapeKey(c.row->shape.m, c.row->shape.k, c.row->shape.n); };
  std::map<ShapeKey, ArchProfile> without;
  for (const Case& c : cases) without.emplace(shape_key(c), base);
  for (auto& [left_out, profile] : without) {
    std::vector<Case> others;
    for (const Case& c : cases)
      if (shape_key(c) != left_out) others.push_back(c);
    profile = Search(others, base).run();
  }
  std::map<std::tuple<std::string, std::int64_t, std::int64_t>, GemmErrors, std::greater<>> groups;
  for (const Case& c : cases) {
    GemmErrors& e = groups[{c.row->config, c.profile.grid_x, c.profile.grid_y}];
    e.config = c.row->config, e.grid_x = c.profile.grid_x, e.grid_y = c.profile.grid_y;
    const double error = std::abs(error_of(c, fit.profile));
    e.rows += 1, e.mean += error, e.largest = std::max(e.largest, error);
    e.cross_validated += std::abs(error_of(c, without.at(shape_key(c))));
  }
  for (auto& [key, e] : groups) {
    e.mean /= static_cast<double>(e.rows), e.cross_validated /= static_cast<double>(e.rows);
    fit.errors.push_back(e);
  }
  return fit;
}

}  // namespace ttrt
