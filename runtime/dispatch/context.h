// What selection knows about a call: the operation, its device, shapes, dtypes and needs.
//
// A context is a plain block of bytes without padding. The whole block is the cache key: it is hashed and compared word
// by word, so no field that influences a choice can be forgotten, and no text is built on the way.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>

#include "dispatch/types.h"
#include "support/dtype.h"

namespace ttrt::dispatch {

using ttc::DType;

enum class Platform : std::uint8_t { cpu, cuda, rocm, xpu, hpu, tt, tpu, mps };
inline constexpr int platform_count = 8;
// The order of an attention operand's axes: batch, sequence, heads, dim.
enum class AxisOrder : std::uint8_t { BSHD, BHSD, NHD, HND };
inline constexpr int axis_order_count = 4;
enum class MaskType : std::uint8_t { none, boolean, floating };

inline constexpr std::array<std::string_view, platform_count> platform_names{"cpu", "cuda", "rocm", "xpu",
                                                                             "hpu", "tt",   "tpu",  "mps"};
inline constexpr std::array<std::string_view, axis_order_count> axis_order_names{"BSHD", "BHSD", "NHD", "HND"};
constexpr std::string_view to_string(Platform platform) { return platform_names[static_cast<std::size_t>(platform)]; }
constexpr std::string_view to_string(AxisOrder order) { return axis_order_names[static_cast<std::size_t>(order)]; }

inline constexpr std::int64_t unset = -1;  // an optional count that is not given
inline constexpr std::uint8_t no_dtype = 0xff;

// The device a call runs on.
struct DeviceRecord {
  Symbol name;        // "n150"
  Symbol generation;  // "wormhole_b0"
  std::int32_t index = 0;
  std::int32_t l1_bytes = 0;  // per core, for circular buffers; 0: not known
  Platform platform = Platform::cpu;
  std::uint8_t grid_x = 0, grid_y = 0, dram_banks = 0;  // 0: not known
  std::uint8_t reserved[4] = {};

  std::string text() const;  // "cuda:0"; "cpu" for the CPU
};

// The record of "cuda:1", "cpu", "tt" ...; device types that are not known become the CPU's.
DeviceRecord device_record(std::string_view device);

struct SelectionContext {
  DeviceRecord device;
  Symbol operation;
  std::int64_t batch_size = 1;
  std::int64_t seq_len_q = unset, seq_len_k = unset;
  std::int64_t num_heads = unset, num_kv_heads = unset, head_dim = unset;
  // Matrix products: the result's rows and columns and the inner size, per batch.
  std::int64_t m = unset, n = unset, k = unset;
  std::int64_t stride_last_dim = 1;
  double dropout_p = 0;
  double scale = 0;  // counts only where has_scale
  std::int32_t tp_size = 1, pp_size = 1;
  DType dtype = DType::f32;
  AxisOrder layout = AxisOrder::BSHD;
  MaskType attn_mask_type = MaskType::none;
  std::uint8_t quantized = 0;  // an operand has a quantized format: a block format on the device
  // 0 or 1: bool may hold other bytes, and every byte is compared.
  std::uint8_t is_contiguous = 1, is_causal = 0, has_scale = 0, enable_gqa = 0, requires_deterministic = 0;
  // Device tensors: formats of the two operands (DataType, or no_dtype).
  std::uint8_t format_a = no_dtype, format_b = no_dtype;
  std::uint8_t fp32_acc = 1, exact_numerics = 0;
  std::uint8_t constant_b = 0;  // the second operand is a constant of the program
  std::uint8_t reserved[2] = {};

  // Every byte takes part.
  inline std::uint64_t hash() const;
  bool operator==(const SelectionContext& other) const { return std::memcmp(this, &other, sizeof *this) == 0; }
};
static_assert(sizeof(SelectionContext) == 160 && std::is_trivially_copyable_v<SelectionContext>,
              "the context has no padding: adjust `reserved`");

// Independent 64x64 products of pairs of words, so the multiplier is never waited for; unrolled, the salts are
// constants.
inline std::uint64_t SelectionContext::hash() const {
  __extension__ using Wide = unsigned __int128;
  constexpr std::size_t pairs = sizeof(SelectionContext) / 16;
  static_assert(pairs == 10 && sizeof(SelectionContext) % 16 == 0, "the loop below names the number of pairs");
  std::uint64_t sum = 0x2d358dccaa6c78a5u, salt = 0x8bb84b93962eacc9u;
#pragma GCC unroll 10
  for (std::size_t i = 0; i < pairs; ++i) {
    std::uint64_t pair[2];
    std::memcpy(pair, reinterpret_cast<const char*>(this) + i * sizeof pair, sizeof pair);
    const Wide product = Wide{pair[0] ^ salt} * (pair[1] ^ ~(salt << 1));
    sum += static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
    salt += 0x9e3779b97f4a7c15u;
  }
  sum = (sum ^ (sum >> 32)) * 0x9fb21c651e98df25u;
  return sum ^ (sum >> 32);
}

// A context for a call of `operation`, from its inputs. attention*: query|q, key|k and the options attn_mask|mask,
// is_causal|causal, dropout_p, scale|softmax_scale, from inputs or extras; shapes are read by axis order ([B,S,H,D],
// [B,H,S,D], else [N,H,D] with batch 1). Others: the first tensor gives dtype, batch (its first dim), device and
// contiguity. Throws ttc::Error (usage) where an attention has no query or its rank does not fit the order.
SelectionContext context_from_inputs(Symbol operation, const CallArgs& args, AxisOrder order = AxisOrder::BSHD);
// The same, or the operation alone where the inputs have no tensor to go by.
SelectionContext context_or_operation(Symbol operation, const CallArgs& args);

// One word mixed into a running 64-bit hash, for keys made of several parts.
constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9fb21c651e98df25u;
  return hash ^ (hash >> 32);
}

}  // namespace ttrt::dispatch
