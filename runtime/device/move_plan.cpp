// From affine copies to what run_plan executes: segments and whole tiles, or a transposition, or one after the other.
#include "device/move_plan.h"

#include <algorithm>
#include <limits>

#include "device/tile_formats.h"
#include "device/shard.h"
#include "support/error.h"

namespace ttrt {
namespace {

constexpr std::int64_t largest_output = std::int64_t{1} << 36;

struct PlacedSegment {
  std::int64_t row = 0;
  Segment segment;
};

DataType stored_format(DataType dtype) { return is_block_format(dtype) ? DataType::bfloat16 : dtype; }

std::uint32_t fill_bits(DataType stored, double value) {
  if (stored == DataType::bfloat16) return f32_to_bf16(static_cast<float>(value));
  if (stored == DataType::float32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return static_cast<std::uint32_t>(static_cast<std::int64_t>(value));
}

// Axes from the destination's outermost to its innermost, without those of size 1, neighbours merged where they can be.
std::vector<Axis> normalised(std::vector<Axis> axes) {
  std::erase_if(axes, [](const Axis& a) { return a.size == 1; });
  std::stable_sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) {
    return a.dst_row != b.dst_row ? a.dst_row > b.dst_row : a.dst_col > b.dst_col;
  });
  std::vector<Axis> merged;
  for (const Axis& inner : axes) {
    if (!merged.empty()) {
      Axis& outer = merged.back();
      const auto continues = [&](std::int64_t Axis::* step) { return outer.*step == inner.*step * inner.size; };
      if (continues(&Axis::src_row) && continues(&Axis::src_col) && continues(&Axis::dst_row) &&
          continues(&Axis::dst_col)) {
        const std::int64_t size = outer.size * inner.size;
        outer = inner;
        outer.size = size;
        continue;
      }
    }
    merged.push_back(inner);
  }
  return merged;
}

bool runs_along_rows(const std::vector<Axis>& axes) {
  return axes.empty() || (axes.back().dst_col == 1 && axes.back().dst_row == 0 && axes.back().src_row == 0);
}

void add_segments(const MovePlan& plan, const AffineCopy& copy, std::span<const Axis> outer, const Axis& inner,
                  std::vector<PlacedSegment>& out) {
  const Grid& grid = plan.in_grid[static_cast<std::size_t>(copy.input)];
  std::vector<std::int64_t> index(outer.size(), 0);
  AffineCopy at = copy;
  for (;;) {
    out.push_back(
        {at.dst_row,
         {grid.row_start(at.src_row), static_cast<std::int32_t>(at.src_col), static_cast<std::int32_t>(at.dst_col),
          static_cast<std::int32_t>(inner.size), static_cast<std::int32_t>(inner.src_col), copy.input}});
    std::size_t d = outer.size();
    for (; d > 0; --d) {  // odometer
      const Axis& a = outer[d - 1];
      const bool more = ++index[d - 1] < a.size;
      const std::int64_t by = more ? 1 : 1 - a.size;
      at.src_row += by * a.src_row, at.src_col += by * a.src_col, at.dst_row += by * a.dst_row,
          at.dst_col += by * a.dst_col;
      if (more) break;
      index[d - 1] = 0;
    }
    if (d == 0) return;
  }
}

void add_copy(const MovePlan& plan, const AffineCopy& copy, std::vector<PlacedSegment>& out) {
  for (const Axis& axis : copy.axes)
    if (axis.size == 0) return;
  const std::vector<Axis> axes = normalised(copy.axes);
  const bool runs = !axes.empty() && runs_along_rows(axes);
  const Axis single{.size = 1, .src_col = 1, .dst_col = 1};
  add_segments(plan, copy, std::span(axes).first(axes.size() - runs), runs ? axes.back() : single, out);
}

// Segments for the parts of each row that no segment covers.
void add_fill(const MovePlan& plan, std::vector<PlacedSegment>& segments) {
  const std::int64_t rows = plan.out_grid.batch * plan.out_grid.rows, cols = plan.out_grid.cols;
  std::vector<PlacedSegment> gaps;
  const auto gap = [&](std::int64_t row, std::int64_t from, std::int64_t to) {
    if (from < to)
      gaps.push_back(
          {row, {0, 0, static_cast<std::int32_t>(from), static_cast<std::int32_t>(to - from), 0, fill_input}});
  };
  std::size_t next = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t col = 0;
    for (; next < segments.size() && segments[next].row == row; ++next) {
      gap(row, col, segments[next].segment.dst_col);
      col = segments[next].segment.dst_col + segments[next].segment.count;
    }
    gap(row, col, cols);
  }
  segments.insert(segments.end(), gaps.begin(), gaps.end());
}

