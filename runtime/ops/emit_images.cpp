// Dims before and behind the library's functions of images.
#include "ops/emit_images.h"

#include <algorithm>

namespace ttrt::ops {
namespace {

std::string tuple(const std::vector<std::int64_t>& values) {
  std::string out;
  for (const std::int64_t value : values) out += (out.empty() ? "" : ", ") + std::to_string(value);
  return "(" + out + ")";
}

// Dims behind the first (channels) moved before them, or back; `batched`: behind the batch.
std::string order(std::size_t rank, bool to_last, bool batched) {
  const std::size_t first = batched ? 1 : 0;
  std::vector<std::int64_t> out;
  if (batched) out.push_back(0);
  if (!to_last) out.push_back(static_cast<std::int64_t>(rank) - 1);
  for (std::size_t d = first; d + 1 < rank; ++d) out.push_back(static_cast<std::int64_t>(d + (to_last ? 1 : 0)));
  if (to_last) out.push_back(static_cast<std::int64_t>(first));
  return tuple(out);
}

}  // namespace

std::string python_pair(const std::vector<std::int64_t>& values, std::int64_t along) {
  return tuple(values.size() == 1 ? std::vector<std::int64_t>{along, values[0]} : values);
}

std::string python_borders(const std::vector<std::int64_t>& values, std::size_t dims) {
  const bool both = values.size() == 2 * dims;
  const auto before = [&](std::size_t d) { return values.at(d); };
  const auto after = [&](std::size_t d) { return values.at(both ? dims + d : d); };
  std::vector<std::int64_t> all;  // top, bottom, left, right
  if (dims == 1) all = {0, 0};
  for (std::size_t d = 0; d < dims; ++d) all.insert(all.end(), {before(d), after(d)});
  if (all[0] == all[1] && all[2] == all[3]) return tuple({all[0], all[2]});
  return tuple(all);
}

PythonImage::PythonImage(PythonCall& to, std::string_view operand, std::size_t dims) : dims(dims) {
  std::vector<std::string> sizes = to.sizes(operand);
  batched = sizes.size() == dims + 2;
  const std::size_t rank = sizes.size();
  if (!batched) sizes.insert(sizes.begin(), "1");
  batch = sizes[0], channels = sizes[1], height = dims == 1 ? "1" : sizes[2], width = sizes.back();
  variable =
      batched ? to.channels_last(operand)
              : to.let("channels_last", Python("ttnn.permute").arg(to.operand(operand)).arg(order(rank, true, false)));
  if (batched && dims == 2) return;
  variable = to.let("image", Python("ttnn.reshape").arg(variable).arg(python_list({batch, height, width, channels})));
}

void image_result(PythonCall& to, const PythonImage& x, const Python& made, const std::string& others) {
  std::vector<std::string> sizes = to.sizes();
  const std::size_t channels = x.batched ? 1 : 0, rank = sizes.size();
  std::rotate(sizes.begin() + static_cast<std::ptrdiff_t>(channels),
              sizes.begin() + static_cast<std::ptrdiff_t>(channels) + 1, sizes.end());
  const std::string rows = others.empty() ? to.let("rows", made) : to.let_first("rows", others, made);
  const Python shaped = Python("ttnn.reshape").arg(rows).arg(python_list(sizes));
  if (x.batched) return to.channels_last_result(shaped);
  const std::string last = to.let("image", shaped);
  to.result(Python("ttnn.permute").arg(last).arg(order(rank, false, false)).key("memory_config", to.memory_config()));
}

}  // namespace ttrt::ops
