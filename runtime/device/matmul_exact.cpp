// Operand preparation, division into tasks and the way out of Dest for exact products.
#include "device/matmul_exact.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "device/cpu.h"
#include "device/tile_formats_device.h"
#include "device/fpu.h"
#include "device/matmul_exact_kernels.h"
#include "device/parallel.h"
#include "device/simd.h"

namespace ttrt {
namespace {

using detail::exact_tile_words;

// Products below this many multiply-adds are not worth waking other threads for.
constexpr std::int64_t serial_macs = 1 << 15;

// Source registers take float32 as TF32 in 32-bit Dest mode, as bfloat16 otherwise.
SrcFormat src_of(const ComputeConfig& config) {
  return config.fp32_dest_acc_en ? SrcFormat::tf32 : SrcFormat::bfloat16;
}

void take_apart_a(const float* face_order, std::int16_t* out) {
  for (int row = 0; row < 32; ++row) {
    for (int half = 0; half < 2; ++half) {
      const float* in = face_order + (row / 16 * 2 + half) * face_elements + row % 16 * 16;
      std::int16_t* to = out + (half * 32 + row) * 48;
      for (int k = 0; k < 16; ++k) {
        const detail::ExactParts p = detail::exact_parts(in[k], false);
        to[k] = p.exponent, to[16 + k] = p.high, to[32 + k] = p.low;
      }
    }
  }
}

// `rows_are_k`: the tile holds [k, n], else [n, k]. Values of k from `valid_k` on count as zero.
void take_apart_b(const float* face_order, bool rows_are_k, std::int64_t valid_k, std::int16_t* out) {
  for (int i = 0; i < tile_elements; ++i) {
    const int row = i / 512 * 16 + i / 16 % 16, col = i / 256 % 2 * 16 + i % 16;
    const int k = rows_are_k ? row : col, n = rows_are_k ? col : row;
    const detail::ExactParts p = detail::exact_parts(k < valid_k ? face_order[i] : 0.0F, true);
    std::int16_t* to = out + k * 96 + n;
    to[0] = p.exponent, to[32] = p.high, to[64] = p.low;
  }
}

// dest[row * 32 + col] <-> face order.
template <typename From, typename To>
void to_faces(const From* rows, To* faces) {
  for (int row = 0; row < 32; ++row) {
    for (int half = 0; half < 2; ++half) {
      std::memcpy(faces + (row / 16 * 2 + half) * face_elements + row % 16 * 16, rows + row * 32 + half * 16, 64);
    }
  }
}
template <typename From, typename To>
void to_rows(const From* faces, To* rows) {
  for (int row = 0; row < 32; ++row) {
    for (int half = 0; half < 2; ++half) {
      std::memcpy(rows + row * 32 + half * 16, faces + (row / 16 * 2 + half) * face_elements + row % 16 * 16, 64);
    }
  }
}

// What the packer adds to a buffer in L1: float32 as IEEE does, bfloat16 to nearest even; denormals are zeros.
template <Dest mode>
struct AddInL1 {
  [[gnu::always_inline]] static inline std::uint32_t flushed(std::uint32_t bits) {
    return (bits & 0x7F800000) == 0 ? 0U : bits;
  }
  [[gnu::always_inline]] static inline void run(const std::int32_t* dest, float* buffer) {
    for (int i = 0; i < tile_elements; ++i) {
      const auto a = std::bit_cast<float>(flushed(static_cast<std::uint32_t>(dest[i])));
      const auto b = std::bit_cast<float>(flushed(std::bit_cast<std::uint32_t>(buffer[i])));
      const auto sum = flushed(std::bit_cast<std::uint32_t>(a + b));
      const std::uint32_t kept = mode == Dest::bits32 ? sum : flushed((sum + 0x7FFF + ((sum >> 16) & 1)) & 0xFFFF0000);
      buffer[i] = std::bit_cast<float>((sum & 0x7FFFFFFF) > 0x7F800000 ? 0x7FC00000U : kept);
    }
  }
};
void add_in_l1(const std::int32_t* dest, Dest mode, float* buffer) {
  mode == Dest::bits32 ? vectorised<AddInL1<Dest::bits32>>(dest, buffer)
                       : vectorised<AddInL1<Dest::bits16>>(dest, buffer);
}

// The sums left Dest to memory and come back as sources. Rows that are not there stay as they are.
void add_bias(float* faces, std::int64_t rows, const float* bias, Dest mode) {
  alignas(64) float repeated[face_elements];
  for (int half = 0; half < 2; ++half) {
    for (int row = 0; row < 16; ++row) std::memcpy(repeated + row * 16, bias + half * 16, 64);
    for (std::int64_t first = 0; first < rows; first += 16) {
      float* face = faces + (first / 16 * 2 + half) * face_elements;
      const std::int64_t n = std::min<std::int64_t>(rows - first, 16) * 16;
      if (mode == Dest::bits32) std::transform(face, face + n, face, cut_tf32);
      fpu::add(face, repeated, face, n, mode);
    }
  }
}

std::int64_t tiles_of(std::int64_t n) { return round_up(n, tile_dim) / tile_dim; }

}  // namespace

detail::ExactKernel detail::exact_kernel() {
#if defined(__x86_64__)
  if (isa() >= Isa::avx512) return exact_avx512;
  if (isa() == Isa::avx2) return exact_avx2;
#endif
  return exact_portable;
}

MatmulExact::MatmulExact(const MatmulSpec& spec)
    : spec_(spec), mt_(tiles_of(spec.m)), kt_(tiles_of(spec.k)), nt_(tiles_of(spec.n)) {
  a_.resize(static_cast<std::size_t>(spec.batch * mt_ * kt_ * exact_tile_words));
  b_.resize(static_cast<std::size_t>(spec.b_batch * nt_ * kt_ * exact_tile_words));
  serial_ = spec.batch * spec.m * spec.k * spec.n < serial_macs;
  k_block_ = spec.k_block > 0 ? spec.k_block : matmul_k_block(spec);
  const std::int64_t blocks = (kt_ + k_block_ - 1) / k_block_;
  // Fewer blocks gain nothing from it, and the op library leaves it off.
  l1_acc_ = spec.config.packer_l1_acc && blocks > (spec.bias ? 1 : 2);
  spill_rounds_ = !l1_acc_ && !spec.config.fp32_dest_acc_en && is_block_format(spec.out);
}

void MatmulExact::set_b(const std::byte* tiles) {
  const std::int64_t count = spec_.b_batch * nt_ * kt_, size = tile_bytes(spec_.b);
  parallel_for(count, !serial_, [&](std::int64_t i) {
    const std::int64_t item = i / (nt_ * kt_), column = i / kt_ % nt_, t = i % kt_;
    const std::int64_t tile = item * nt_ * kt_ + (spec_.transpose_b ? column * kt_ + t : t * nt_ + column);
    alignas(64) float values[tile_elements];
    unpack_src(spec_.b, src_of(spec_.config), tiles + tile * size, values);
    take_apart_b(values, !spec_.transpose_b, spec_.k - t * tile_dim, b_.data() + i * exact_tile_words);
  });
}

void MatmulExact::run(const std::byte* a, const float* bias, std::byte* out) {
  const std::int64_t a_tiles = spec_.batch * mt_ * kt_, size = tile_bytes(spec_.a);
  parallel_for(a_tiles, !serial_, [&](std::int64_t i) {
    alignas(64) float values[tile_elements];
    unpack_src(spec_.a, src_of(spec_.config), a + i * size, values);
    take_apart_a(values, a_.data() + i * exact_tile_words);
  });
  const std::int64_t count = spec_.batch * mt_ * nt_;
  parallel_for(count, !serial_, [&](std::int64_t i) { task(i, bias, out); });
}

// One tile of the output; `index` is its position.
void MatmulExact::task(std::int64_t index, const float* bias, std::byte* out) const {
  const std::int64_t item = index / (mt_ * nt_), row = index / nt_ % mt_, column = index % nt_;
  const std::int64_t b_item = item * spec_.b_batch / spec_.batch;
  const std::int64_t rows = std::min<std::int64_t>(spec_.m - row * tile_dim, tile_dim);
  alignas(64) std::int32_t dest[tile_elements] = {};
  const detail::ExactStrip strip{.a = a_.data() + (item * mt_ + row) * kt_ * exact_tile_words,
                                 .b = b_.data() + (b_item * nt_ + column) * kt_ * exact_tile_words,
                                 .k_tiles = kt_,
                                 .rows = static_cast<int>(rows),
                                 .phases = static_cast<int>(spec_.config.math_fidelity) + 1,
                                 .dest32 = spec_.config.fp32_dest_acc_en};
  sum_blocks(strip, dest);
  finish(dest, rows, bias == nullptr ? nullptr : bias + column * tile_dim, out + index * tile_bytes(spec_.out));
}

// All k tiles, block by block, into a Dest that starts at zero.
void MatmulExact::sum_blocks(const detail::ExactStrip& strip, std::int32_t* dest) const {
  const detail::ExactKernel kernel = detail::exact_kernel();
  if (!l1_acc_ && !spill_rounds_) return kernel(strip, dest);
  const Dest mode = dest_of(spec_.config);
  alignas(64) float buffer[tile_elements] = {};
  for (std::int64_t first = 0; first < kt_; first += k_block_) {
    detail::ExactStrip block = strip;
    block.a += first * exact_tile_words;
    block.b += first * exact_tile_words;
    block.k_tiles = std::min(k_block_, kt_ - first);
    const bool last = first + k_block_ >= kt_;
    if (l1_acc_) {
      if (last && !spec_.bias) {
        std::memcpy(dest, buffer, sizeof(buffer));
        return kernel(block, dest);
      }
      std::fill_n(dest, tile_elements, 0);
      kernel(block, dest);
      add_in_l1(dest, mode, buffer);
      if (last) std::memcpy(dest, buffer, sizeof(buffer));
      continue;
    }
    kernel(block, dest);
    if (last && !spec_.bias) return;
    std::byte tile[4096];
    to_faces(dest, buffer);
    pack_dest(spec_.out, mode, buffer, tile);
    unpack_tile(spec_.out, tile, buffer);
    to_rows(buffer, dest);
  }
}

// Sums row by row -> bias, activation, packer.
void MatmulExact::finish(const std::int32_t* dest, std::int64_t rows, const float* bias, std::byte* tile) const {
  const Dest mode = dest_of(spec_.config);
  alignas(64) float values[tile_elements];
  to_faces(dest, values);
  if (bias != nullptr) add_bias(values, rows, bias, mode);
  if (spec_.activation) {
    spec_.activation(std::span<float>(values, tile_elements));
    if (rows < tile_dim) {
      for (int i = 0; i < tile_elements; ++i) {
        if (i / 512 * 16 + i / 16 % 16 >= rows) values[i] = 0;
      }
    }
  }
  pack_dest(spec_.out, mode, values, tile);
}

}  // namespace ttrt
