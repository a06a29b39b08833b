// The fast product: operand preparation, the division into tasks, and what happens to a tile of sums before it leaves.
#include "device/matmul.h"

#include <omp.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "device/tile_formats_device.h"
#include "device/matmul_exact.h"
#include "device/matmul_kernels.h"
#include "support/error.h"

namespace ttrt {
namespace {

using detail::Operand;

std::int64_t tiles_of(std::int64_t n) { return round_up(n, tile_dim) / tile_dim; }

// Products below this many multiply-adds are not worth waking other threads for.
constexpr std::int64_t serial_macs = 1 << 18;

void round_dest16(float* values) {
  for (int i = 0; i < tile_elements; ++i) values[i] = round_bf16_away(values[i]);
}

void round_nearest_even(float* values) {
  for (int i = 0; i < tile_elements; ++i) values[i] = bf16_to_f32(f32_to_bf16(values[i]));
}

void add_row(float* values, const float* bias, Dest dest) {
  for (int row = 0; row < 64; ++row) {
    const float* b = bias + row / 16 % 2 * 16;
    float* v = values + row * 16;
    if (dest == Dest::bits32) {
      for (int i = 0; i < 16; ++i) v[i] = cut_tf32(v[i]) + b[i];
    } else {
      for (int i = 0; i < 16; ++i) v[i] = round_bf16_away(v[i]) + b[i];
    }
  }
}

}  // namespace

std::uint32_t matmul_kept_bits_a(MathFidelity f) { return f < MathFidelity::HiFi3 ? 0xFFFE0000 : 0xFFFFE000; }
std::uint32_t matmul_kept_bits_b(MathFidelity f) { return f == MathFidelity::LoFi ? 0xFFF80000 : 0xFFFFC000; }

void matmul_add_bias(const MatmulSpec& spec, float bias, std::span<float> sums) {
  if (dest_of(spec.config) == Dest::bits32) {
    for (float& v : sums) v = cut_tf32(v) + bias;
  } else {
    for (float& v : sums) v = round_bf16_away(v) + bias;
  }
}

void matmul_finish(const MatmulSpec& spec, float* sums, std::int64_t rows, std::byte* tile) {
  const Dest dest = dest_of(spec.config);
  const bool dest16 = dest == Dest::bits16;
  const bool plain_bf16 = spec.out == DataType::bfloat16 && !spec.activation;
  if (dest16 && !plain_bf16) round_dest16(sums);
  if (spec.activation) {
    spec.activation(std::span<float>(sums, tile_elements));
    if (dest16) round_nearest_even(sums);
  }
  for (std::int64_t r = rows; r < tile_dim; ++r) {
    float* row = sums + r / 16 * 512 + r % 16 * 16;
    std::fill_n(row, 16, 0.0F);
    std::fill_n(row + face_elements, 16, 0.0F);
  }
  // Rounding to 16-bit Dest and the packer's rounding from 32 bits are the same to bfloat16: once is enough.
  pack_dest(spec.out, plain_bf16 ? Dest::bits32 : dest, sums, tile);
}

struct Matmul::Plan {
  explicit Plan(MatmulSpec s);
  void fill_b(const std::byte* tiles);
  void fill_bias(const std::byte* tiles);
  const std::byte* read_a(const std::byte* tiles);
  void multiply(const std::byte* a, std::byte* out);
  void task(const std::byte* a, std::byte* out, std::int64_t index) const;