bool in_order(const PlacedSegment& a, const PlacedSegment& b) {
  return a.row != b.row ? a.row < b.row : a.segment.dst_col < b.segment.dst_col;
}

void place_segments(MovePlan& plan, std::vector<PlacedSegment> placed) {
  const auto sort = [&] {
    if (!std::is_sorted(placed.begin(), placed.end(), in_order))
      std::stable_sort(placed.begin(), placed.end(), in_order);
  };
  sort();
  if (plan.fill != 0 || !plan.out_grid.tiled) {  // tiles are zeroed as a whole
    add_fill(plan, placed);
    sort();
  }
  const std::int64_t rows = plan.out_grid.batch * plan.out_grid.rows;
  plan.segments.reserve(placed.size());
  plan.row_begin.reserve(static_cast<std::size_t>(rows) + 1);
  for (std::int64_t row = 0; row < rows; ++row) {
    plan.row_begin.push_back(static_cast<std::int64_t>(plan.segments.size()));
    while (plan.segments.size() < placed.size() && placed[plan.segments.size()].row == row)
      plan.segments.push_back(placed[plan.segments.size()].segment);
  }
  plan.row_begin.push_back(static_cast<std::int64_t>(plan.segments.size()));
  TTC_CHECK(plan.segments.size() == placed.size(), "a move writes outside its output");
}

// The segment of output row `row` that covers columns [col, col + width), or nullptr.
const Segment* covering(const MovePlan& plan, std::int64_t row, std::int64_t col, std::int64_t width) {
  const auto begin = plan.segments.begin() + plan.row_begin[static_cast<std::size_t>(row)];
  const auto end = plan.segments.begin() + plan.row_begin[static_cast<std::size_t>(row) + 1];
  auto it = std::upper_bound(begin, end, col, [](std::int64_t c, const Segment& s) { return c < s.dst_col; });
  if (it == begin) return nullptr;
  --it;
  const bool covers = it->dst_col + it->count >= col + width && it->step == 1 && it->input != fill_input;
  return covers ? &*it : nullptr;
}

// The source tile that the output tile at (band, tile_col) equals, padding included; -1 where there is none.
std::int64_t source_tile(const MovePlan& plan, std::int64_t band, std::int64_t tile_col, std::int32_t& input) {
  const Grid& out = plan.out_grid;
  const std::int64_t first = band % out.tile_rows * tile_dim, row = band / out.tile_rows * out.rows + first;
  const std::int64_t height = std::min(tile_dim, out.rows - first), col = tile_col * tile_dim;
  const std::int64_t width = std::min(tile_dim, out.cols - col);
  const Segment* top = covering(plan, row, col, width);
  if (!top) return -1;
  const Grid& in = plan.in_grid[static_cast<std::size_t>(top->input)];
  const std::int64_t src_col = top->src_col + col - top->dst_col;
  if (!in.tiled || src_col % tile_dim != 0 || std::min(tile_dim, in.cols - src_col) != width) return -1;
  const std::int64_t band_elements = in.tile_cols * tile_elements;
  if (top->src % band_elements != 0) return -1;  // not the first row of a tile
  const std::int64_t src_band = top->src / band_elements;
  if (std::min(tile_dim, in.rows - src_band % in.tile_rows * tile_dim) != height) return -1;
  for (std::int64_t r = 1; r < height; ++r) {
    const Segment* s = covering(plan, row + r, col, width);
    const std::int64_t expected = top->src + (r >= face_dim ? 512 : 0) + r % face_dim * face_dim;
    if (!s || s->input != top->input || s->src_col - s->dst_col != top->src_col - top->dst_col || s->src != expected)
      return -1;
  }
  input = top->input;
  return src_band * in.tile_cols + src_col / tile_dim;
}

