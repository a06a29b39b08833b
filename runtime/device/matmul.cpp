// The fast product: operand preparation, the division into tasks, and what happens to a tile of sums before it leaves.
#include "device/matmul.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "device/tile_formats_device.h"
#include "device/matmul_finish.h"
#include "device/matmul_plan.h"
#include "device/parallel.h"
#include "support/error.h"

namespace ttrt {
namespace {

using detail::Bringer;
using detail::CacheLine;
using detail::Operand;
using detail::Operands;
using detail::Range;

std::int64_t tiles_of(std::int64_t n) { return round_up(n, tile_dim) / tile_dim; }

// Products below this many multiply-adds are not worth waking other threads for.
constexpr std::int64_t serial_macs = 1 << 18;

}  // namespace

std::uint32_t matmul_kept_bits_a(MathFidelity f) { return f < MathFidelity::HiFi3 ? 0xFFFE0000 : 0xFFFFE000; }
std::uint32_t matmul_kept_bits_b(MathFidelity f) { return f == MathFidelity::LoFi ? 0xFFF80000 : 0xFFFFC000; }

namespace {

// A task's most tiles of rows, for which a panel is unpacked once, and panels, and the tiles of sums that it holds at a
// time. Blocks, which multiply faster than rows come from beyond the second cache, have their sums and rows there.
constexpr std::int64_t max_row_tiles = 32, max_panels = 8, max_sums = 32;
constexpr std::int64_t max_row_tiles_of_blocks = 16, max_sums_of_blocks = max_row_tiles_of_blocks * max_panels;
// Tiles of k that are unpacked for a panel at a time: few for few rows, which then read tiles in the order in which
// they are stored; else what fits beside a row's and its sums into a core's first cache, a little more where that is
// all.
constexpr std::int64_t k_tiles_few = 1, panel_bytes = 16 << 10, whole_panel_bytes = 24 << 10;
// Rows of a task that take more are read from beyond a core's second cache for each panel.
constexpr std::int64_t near_bytes = 512 << 10;
// Tiles of rows for which a panel is unpacked at least, where fewer would be nearer: floats are multiplied more slowly.
constexpr std::int64_t least_near_pairs = 16, least_near_floats = 8;

// Too many for a thread's stack; it keeps them for its next task.
float* sums_of_blocks() {
  constexpr auto bytes = static_cast<std::size_t>(max_sums_of_blocks * tile_elements) * sizeof(float);
  thread_local std::vector<CacheLine> sums(bytes / sizeof(CacheLine));
  return reinterpret_cast<float*>(sums.data());
}

}  // namespace

Matmul::Plan::Plan(MatmulSpec s) : spec(std::move(s)) {
  TTC_CHECK(spec.batch >= 0 && spec.m >= 0 && spec.k > 0 && spec.n >= 0, "a product of these sizes");
  TTC_CHECK(spec.b_batch > 0 && spec.batch % spec.b_batch == 0, "b's batch divides a's");
  TTC_CHECK(is_float_format(spec.a) && is_float_format(spec.b) && is_float_format(spec.out), "float formats");
  mt = item_tiles = tiles_of(spec.m), kt = tiles_of(spec.k), nt = tiles_of(spec.n);
  matrices = spec.batch;
  if (spec.bias) bias.resize(static_cast<std::size_t>(nt * tile_dim));
  serial = spec.batch * spec.m * spec.k * spec.n < serial_macs;
  keep_a = matmul_kept_bits_a(spec.config.math_fidelity), keep_b = matmul_kept_bits_b(spec.config.math_fidelity);
  if (spec.numerics == Numerics::exact) {
    exact = std::make_unique<MatmulExact>(spec);
    return;
  }
  if (spec.b_batch == 1 && spec.batch > 1 && spec.m > 0 && 2 * spec.m <= tile_dim) {
    items_per_tile = tile_dim / spec.m, matrices = 1;
    mt = (spec.batch + items_per_tile - 1) / items_per_tile;
  } else if (spec.b_batch == 1 && spec.batch > 0) {
    matrices = 1, mt *= spec.batch;  // those that meet the same b lie one below the other
  }
  activated = detail::activated_values(spec);
  kernels = &detail::matmul_kernels(spec.a != DataType::float32 && spec.b != DataType::float32);
  const bool pairs = kernels->operand == Operand::bf16_pairs;
  if (pairs) keep_a |= keep_a >> 16;
  a_tile_bytes = pairs ? 2048 : 4096;
  panel_tile_bytes = detail::panel_bytes_per_tile(kernels->operand);
  block = kernels->block;
  if (matrices == 1 && mt == 1 && !spec.transpose_b && detail::FewRows::takes(kernels->operand, spec.b, rows_in(0)))
    few.emplace(kernels->operand, spec.b, rows_in(0), spec.k, keep_a, keep_b);
  const DataType direct = pairs ? DataType::bfloat16 : DataType::float32;
  copies_a = spec.a != direct || block != nullptr || items_per_tile > 1;
  keep_strip = copies_a && !pairs ? detail::keeps_all : keep_a;
  few ? divide_few() : divide();
}

void Matmul::Plan::divide() {
  const bool parts_of_k = block != nullptr && kt * panel_tile_bytes > whole_panel_bytes;
  row_tiles_per_task = std::min(mt, parts_of_k ? max_row_tiles_of_blocks : max_row_tiles);
  // Fewer where these stay near, and with them the panel that is brought meanwhile.
  const std::int64_t least = kernels->operand == Operand::floats ? least_near_floats : least_near_pairs;
  for (std::int64_t fewer = max_row_tiles / 2; block == nullptr && fewer >= least; fewer /= 2) {
    if (row_tiles_per_task <= fewer || fewer * kt * a_tile_bytes > near_bytes) continue;
    row_tiles_per_task = fewer;
    break;
  }
  std::int64_t panels_per_task = std::min(nt, max_panels);
  const std::int64_t wanted = 4 * std::int64_t{parallel_threads()};
  const auto tasks = [&] {
    row_tasks = mt == 0 ? 0 : (mt + row_tiles_per_task - 1) / row_tiles_per_task;
    panel_tasks = nt == 0 ? 0 : (nt + panels_per_task - 1) / panels_per_task;
    if (row_tasks > 0) row_tiles_per_task = (mt + row_tasks - 1) / row_tasks;
    return matrices * row_tasks * panel_tasks;
  };
  // Of a block's task the rows are read again for each panel, and the panels unpacked again for all rows.
  while (block != nullptr && tasks() < wanted && row_tiles_per_task * panels_per_task > 1) {
    std::int64_t& longer = row_tiles_per_task >= panels_per_task ? row_tiles_per_task : panels_per_task;
    longer = (longer + 1) / 2;
  }
  while (tasks() < wanted && panels_per_task > 1) panels_per_task = (panels_per_task + 1) / 2;
  while (tasks() < wanted && row_tiles_per_task > 1) row_tiles_per_task = (row_tiles_per_task + 1) / 2;
  // As many tasks for each thread.
  if (const std::int64_t threads = parallel_threads(); matrices * row_tasks % threads != 0)
    panel_tasks = std::min(round_up(panel_tasks, threads), nt);
  far = row_tiles_per_task * kt * a_tile_bytes > near_bytes;
}

void Matmul::Plan::set_b(const std::byte* tiles) {
  if (!exact) return;
  exact->set_b(tiles);
  b_ready = true;
}

void Matmul::Plan::fill_bias(const std::byte* tiles) {
  TTC_CHECK(spec.bias.has_value(), "a bias was declared");
  alignas(64) float whole[tile_elements];
  for (std::int64_t t = 0; t < nt; ++t) {
    unpack_tile(*spec.bias, tiles + t * tile_bytes(*spec.bias), whole);
    std::copy_n(whole, 16, bias.data() + t * tile_dim);
    std::copy_n(whole + face_elements, 16, bias.data() + t * tile_dim + 16);
  }
}

// A tile of rows of several matrices as the kernels read them, zeros below them.
void Matmul::Plan::join_rows(const std::byte* tiles, std::int64_t row_tile, std::int64_t k_tile, std::byte* out) const {
  const std::int64_t size = tile_bytes(spec.a), first = row_tile * items_per_tile;
  std::memset(out, 0, static_cast<std::size_t>(a_tile_bytes));
  for (std::int64_t i = 0; i < items_in(row_tile); ++i) {
    const std::byte* tile = tiles + ((first + i) * kt + k_tile) * size;
    if (kernels->operand == Operand::bf16_pairs) {
      alignas(64) std::uint16_t values[tile_elements];
      const bool whole = spec.a == DataType::bfloat16;
      if (!whole) unpack_tile_bf16(spec.a, tile, values);
      detail::copy_tile_rows(whole ? reinterpret_cast<const std::uint16_t*>(tile) : values, 0, spec.m,
                             reinterpret_cast<std::uint16_t*>(out), i * spec.m);
    } else {
      alignas(64) float values[tile_elements];
      detail::float_rows(spec.a, tile, spec.m, keep_a, reinterpret_cast<std::byte*>(values));
      detail::copy_tile_rows(values, 0, spec.m, reinterpret_cast<float*>(out), i * spec.m);
    }
  }
}

const std::byte* Matmul::Plan::read_a(const std::byte* tiles) {
  if (!copies_a) return tiles;
  const std::int64_t tile_size = tile_bytes(spec.a), count = matrices * mt * kt;
  std::byte* copy = detail::copy_of_a(count * a_tile_bytes);
  const bool joined = items_per_tile > 1;
  parallel_for(count, !serial, [&](std::int64_t t) {
    std::byte* out = copy + t * a_tile_bytes;
    const std::byte* tile = tiles + t * tile_size;
    if (block != nullptr) {
      alignas(64) std::byte values[tile_elements * 2];
      if (joined) {
        join_rows(tiles, t / kt, t % kt, values);
      } else if (spec.a != DataType::bfloat16) {
        unpack_tile_bf16(spec.a, tile, reinterpret_cast<std::uint16_t*>(values));
      }
      detail::pack_block_rows(joined || spec.a != DataType::bfloat16 ? values : tile, keep_a, rows_in(t / kt % mt),
                              spec.k - t % kt * tile_dim, out);
    } else if (joined) {
      join_rows(tiles, t / kt, t % kt, out);
    } else if (kernels->operand == Operand::bf16_pairs) {
      unpack_tile_bf16(spec.a, tile, reinterpret_cast<std::uint16_t*>(out));
    } else {
      detail::float_rows(spec.a, tile, rows_in(t / kt % mt), keep_a, out);  // cut, so that no strip has to
    }
  });
  return copy;
}

void Matmul::Plan::fill_panel(const std::byte* matrix, std::int64_t k_tile, std::int64_t column, std::byte* out) const {
  detail::fill_panel(kernels->operand, {spec.b, !spec.transpose_b, keep_b, spec.k - k_tile * tile_dim},
                     matrix + b_tile(k_tile, column) * tile_bytes(spec.b), out);
}

// A tile of rows times the panel's tiles k_tile and following. Meanwhile `lines` of the next panel are brought, some
// with each strip: a core waits for few at a time without standing still.
void Matmul::Plan::add_rows(const std::byte* a_row, const std::byte* panel, std::int64_t k_tile, std::int64_t k_tiles,
                            std::int64_t rows, float* sums, Bringer& next, std::int64_t lines,
                            detail::Beside* beside) const {
  if (block != nullptr) {
    next.bring(lines);
    return block->add(a_row + k_tile * a_tile_bytes, panel, k_tiles, rows, k_tile > 0, sums, beside);
  }
  const bool of_floats = kernels->operand == Operand::floats;  // whose rows have no room in the first cache
  const std::int64_t row_bytes = of_floats ? 64 : 32;
  const std::int64_t k = std::min(spec.k - k_tile * tile_dim, k_tiles * tile_dim);
  const auto place_of = [&](std::int64_t row) { return row / 16 * 32 * row_bytes + row % 16 * row_bytes; };
  const int strips = tile_dim / kernels->strip_rows;
  for (std::int64_t r = 0; r < rows; r += kernels->strip_rows) {
    const std::byte* strip = a_row + k_tile * a_tile_bytes + place_of(r);
    const int count = static_cast<int>(std::min<std::int64_t>(rows - r, kernels->strip_rows));
    next.bring((lines + strips - 1) / strips);
    const std::int64_t after = r + kernels->strip_rows;
    const std::int64_t next_strip = after < rows ? place_of(after) : kt * a_tile_bytes;
    kernels->strip(strip, panel, k, keep_strip, count, k_tile > 0, sums + r / 16 * 512 + r % 16 * 16,
                   far || of_floats ? next_strip - place_of(r) : 0, beside);
  }
}

// Tiles of k of a panel: as equal as can be, so that none is short.
std::int64_t Matmul::Plan::k_step() const {
  if (mt == 1 && kernels->operand == Operand::bf16_pairs) return k_tiles_few;
  if (kt * panel_tile_bytes <= whole_panel_bytes) return kt;
  const std::int64_t most = panel_bytes / panel_tile_bytes, steps = (kt + most - 1) / most;
  return (kt + steps - 1) / steps;
}

// What the panel after this one is made of: of the next column, of the next k, or of the columns that come after these,
// which are the next task's where these are the last of a task.
Bringer Matmul::Plan::next_panel(const std::byte* matrix, std::int64_t k_tile, std::int64_t step, std::int64_t column,
                                 Range columns) const {
  std::int64_t next = column + 1, k = k_tile;
  if (next == columns.last && k_tile + step < kt) next = columns.first, k = k_tile + step;
  if (next == columns.last) k = 0;
  const std::int64_t size = tile_bytes(spec.b), tiles = next < nt ? std::min(step, kt - k) : 0;
  return {matrix + b_tile(k, next) * size, tiles, (spec.transpose_b ? 1 : nt) * size, size};
}

// [column][row tile] tiles of sums, each of which leaves when the last product is added, beside the products of the
// next one: two in turn where there is one product of each. The next panel comes from memory beside the products with
// this one.
void Matmul::Plan::make(const Operands& run, std::int64_t item, Range rows, Range columns, float* sums) const {
  alignas(64) std::byte panel[whole_panel_bytes];
  detail::Beside beside(block != nullptr);
  const std::byte* matrix = run.b + item * spec.b_batch / matrices * kt * nt * tile_bytes(spec.b);
  const std::int64_t step = k_step();
  std::int64_t other = 0;
  for (std::int64_t k_tile = 0; k_tile < kt; k_tile += step) {
    const std::int64_t k_tiles = std::min(step, kt - k_tile);
    beside.expect(k_tiles * 2 * tile_dim / 8);
    float* to = sums;
    for (std::int64_t column = columns.first; column < columns.last; ++column) {
      for (std::int64_t t = 0; t < k_tiles; ++t) fill_panel(matrix, k_tile + t, column, panel + t * panel_tile_bytes);
      Bringer next = next_panel(matrix, k_tile, step, column, columns);
      const std::int64_t lines_a_row = next.lines() / (rows.last - rows.first) + 1;
      for (std::int64_t row = rows.first; row < rows.last; ++row) {
        add_rows(run.a + (item * mt + row) * kt * a_tile_bytes, panel, k_tile, k_tiles, rows_in(row), to, next,
                 lines_a_row, &beside);
        if (k_tile + k_tiles == kt) finish(run, item, row, column, to, beside);
        to = step < kt ? to + tile_elements : sums + (other ^= 1) * tile_elements;
      }
    }
  }
  beside.finish();
}

void Matmul::Plan::task(const Operands& run, std::int64_t index) const {
  const std::int64_t item = index / (row_tasks * panel_tasks);
  const std::int64_t first_row = index / panel_tasks % row_tasks * row_tiles_per_task;
  const std::int64_t part_of_columns = index % panel_tasks;
  const Range rows{first_row, std::min(first_row + row_tiles_per_task, mt)};
  const Range columns{nt * part_of_columns / panel_tasks, nt * (part_of_columns + 1) / panel_tasks};
  const bool of_blocks = block != nullptr;
  const std::int64_t most = of_blocks ? max_sums_of_blocks : max_sums;
  const std::int64_t at_once = std::min(max_panels, most / (rows.last - rows.first));
  alignas(64) float own[max_sums * tile_elements];
  float* sums = of_blocks ? sums_of_blocks() : own;
  if (block != nullptr) block->begin();
  for (Range part{columns.first, 0}; part.first < columns.last; part.first = part.last) {
    part.last = std::min(part.first + at_once, columns.last);
    make(run, item, rows, part, sums);
  }
  if (block != nullptr) block->end();
}

// A tile of sums; tiles of rows and columns by their number.
void Matmul::Plan::finish(const Operands& run, std::int64_t item, std::int64_t row, std::int64_t column, float* sums,
                          detail::Beside& beside) const {
  beside.finish();
  if (items_per_tile > 1) return finish_joined(run, row, column, sums);
  const float* added = spec.bias ? bias.data() + column * tile_dim : nullptr;
  std::byte* tile = result_tile(run, (item * mt + row) * nt + column);
  if (kernels->operand == Operand::bf16_pairs && rows_in(row) == tile_dim &&
      detail::matmul_finish_beside(spec, activated, added, sums, tile, beside))
    return;
  detail::matmul_finish(spec, activated, added, sums, rows_in(row), tile);
}

void Matmul::Plan::finish_joined(const Operands& run, std::int64_t row, std::int64_t column, float* sums) const {
  if (spec.bias) detail::add_bias_to_rows(sums, bias.data() + column * tile_dim, dest_of(spec.config) == Dest::bits32);
  detail::finish_values(spec, activated, sums);
  std::byte* tiles[tile_dim];
  for (std::int64_t i = 0; i < items_in(row); ++i)
    tiles[i] = result_tile(run, (row * items_per_tile + i) * nt + column);
  detail::pack_finished_rows(spec, sums, {tiles, static_cast<std::size_t>(items_in(row))});
}

void Matmul::Plan::multiply(const Operands& run) {
  if (few) return multiply_few(run);
  const std::int64_t count = matrices * row_tasks * panel_tasks;
  parallel_for(count, !serial, [&](std::int64_t i) { task(run, i); });
}

MatmulShape shape_of(const MatmulSpec& s) {
  return {.batch = s.batch,
          .b_batch = s.b_batch,
          .m = s.m,
          .k = s.k,
          .n = s.n,
          .a = s.a,
          .b = s.b,
          .out = s.out,
          .fp32_acc = s.config.fp32_dest_acc_en};
}

std::int64_t matmul_k_block(const MatmulSpec& spec) { return library_program(shape_of(spec), spec.device).in0_block_w; }

Matmul::Matmul(MatmulSpec spec) : plan_(std::make_unique<Plan>(std::move(spec))) {}
Matmul::~Matmul() = default;
Matmul::Matmul(Matmul&&) noexcept = default;
Matmul& Matmul::operator=(Matmul&&) noexcept = default;

const MatmulSpec& Matmul::spec() const { return plan_->spec; }

void Matmul::set_b(const std::byte* tiles) { plan_->set_b(tiles); }

void Matmul::set_bias(const std::byte* tiles) {
  plan_->fill_bias(tiles);
  plan_->bias_ready = true;
}

void Matmul::run(const std::byte* a, const std::byte* b, const std::byte* bias, std::byte* out, const TilePlace* place,
                 bool padding_is_zero) {
  TTC_CHECK(b != nullptr || plan_->b_ready, "b is given or was set");
  TTC_CHECK(!plan_->spec.bias || bias != nullptr || plan_->bias_ready, "the bias is given or was set");
  TTC_CHECK(place == nullptr || !plan_->exact, "tiles of fast products are placed");
  if (bias != nullptr) plan_->fill_bias(bias);
  if (place != nullptr) padding_is_zero = place->padding_is_zero;
  if (!plan_->exact) return plan_->multiply({plan_->read_a(a), b, out, place, padding_is_zero});
  if (!plan_->b_ready) plan_->exact->set_b(b);
  plan_->exact->run(a, plan_->bias.data(), out);
}

}  // namespace ttrt