  MatmulSpec spec;
  std::int64_t mt, kt, nt;  // tiles
  const detail::MatmulKernels* kernels;
  std::int64_t a_tile_bytes, panel_bytes;
  bool b_ready = false, bias_ready = false;
  bool serial;
  std::int64_t row_tiles_per_task, panels_per_task, row_tasks, panel_tasks;
  std::vector<std::uint32_t> panels;  // [b_batch][nt] panels of panel_bytes
  std::vector<std::uint32_t> a_copy;  // a in the kernels' element type, where its own differs
  std::vector<float> bias;
  std::unique_ptr<MatmulExact> exact;
};

Matmul::Plan::Plan(MatmulSpec s) : spec(std::move(s)) {
  TTC_CHECK(spec.batch >= 0 && spec.m >= 0 && spec.k > 0 && spec.n >= 0, "a product of these sizes");
  TTC_CHECK(spec.b_batch > 0 && spec.batch % spec.b_batch == 0, "b's batch divides a's");
  TTC_CHECK(is_float_format(spec.a) && is_float_format(spec.b) && is_float_format(spec.out), "float formats");
  mt = tiles_of(spec.m), kt = tiles_of(spec.k), nt = tiles_of(spec.n);
  if (spec.bias) bias.resize(static_cast<std::size_t>(nt * tile_dim));
  serial = spec.batch * spec.m * spec.k * spec.n < serial_macs;
  if (spec.numerics == Numerics::exact) {
    exact = std::make_unique<MatmulExact>(spec);
    return;
  }
  kernels = &detail::matmul_kernels(spec.a != DataType::float32 && spec.b != DataType::float32);
  const bool pairs = kernels->operand == Operand::bf16_pairs;
  a_tile_bytes = pairs ? 2048 : 4096;
  panel_bytes = kt * detail::panel_bytes_per_tile(kernels->operand);
  panels.resize(static_cast<std::size_t>(spec.b_batch * nt * panel_bytes / 4));
  const DataType direct = pairs ? DataType::bfloat16 : DataType::float32;
  if (spec.a != direct) a_copy.resize(static_cast<std::size_t>(spec.batch * mt * kt * a_tile_bytes / 4));

  row_tiles_per_task = std::min<std::int64_t>(mt, 4);
  panels_per_task = std::min<std::int64_t>(nt, 8);
  const std::int64_t wanted = 4 * static_cast<std::int64_t>(omp_get_max_threads());
  const auto tasks = [&] {
    row_tasks = mt == 0 ? 0 : (mt + row_tiles_per_task - 1) / row_tiles_per_task;
    panel_tasks = nt == 0 ? 0 : (nt + panels_per_task - 1) / panels_per_task;
    return spec.batch * row_tasks * panel_tasks;
  };
  while (tasks() < wanted && panels_per_task > 1) panels_per_task = (panels_per_task + 1) / 2;
  while (tasks() < wanted && row_tiles_per_task > 1) row_tiles_per_task = (row_tiles_per_task + 1) / 2;
}

void Matmul::Plan::fill_b(const std::byte* tiles) {
  if (exact) return exact->set_b(tiles);
  const std::int64_t tile_size = tile_bytes(spec.b);
  const std::uint32_t keep = matmul_kept_bits_b(spec.config.math_fidelity);
  const std::int64_t count = spec.b_batch * nt;
#pragma omp parallel for schedule(static) if (!serial)
  for (std::int64_t panel = 0; panel < count; ++panel) {
    const std::int64_t column = panel % nt;
    const std::byte* matrix = tiles + panel / nt * kt * nt * tile_size;
    std::byte* out = reinterpret_cast<std::byte*>(panels.data()) + panel * panel_bytes;
    for (std::int64_t t = 0; t < kt; ++t) {
      const std::byte* bytes = matrix + (spec.transpose_b ? column * kt + t : t * nt + column) * tile_size;
      fill_panel(kernels->operand, {spec.b, !spec.transpose_b, keep, spec.k - t * tile_dim}, bytes,
                 out + t * detail::panel_bytes_per_tile(kernels->operand));
    }
  }
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

const std::byte* Matmul::Plan::read_a(const std::byte* tiles) {
  if (a_copy.empty()) return tiles;
  auto* copy = reinterpret_cast<std::byte*>(a_copy.data());
  const std::int64_t tile_size = tile_bytes(spec.a), count = spec.batch * mt * kt;
#pragma omp parallel for schedule(static) if (!serial)
  for (std::int64_t t = 0; t < count; ++t) {
    std::byte* out = copy + t * a_tile_bytes;
    if (kernels->operand == Operand::bf16_pairs) {
      unpack_tile_bf16(spec.a, tiles + t * tile_size, reinterpret_cast<std::uint16_t*>(out));
    } else {
      unpack_tile(spec.a, tiles + t * tile_size, reinterpret_cast<float*>(out));
    }
  }
  return copy;
}

void Matmul::Plan::task(const std::byte* a, std::byte* out, std::int64_t index) const {
  const std::int64_t item = index / (row_tasks * panel_tasks);
  const std::int64_t first_row = index / panel_tasks % row_tasks * row_tiles_per_task;
  const std::int64_t first_panel = index % panel_tasks * panels_per_task;
  const std::int64_t last_row = std::min(first_row + row_tiles_per_task, mt);
  const std::int64_t last_panel = std::min(first_panel + panels_per_task, nt);
  const std::int64_t b_item = item * spec.b_batch / spec.batch;
  const bool pairs = kernels->operand == Operand::bf16_pairs;
  std::uint32_t keep = matmul_kept_bits_a(spec.config.math_fidelity);
  if (pairs) keep |= keep >> 16;
  const std::int64_t row_bytes = pairs ? 32 : 64;

  alignas(64) float sums[tile_elements];
  for (std::int64_t column = first_panel; column < last_panel; ++column) {
    const auto* panel = reinterpret_cast<const std::byte*>(panels.data()) + (b_item * nt + column) * panel_bytes;
    for (std::int64_t row = first_row; row < last_row; ++row) {
      const std::byte* a_row = a + (item * mt + row) * kt * a_tile_bytes;
      const std::int64_t rows = std::min<std::int64_t>(spec.m - row * tile_dim, tile_dim);
      for (std::int64_t r = 0; r < rows; r += 8) {
        const std::byte* strip = a_row + r / 16 * 32 * row_bytes + r % 16 * row_bytes;
        const int count = static_cast<int>(std::min<std::int64_t>(rows - r, 8));
        kernels->strip(strip, panel, spec.k, keep, count, sums + r / 16 * 512 + r % 16 * 16);
      }
      if (spec.bias) add_row(sums, bias.data() + column * tile_dim, dest_of(spec.config));
      matmul_finish(spec, sums, rows, out + ((item * mt + row) * nt + column) * tile_bytes(spec.out));
    }
  }
}

void Matmul::Plan::multiply(const std::byte* a, std::byte* out) {
  const std::int64_t count = spec.batch * row_tasks * panel_tasks;
#pragma omp parallel for schedule(dynamic, 1) if (!serial)
  for (std::int64_t i = 0; i < count; ++i) task(a, out, i);
}

std::int64_t matmul_k_block(const MatmulSpec& spec) {
  const std::int64_t mt = tiles_of(spec.m), kt = tiles_of(spec.k), nt = tiles_of(spec.n);
  const std::int64_t long_side = std::max(mt, nt), short_side = std::max<std::int64_t>(std::min(mt, nt), 1);
  const bool narrow = short_side == 1 || long_side / short_side > 8 || (spec.batch == 1 && spec.b_batch > 1);
  if (narrow) return kt % 2 == 0 ? 2 : 1;
  return kt % spec.grid_x == 0 ? kt / spec.grid_x : 1;
}

Matmul::Matmul(MatmulSpec spec) : plan_(std::make_unique<Plan>(std::move(spec))) {}
Matmul::~Matmul() = default;
Matmul::Matmul(Matmul&&) noexcept = default;
Matmul& Matmul::operator=(Matmul&&) noexcept = default;

const MatmulSpec& Matmul::spec() const { return plan_->spec; }

void Matmul::set_b(const std::byte* tiles) {
  plan_->fill_b(tiles);
  plan_->b_ready = true;
}

void Matmul::set_bias(const std::byte* tiles) {
  plan_->fill_bias(tiles);
  plan_->bias_ready = true;
}

void Matmul::run(const std::byte* a, const std::byte* b, const std::byte* bias, std::byte* out) {
  TTC_CHECK(b != nullptr || plan_->b_ready, "b is given or was set");
  TTC_CHECK(!plan_->spec.bias || bias != nullptr || plan_->bias_ready, "the bias is given or was set");
  if (b != nullptr) plan_->fill_b(b);
  if (bias != nullptr) plan_->fill_bias(bias);
  if (plan_->exact) return plan_->exact->run(a, plan_->bias.data(), out);
  plan_->multiply(plan_->read_a(a), out);
}

}  // namespace ttrt