void find_whole_tiles(MovePlan& plan) {
  constexpr std::int64_t longest_run = 128;  // tiles; leaves work to share among threads
  const Grid& out = plan.out_grid;
  const std::int64_t bands = out.batch * out.tile_rows;
  plan.is_whole.assign(static_cast<std::size_t>(bands * out.tile_cols), 0);
  for (std::int64_t band = 0; band < bands; ++band) {
    bool loose = false;
    for (std::int64_t t = 0; t < out.tile_cols; ++t) {
      std::int32_t input = 0;
      const std::int64_t src = source_tile(plan, band, t, input), dst = band * out.tile_cols + t;
      if (src < 0) {
        loose = true;
        continue;
      }
      plan.is_whole[static_cast<std::size_t>(dst)] = 1;
      TileRun* last = plan.whole.empty() ? nullptr : &plan.whole.back();
      if (last && last->input == input && last->src + last->count == src && last->dst + last->count == dst &&
          last->count < longest_run) {
        ++last->count;
      } else {
        plan.whole.push_back({src, dst, 1, input});
      }
    }
    if (loose) plan.loose_bands.push_back(band);
  }
}

void finish_segments(MovePlan& plan, std::vector<PlacedSegment> placed) {
  place_segments(plan, std::move(placed));
  if (plan.out_grid.tiled) return find_whole_tiles(plan);
  const std::int64_t rows = plan.out_grid.batch * plan.out_grid.rows;
  for (std::int64_t band = 0; band * tile_dim < rows; ++band) plan.loose_bands.push_back(band);
}

// The one axis that fulfils `is`, or nullptr where there is none or more than one (`several` is then set).
template <typename Is>
const Axis* only_axis(const std::vector<Axis>& axes, bool& several, const Is& is) {
  const Axis* found = nullptr;
  for (const Axis& axis : axes) {
    if (!is(axis)) continue;
    several |= found != nullptr;
    found = &axis;
  }
  return found;
}

// Where the copy is a transposition of matrices of out_grid.rows x cols; false where it is not of that form.
bool find_transposition(MovePlan& plan, const AffineCopy& copy, const std::vector<Axis>& axes) {
  bool several = false;
  const Axis* across = only_axis(axes, several, [](const Axis& a) { return a.dst_col != 0; });
  const Axis* down = only_axis(axes, several, [](const Axis& a) { return a.dst_row == 1 && a.src_row == 0; });
  if (several || !across || across->src_col != 0 || across->size != plan.out_grid.cols || across->dst_col != 1)
    return false;
  if ((down ? down->size : 1) != plan.out_grid.rows || copy.dst_row != 0 || copy.dst_col != 0) return false;
  Transposition t{across->src_row, down ? down->src_col : 1, {}};
  t.matrices.resize(static_cast<std::size_t>(plan.out_grid.batch));
  std::vector<std::int64_t> index(axes.size(), 0);
  for (std::size_t m = 0; m < t.matrices.size(); ++m) {
    std::int64_t rest = static_cast<std::int64_t>(m) * plan.out_grid.rows;  // the matrix's first output row
    t.matrices[m] = {copy.src_row, copy.src_col};
    for (const Axis& a : axes) {  // outermost first: what remains of the row belongs to the inner axes
      if (&a == across || &a == down) continue;
      if (a.dst_row == 0) return false;
      const std::int64_t i = rest / a.dst_row;
      rest -= i * a.dst_row;
      t.matrices[m].row += i * a.src_row;
      t.matrices[m].col += i * a.src_col;
    }
    if (rest != 0) return false;
  }
  plan.transposition = std::move(t);
  return true;
}

