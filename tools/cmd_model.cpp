// ttc model: the time model of matrix products against published ones.
#include <iostream>

#include "command.h"
#include "device/time_fit.h"
#include "json_out.h"
#include "model_plot.h"
#include "support/atomic_file.h"
#include "support/error.h"
#include "table.h"

namespace ttc {
namespace {

struct Flags {
  std::string what, file, plot;
  bool markdown = false;
} flags;

void options(FlagSet& app) {
  app.add_option("what", flags.what, "fit: rates from the rows, and how far the model is from them; predict: each row")
      .required()
      .one_of({"fit", "predict"});
  app.add_option("file", flags.file, "A table of products: CSV with arch, m, k, n, dtype, fidelity, ...").required();
  app.add_option("--plot", flags.plot, "fit: write predicted over measured cycles as an SVG").result();
  app.add_flag("--md", flags.markdown, "As Markdown tables").of_text();
}

void print(const Table& table) { std::cout << (flags.markdown ? table.markdown() : table.text()); }

std::string percent(double share) { return number_text(100 * share, 3) + " %"; }

int predict(const Globals& globals, const std::vector<ttrt::GemmRow>& rows) {
  OrderedJson json = OrderedJson::array();
  Table table({"arch", ">m", ">k", ">n", "dtype", "fidelity", "config", ">cycles", "bound", "program"});
  for (const ttrt::GemmRow& row : rows) {
    const ttrt::ArchProfile profile = ttrt::profile_of(row, flags.file);
    const ttrt::Time time = ttrt::predict(row, profile);
    const std::string program = to_string(ttrt::program_of(row, profile));
    const auto cycles = static_cast<std::int64_t>(time.cycles + 0.5);
    table.row({row.arch, std::to_string(row.shape.m), std::to_string(row.shape.k), std::to_string(row.shape.n),
               row.dtype, row.fidelity, row.config, std::to_string(cycles), std::string(to_string(time.bound)),
               program});
    json.push_back({{"arch", row.arch},
                    {"m", row.shape.m},
                    {"k", row.shape.k},
                    {"n", row.shape.n},
                    {"dtype", row.dtype},
                    {"fidelity", row.fidelity},
                    {"config", row.config},
                    {"cycles", cycles},
                    {"us", time.us},
                    {"bound", to_string(time.bound)},
                    {"program", program},
                    {"runs_at", to_string(ttrt::fidelity_of(row))}});
    if (row.cycles > 0) json.back()["measured_cycles"] = row.cycles;
  }
  globals.json ? print_json({{"rows", json}}) : print(table);
  return 0;
}

// Rows of one board by their profile's name; rows without measured cycles, and those of single cores, fit nothing.
std::vector<ttrt::TimeFit> fits_of(const Globals& globals, const std::vector<ttrt::GemmRow>& rows) {
  std::vector<ttrt::TimeFit> fits;
  std::size_t left = 0;
  for (const ttrt::ArchProfile& profile : ttrt::arch_profiles()) {
    std::vector<ttrt::GemmRow> own;
    for (const ttrt::GemmRow& row : rows)
      if (ttrt::profile_of(row, flags.file).name == profile.name && row.cycles > 0 && !row.config.starts_with("single"))
        own.push_back(row);
    left += own.size();
    if (own.empty()) continue;
    const Timed timed(globals, "fit " + profile.name);
    fits.push_back(ttrt::fit_rates(own, profile, flags.file));
  }
  if (fits.empty())
    throw bad_file(flags.file, "no row has measured device cycles", "they stand in the column device_cycles_implied");
  detail(globals, std::to_string(rows.size() - left) + " rows have no device cycles to fit");
  return fits;
}

int fit(const Globals& globals, const std::vector<ttrt::GemmRow>& rows) {
  const std::vector<ttrt::TimeFit> fits = fits_of(globals, rows);
  std::vector<std::string> header{"rate"};
  for (const auto& f : fits)
    header.insert(header.end(), {">" + f.profile.name + " fitted", ">" + f.profile.name + " built in"});
  Table rates(header), errors({"board", "grid", "config", ">products", ">mean error", ">largest", ">cross-validated"});
  for (const ttrt::FittedRate& rate : ttrt::fitted_rates()) {
    std::vector<std::string> cells{std::string(rate.key)};
    for (const auto& f : fits)
      cells.insert(cells.end(),
                   {number_text(f.profile.*rate.member), number_text(ttrt::find_profile(f.profile.name).*rate.member)});
    rates.row(cells);
  }
  OrderedJson json = OrderedJson::array();
  for (const ttrt::TimeFit& f : fits) {
    OrderedJson board{{"arch", f.profile.name}, {"products", f.rows.size()}};
    for (const ttrt::FittedRate& rate : ttrt::fitted_rates())
      board["rates"][std::string(rate.key)] = {{"fitted", f.profile.*rate.member},
                                               {"built_in", ttrt::find_profile(f.profile.name).*rate.member}};
    for (const ttrt::GemmErrors& e : f.errors) {
      const std::string grid = std::to_string(e.grid_x) + "x" + std::to_string(e.grid_y);
      errors.row({f.profile.name, grid, e.config, std::to_string(e.rows), percent(e.mean), percent(e.largest),
                  percent(e.cross_validated)});
      board["errors"].push_back({{"grid", grid},
                                 {"config", e.config},
                                 {"products", e.rows},
                                 {"mean", e.mean},
                                 {"largest", e.largest},
                                 {"cross_validated", e.cross_validated}});
    }
    json.push_back(board);
  }
  if (!flags.plot.empty()) write_fit_plot(flags.plot, fits);
  if (globals.json) {
    print_json({{"fits", json}});
  } else {
    print(errors);
    std::cout << '\n';
    print(rates);
  }
  return 0;
}

int run(const Globals& globals) {
  if (!flags.plot.empty()) check_output(flags.plot);
  if (flags.what == "predict" && !flags.plot.empty())
    throw usage_error("--plot goes with fit: predict draws nothing", "ttc model fit " + flags.file + " --plot F.svg");
  const std::vector<ttrt::GemmRow> rows = ttrt::read_gemm_rows(flags.file);
  return flags.what == "fit" ? fit(globals, rows) : predict(globals, rows);
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_COMMAND({"model", "Fit the time model to published products, or predict them", ttc::options, ttc::run,
                      "ttc model fit tests/data/gemm.csv"})
