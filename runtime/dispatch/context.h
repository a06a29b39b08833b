// What selection knows about a call: the operation, its device, shapes, dtypes and needs.
//
// A context is a plain block of bytes without padding. The whole block is the cache key: it is hashed and compared word
// by word, so no field that influences a choice can be forgotten, and no text is built on the hot path.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

#include "dispatch/types.h"
#include "support/dtype.h"

namespace ttrt::dispatch {

using ttc::DType;

enum class Platform : std::uint8_t { cuda, rocm, cpu, hpu, xpu, tt };
inline constexpr int platform_count = 6;
enum class OpKind : std::uint8_t { tensor, tokenization, sampling, communication, prepost };
// The order of an attention operand's axes: batch, sequence, heads, dim.
enum class AxisOrder : std::uint8_t { BSHD, BHSD, NHD, HND };
enum class MaskType : std::uint8_t { none, boolean, floating };
enum class KvStrategy : std::uint8_t { none, contiguous, paged, virtual_, unified };
enum class QuantFormat : std::uint8_t {
  none,
  int4,
  int8,
  nvfp4,
  mxfp4,
  fp8_e4m3,
  fp8_e5m2,
  bfloat8_b,
  bfloat4_b,
  bfloat2_b
};

std::string_view to_string(Platform platform);  // "cuda", "tt"
std::string_view to_string(OpKind kind);
std::string_view to_string(AxisOrder order);      // "BSHD"
std::string_view to_string(MaskType mask);        // "none", "bool", "float"
std::string_view to_string(KvStrategy strategy);  // "none", "virtual"
std::string_view to_string(QuantFormat format);   // "none", "int8"
std::optional<Platform> platform_from_string(
    std::string_view name);  // unknown device types are the CPU's to serve: see device_record
std::optional<AxisOrder> axis_order_from_string(std::string_view name);

inline constexpr std::int64_t unset = -1;  // an optional count that is not given
inline constexpr std::uint8_t no_dtype = 0xff;

// The device a call runs on. 48 bytes, no padding.
struct DeviceRecord {
  std::int64_t memory_total = 0;  // bytes
  // Bytes. Part of the key like everything else: leave 0 unless kernels choose by it.
  std::int64_t memory_available = 0;
  Symbol name;        // "n150", "NVIDIA A100"
  Symbol generation;  // "wormhole_b0", "ampere"
  Symbol driver_version;
  std::int32_t index = 0;
  std::int32_t sm = 0;             // compute capability major * 10 + minor; 0: none
  std::int32_t shared_memory = 0;  // bytes per core
  std::int32_t tensor_core_generation = 0;
  Platform platform = Platform::cpu;
  std::uint8_t supports_bf16 = 1, supports_fp8 = 0, supports_fp4_tma = 0;  // the last: bit 0 fp4, bit 1 tma

