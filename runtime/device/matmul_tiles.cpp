// Panels and products of a few rows with the words that device/tile_decoders.h makes.
#include "device/matmul_tiles.h"

#include <algorithm>
#include <cstring>

#include "device/cpu.h"
#include "device/intrinsics.h"
#include "device/matmul_kernels.h"
#include "device/tile_decoders.h"
#include "device/tile_formats.h"
#include "support/error.h"

namespace ttrt::detail {

#if defined(__x86_64__)
namespace {

#define TTRT_TARGET "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi"

[[gnu::target(TTRT_TARGET)]] void fill_bf16(const std::byte* tile, std::uint32_t keep, std::uint32_t* panel) {
  const __m512i turn = whole(places.words.data());
  const __m512i both = _mm512_set1_epi32(static_cast<int>((keep & 0xFFFF0000) | keep >> 16));
  for (int face = 0; face < 4; ++face)
    for (int p = 0; p < 8; ++p)
      _mm512_storeu_si512(panel + (face / 2 * 8 + p) * 32 + face % 2 * 16,
                          pair_words(tile + face * 512 + p * 64, turn, both));
}

template <typename Decoder>
[[gnu::target(TTRT_TARGET)]] bool fill_blocks(const std::byte* tile, std::uint32_t keep, std::uint32_t* panel) {
  if (!exponents_within(tile, Decoder::lowest, highest_exponent)) return false;
  Decoder decoder(keep == keep_lofi);
  const __m512i value = _mm512_set1_epi16(0x7FFF);
  const __m256i one = _mm256_set1_epi16(static_cast<short>(Decoder::one));
  __mmask32 infinities = 0;
  for (int face = 0; face < 4; ++face) {
    const __m128i stored = _mm_loadu_si128(reinterpret_cast<const __m128i*>(tile + face * 16));
    alignas(32) std::uint32_t powers[8];  // of k and k + 1
    _mm256_store_si256(reinterpret_cast<__m256i*>(powers),
                       _mm256_slli_epi16(_mm256_sub_epi16(_mm256_cvtepu8_epi16(stored), one), 7));
    std::uint32_t* out = panel + face / 2 * 256 + face % 2 * 16;
    const auto scaled = [&](__m512i words, int pair) __attribute__((always_inline, target(TTRT_TARGET))) {
      if constexpr (std::is_same_v<Decoder, HalfBytes>)
        infinities |= _mm512_cmpeq_epi16_mask(words, _mm512_set1_epi16(static_cast<short>(0xFF80)));
      const __m512i power = _mm512_set1_epi32(static_cast<int>(powers[pair]));
      _mm512_storeu_si512(out + pair * 32,
                          _mm512_mask_add_epi16(words, _mm512_test_epi16_mask(words, value), words, power));
    };
    for (int step = 0; step < 4; ++step) {
      const Words words =
          decoder.decode(tile + block_exponents + face * Decoder::face_bytes + step * Decoder::step_bytes);
      scaled(words.first, 2 * step);
      scaled(words.second, 2 * step + 1);
    }
  }
  return !decoder.has_infinity() && infinities == 0;
}

// Of those with AVX512-BF16.
bool is_zen4() { return __builtin_cpu_is("amdfam19h") != 0; }

bool is_fast_host() {
  static const bool has = best_isa() >= Isa::avx512_bf16 && __builtin_cpu_supports("avx512vbmi");
  return has && isa() >= Isa::avx512_bf16;
}

#undef TTRT_TARGET

}  // namespace

bool fill_pairs_from_tile(DataType dtype, const std::byte* tile, std::uint32_t keep, std::uint32_t* panel) {
  if (!is_fast_host()) return false;
  switch (dtype) {
    case DataType::bfloat16:
      fill_bf16(tile, keep, panel);
      return true;
    case DataType::bfloat8_b:
      return fill_blocks<Bytes>(tile, keep, panel);
    case DataType::bfloat4_b:
      return fill_blocks<HalfBytes>(tile, keep, panel);
    default:
      return false;
  }
}

#else

bool fill_pairs_from_tile(DataType, const std::byte*, std::uint32_t, std::uint32_t*) { return false; }

#endif

bool fill_floats_from_tile(DataType dtype, const std::byte* tile, std::uint32_t keep, float* panel) {
#if defined(__x86_64__)
  if (isa() >= Isa::avx2) return fill_floats_avx2(dtype, tile, keep, panel);
#endif
  (void)dtype, (void)tile, (void)keep, (void)panel;
  return false;
}

const FewRows::Kernels* FewRows::kernels(Operand operand) {
#if defined(__x86_64__)
  if (operand == Operand::floats) return isa() >= Isa::avx2 ? &few_rows_avx2 : nullptr;
  if (isa() == Isa::amx_bf16) return &few_rows_amx;
  if (is_fast_host()) return is_zen4() ? &few_rows_zen4 : &few_rows_avx512;
#endif
  (void)operand;
  return nullptr;
}

bool FewRows::takes(Operand operand, DataType b, std::int64_t rows) {
  const Kernels* own = kernels(operand);
  if (own == nullptr || rows < 1 || rows > own->most_rows) return false;
  return b == DataType::bfloat16 || b == DataType::bfloat8_b || b == DataType::bfloat4_b;
}

FewRows::FewRows(Operand operand, DataType b, std::int64_t rows, std::int64_t k, std::uint32_t keep_a,
                 std::uint32_t keep_b)
    : rows_(rows), stride_(round_up(k, tile_dim)), keep_a_(keep_a), lofi_(keep_b == keep_lofi) {
  TTC_CHECK(takes(operand, b, rows), "a few rows, and tiles that are taken");
  kernels_ = kernels(operand);
  TTC_CHECK(rows * kernels_->columns_at_once <= most_lines, "lines that the caller has room for");
  times_ = kernels_->times(b, rows);
  reading_ = b == DataType::bfloat16    ? kernels_->bfloat16
             : b == DataType::bfloat8_b ? kernels_->bfloat8_b
                                        : kernels_->bfloat4_b;
  const std::int64_t bytes = rows * stride_ * kernels_->value_bytes;
  values_.resize(static_cast<std::size_t>(bytes) / sizeof(CacheLine));
  ranges_.resize(static_cast<std::size_t>(stride_ / tile_dim));
}

void FewRows::read(const std::byte* tiles) {
  auto* values = reinterpret_cast<std::byte*>(values_.data());
  for (Range& range : ranges_) {
    range = kernels_->read(tiles, rows_, keep_a_, values, stride_);
    tiles += tile_elements * kernels_->value_bytes, values += tile_dim * kernels_->value_bytes;
  }
}

FewRows::Added FewRows::times_tiles(std::int64_t k_tile, const Tiles& tiles, float* c) const {
  const auto* values = reinterpret_cast<const std::byte*>(values_.data());
  return times_({values + k_tile * tile_dim * kernels_->value_bytes, stride_, static_cast<int>(rows_), lofi_,
                 ranges_.data() + k_tile},
                tiles, c);
}

void FewRows::begin() const {
  if (kernels_->begin != nullptr) kernels_->begin(static_cast<int>(rows_));
}

void FewRows::end() const {
  if (kernels_->end != nullptr) kernels_->end();
}

}  // namespace ttrt::detail