// A transposition into a temporary tensor [others..., columns of the source, columns of the output], then segments.
// False where source or output has columns along more than one axis.
bool find_two_steps(MovePlan& plan, const AffineCopy& copy, const std::vector<Axis>& axes) {
  bool several = false;
  const Axis* across = only_axis(axes, several, [](const Axis& a) { return a.dst_col != 0; });
  const Axis* source_cols = only_axis(axes, several, [](const Axis& a) { return a.src_col != 0; });
  if (several || !across || !source_cols || across == source_cols || source_cols->src_row != 0 || plan.fill != 0)
    return false;
  std::vector<const Axis*> order;
  for (const Axis& a : axes)
    if (&a != across && &a != source_cols) order.push_back(&a);
  order.push_back(source_cols);
  TensorSpec between{{}, plan.stored, Layout::tile, {}};
  for (const Axis* a : order) between.logical.push_back(a->size);
  between.logical.push_back(across->size);
  const std::vector<Step> steps = steps_of(between.logical);
  AffineCopy one{copy.input, copy.src_row, copy.src_col, 0, 0, {}};
  AffineCopy two{0, 0, 0, copy.dst_row, copy.dst_col, {}};
  for (std::size_t i = 0; i < order.size(); ++i) {
    one.axes.push_back({order[i]->size, order[i]->src_row, order[i]->src_col, steps[i].row, 0});
    two.axes.push_back({order[i]->size, steps[i].row, 0, order[i]->dst_row, 0});
  }
  one.axes.push_back({across->size, across->src_row, 0, 0, 1});
  two.axes.push_back({across->size, 0, 1, 0, across->dst_col});
  auto first = std::make_shared<MovePlan>();
  first->in = plan.in;
  for (TensorSpec& spec : first->in) spec.dtype = plan.stored;
  first->out = between;
  first->in_grid = plan.in_grid;
  first->out_grid = Grid(between);
  first->stored = plan.stored;
  std::vector<Axis> first_axes = one.axes;
  if (!find_transposition(*first, one, first_axes)) return false;
  plan.first = std::move(first);
  plan.in_grid = {Grid(between)};
  std::vector<PlacedSegment> placed;
  add_copy(plan, two, placed);
  finish_segments(plan, std::move(placed));
  return true;
}

std::shared_ptr<MovePlan> new_plan(std::vector<TensorSpec> in, TensorSpec out, double fill) {
  check_spec(out);
  if (out.nbytes() > largest_output)
    throw ttc::usage_error("the result of moving data would take " + std::to_string(out.nbytes()) +
                           " bytes, more than any device has");
  auto plan = std::make_shared<MovePlan>();
  plan->stored = stored_format(out.dtype);
  plan->fill = fill_bits(plan->stored, fill);
  for (const TensorSpec& spec : in) {
    if (spec.dtype != out.dtype) throw ttc::usage_error("tensors of different formats cannot be moved into one");
    plan->in_grid.emplace_back(spec);
  }
  plan->in = std::move(in);
  plan->out_grid = Grid(out);
  plan->out = std::move(out);
  for (const Grid& grid : plan->in_grid)
    if (grid.cols > std::numeric_limits<std::int32_t>::max())
      throw ttc::usage_error("a last dim of more than 2^31 - 1 elements cannot be moved");
  if (plan->out_grid.cols > std::numeric_limits<std::int32_t>::max())
    throw ttc::usage_error("a last dim of more than 2^31 - 1 elements cannot be moved");
  return plan;
}

}  // namespace

