// Panels side by side, in the colours and letters of the project's other plots.
#include "model_plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "support/atomic_file.h"

namespace ttc {
namespace {

constexpr double panel = 330, margin = 56, between = 30;

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

// A panel's decades and where a number of cycles lies in it.
struct Scale {
  double low = 3, high = 4;

  explicit Scale(const ttrt::TimeFit& fit) {
    double smallest = 1e12, largest = 1;
    for (const ttrt::GemmRow& row : fit.rows)
      smallest = std::min(smallest, row.cycles), largest = std::max(largest, row.cycles);
    low = std::floor(std::log10(std::min(smallest, largest))), high = std::ceil(std::log10(largest));
    if (high <= low) high = low + 1;
  }
  double at(double cycles) const { return (std::log10(std::max(cycles, 1.0)) - low) / (high - low) * panel; }
};

std::string text(double x, double y, const std::string& what, const std::string& anchor = "middle") {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" + anchor + "\">" + what + "</text>\n";
}

std::string axes(const Scale& scale, double left, double top) {
  std::string out;
  for (double decade = scale.low; decade <= scale.high; ++decade) {
    const double d = scale.at(std::pow(10, decade));
    const std::string label =
        "10<tspan dy=\"-5\" font-size=\"9\">" + std::to_string(static_cast<int>(decade)) + "</tspan>";
    out += "<path class=\"grid\" d=\"M" + number(left + d) + " " + number(top) + "v" + number(panel) + "M" +
           number(left) + " " + number(top + panel - d) + "h" + number(panel) + "\"/>\n";
    out += text(left + d, top + panel + 18, label) + text(left - 8, top + panel - d + 4, label, "end");
  }
  return out + "<path class=\"even\" d=\"M" + number(left) + " " + number(top + panel) + "l" + number(panel) + " " +
         number(-panel) + "\"/>\n";
}

std::string points(const ttrt::TimeFit& fit, const Scale& scale, double left, double top) {
  std::string out;
  for (const ttrt::GemmRow& row : fit.rows) {
    ttrt::ArchProfile profile = fit.profile;
    if (row.grid_x > 0) profile.grid_x = row.grid_x, profile.grid_y = row.grid_y;
    const double predicted = ttrt::predict(row, profile).cycles;
    out += "<circle class=\"" + std::string(row.config == "oob" ? "oob" : "tuned") + "\" r=\"3\" cx=\"" +
           number(left + scale.at(row.cycles)) + "\" cy=\"" + number(top + panel - scale.at(predicted)) + "\"><title>" +
           row.config + " " + row.dtype + " " + std::to_string(row.shape.m) + "x" + std::to_string(row.shape.k) + "x" +
           std::to_string(row.shape.n) + "</title></circle>\n";
  }
  return out;
}

}  // namespace

void write_fit_plot(const std::string& path, const std::vector<ttrt::TimeFit>& fits) {
  const double width = margin + static_cast<double>(fits.size()) * (panel + margin) + between, height = panel + 110;
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + number(width) + " " + number(height) +
                    "\" font-family=\"sans-serif\" font-size=\"12\">\n<style>.grid{stroke:#ddd}.even{stroke:#888;"
                    "stroke-dasharray:4 3}.tuned{fill:#1f77b4;fill-opacity:.65}.oob{fill:#ff7f0e;fill-opacity:.65}"
                    "text{fill:#333}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
  double left = margin + 6;
  for (const ttrt::TimeFit& fit : fits) {
    const Scale scale(fit);
    svg += text(left + panel / 2, 22,
                fit.profile.name + ": predicted cycles of " + std::to_string(fit.rows.size()) + " products") +
           axes(scale, left, 36) + points(fit, scale, left, 36) +
           text(left + panel / 2, 36 + panel + 40, "measured device cycles");
    left += panel + margin + between / 2;
  }
  const double y = 36 + panel + 62, x = margin + 12;
  svg += "<circle class=\"tuned\" r=\"4\" cx=\"" + number(x) + "\" cy=\"" + number(y - 4) + "\"/>" +
         text(x + 10, y, "tuned", "start") + "<circle class=\"oob\" r=\"4\" cx=\"" + number(x + 70) + "\" cy=\"" +
         number(y - 4) + "\"/>" + text(x + 80, y, "out of the box", "start") +
         text(x + 190, y, "dashed: predicted as measured", "start") + "</svg>\n";
  write_file(path, svg);
}

}  // namespace ttc