  std::string text() const;  // "cuda:0"; "cpu" for the CPU
};
static_assert(sizeof(DeviceRecord) == 48 && std::is_trivially_copyable_v<DeviceRecord>);

// The record of "cuda:1", "cpu", "tt" ...; device types that are not known become the CPU's.
DeviceRecord device_record(std::string_view device);

struct SelectionContext {
  DeviceRecord device;
  std::int64_t batch_size = 1;
  std::int64_t seq_len_q = unset, seq_len_k = unset;
  std::int64_t num_heads = unset, num_kv_heads = unset, head_dim = unset;
  // Matrix products: the result's rows and columns and the inner size, per batch.
  std::int64_t m = unset, n = unset, k = unset;
  std::int64_t stride_last_dim = 1;
  double dropout_p = 0;
  double scale = 0;  // counts only where has_scale
  Symbol operation;
  Symbol tokenizer_id, vocab_hash, merges_hash, added_tokens_hash, special_tokens_hash, normalizer_id, pretokenizer_id;
  Symbol packed_weights_id;
  std::int32_t tp_size = 1, pp_size = 1, rank = 0;
  DType dtype = DType::f32;
  OpKind op_kind = OpKind::tensor;
  AxisOrder layout = AxisOrder::BSHD;
  MaskType attn_mask_type = MaskType::none;
  AxisOrder kv_cache_layout = AxisOrder::BSHD;  // counts only where kv_strategy is set
  std::uint8_t kv_cache_dtype = no_dtype;       // a DType, or no_dtype
  KvStrategy kv_strategy = KvStrategy::none;
  QuantFormat quant_format = QuantFormat::none;
  // 0 or 1: bool may hold other bytes, and every byte is compared.
  std::uint8_t is_contiguous = 1, is_causal = 0, has_scale = 0, enable_gqa = 0, return_offsets = 0;
  std::uint8_t is_cuda_graph_capturing = 0, requires_deterministic = 0;
  // Device tensors: formats of the two operands (DataType, or no_dtype) and where they lie.
  std::uint8_t format_a = no_dtype, format_b = no_dtype;
  std::uint8_t memory_a = 0, memory_b = 0;          // TensorMemoryLayout
  std::uint8_t l1_operands = 0;                     // bit 0: the first lies in L1, bit 1: the second
  std::uint8_t has_bias = 0, fused_activation = 0;  // an epilogue that a fused variant takes
  std::uint8_t math_fidelity = 0, fp32_acc = 1, exact_numerics = 0;
  std::uint8_t grid_x = 0, grid_y = 0, dram_banks = 0;  // of the device; 0: not known
  std::uint8_t constant_b = 0;                          // the second operand is a constant of the program
  std::uint8_t reserved[3] = {};

  // Every byte takes part.
  inline std::uint64_t hash() const;
  bool operator==(const SelectionContext& other) const { return std::memcmp(this, &other, sizeof *this) == 0; }
};
static_assert(sizeof(SelectionContext) == 224 && std::is_trivially_copyable_v<SelectionContext>,
              "the context has no padding: adjust `reserved`");

inline constexpr std::size_t context_words = sizeof(SelectionContext) / 8;
// Word i of the block.
inline std::uint64_t word_of(const SelectionContext& context, std::size_t i) {
  std::uint64_t word;
  std::memcpy(&word, reinterpret_cast<const unsigned char*>(&context) + i * 8, 8);
  return word;
}

// Independent 64x64 products of pairs of words, so the multiplier is never waited for; 28 words.
inline std::uint64_t SelectionContext::hash() const {
  __extension__ using Wide = unsigned __int128;
  static_assert(context_words % 2 == 0);
  std::uint64_t sum = 0x2d358dccaa6c78a5u, salt = 0x8bb84b93962eacc9u;
  for (std::size_t i = 0; i < context_words; i += 2) {
    const Wide product = Wide{word_of(*this, i) ^ salt} * (word_of(*this, i + 1) ^ ~(salt << 1));
    sum += static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
    salt += 0x9e3779b97f4a7c15u;
  }
  sum = (sum ^ (sum >> 32)) * 0x9fb21c651e98df25u;
  return sum ^ (sum >> 32);
}

// A context for a call of `operation`, from its inputs (context_inputs.cpp). attention*: query|q, key|k and the options
// attn_mask|mask, is_causal|causal, dropout_p, scale|softmax_scale, from inputs or extras; shapes are read by axis
// order
// ([B,S,H,D], [B,H,S,D], else [N,H,D] with batch 1). Others: the first tensor gives dtype, batch (its first dim),
// device and contiguity. Throws ValueError where an attention has no query or its rank does not fit the order.
SelectionContext context_from_inputs(Symbol operation, const CallArgs& args, AxisOrder order = AxisOrder::BSHD);
// The name of an attention of unknown kind: attention.causal or attention.full.
Symbol attention_operation(bool causal);

// One word mixed into a running 64-bit hash, for keys made of several parts.
constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9fb21c651e98df25u;
  return hash ^ (hash >> 32);
}

}  // namespace ttrt::dispatch