Grid::Grid(const TensorSpec& spec)
    : tiled(spec.layout == Layout::tile),
      batch(spec.batch()),
      rows(spec.rows()),
      cols(spec.cols()),
      tile_rows(spec.tile_rows()),
      tile_cols(spec.tile_cols()) {}

std::int64_t Grid::row_start(std::int64_t row) const {
  if (!tiled) return row * cols;
  const std::int64_t r = row % rows;
  const std::int64_t band = row / rows * tile_rows + r / tile_dim;
  return band * tile_cols * tile_elements + (r % tile_dim >= face_dim ? 512 : 0) + r % face_dim * face_dim;
}

std::vector<Step> steps_of(const Shape& shape) {
  std::vector<Step> steps(shape.size());
  if (shape.empty()) return steps;
  steps.back().col = 1;
  std::int64_t rows = 1;
  for (std::size_t i = shape.size() - 1; i-- > 0;) {
    steps[i].row = rows;
    rows *= shape[i];
  }
  return steps;
}

Move make_move(std::vector<TensorSpec> in, TensorSpec out, std::vector<AffineCopy> copies, double fill) {
  auto plan = new_plan(std::move(in), std::move(out), fill);
  if (volume(plan->out.logical) == 0) return Move(plan);
  if (copies.size() == 1) {
    const std::vector<Axis> axes = normalised(copies[0].axes);
    const bool empty = std::any_of(axes.begin(), axes.end(), [](const Axis& a) { return a.size == 0; });
    if (!empty && !runs_along_rows(axes)) {
      if (find_transposition(*plan, copies[0], axes) || find_two_steps(*plan, copies[0], axes)) return Move(plan);
    }
  }
  std::vector<PlacedSegment> placed;
  for (const AffineCopy& copy : copies) add_copy(*plan, copy, placed);
  finish_segments(*plan, std::move(placed));
  return Move(plan);
}

Move make_reshape(const TensorSpec& in, TensorSpec out) {
  auto plan = new_plan({in}, std::move(out), 0);
  const std::int64_t elements = volume(plan->out.logical), from = plan->in_grid[0].cols, to = plan->out_grid.cols;
  if (elements == 0) return Move(plan);
  std::vector<PlacedSegment> placed;
  for (std::int64_t at = 0; at < elements;) {
    const std::int64_t src_col = at % from, dst_col = at % to, count = std::min(from - src_col, to - dst_col);
    placed.push_back({at / to,
                      {plan->in_grid[0].row_start(at / from), static_cast<std::int32_t>(src_col),
                       static_cast<std::int32_t>(dst_col), static_cast<std::int32_t>(count), 1, 0}});
    at += count;
  }
  finish_segments(*plan, std::move(placed));
  return Move(plan);
}

Move::Move(std::shared_ptr<const MovePlan> plan) : plan_(std::move(plan)) {}
const TensorSpec& Move::output() const { return plan_->out; }
std::size_t Move::inputs() const { return plan_->in.size(); }

std::vector<std::int64_t> Move::tile_places() const {
  const MovePlan& plan = *plan_;
  if (plan.in.size() != 1 || plan.transposition || plan.first || !plan.loose_bands.empty()) return {};
  std::vector<std::int64_t> places(static_cast<std::size_t>(plan.in[0].tiles()), -1);
  for (const TileRun& run : plan.whole) {
    if (run.input != 0) return {};
    for (std::int64_t t = 0; t < run.count; ++t) {
      std::int64_t& place = places[static_cast<std::size_t>(run.src + t)];
      if (place >= 0) return {};
      place = run.dst + t;
    }
  }
  return places;
}

void Move::run(std::span<const std::byte* const> in, std::byte* out) const {
  TTC_CHECK(in.size() == plan_->in.size(), "a move needs as many inputs as it was planned for");
  run_plan(*plan_, in, out);
}

}  // namespace ttrt
