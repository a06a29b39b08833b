// Element types of host tensors, named as PyTorch names them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ttc {

enum class DType : std::uint8_t {
  u8,
  i8,
  i16,
  i32,
  i64,
  f16,
  f32,
  f64,
  c32,
  c64,
  c128,
  boolean,
  bf16,
  u16,
  u32,
  u64,
  f8e4m3fn,
  f8e5m2,
  f8e4m3fnuz,
  f8e5m2fnuz,
  f8e8m0,
};
inline constexpr int dtype_count = 21;

// Bytes of one element.
int size_of(DType dtype);
// The short name used in the text IR: "f32", "bf16", "i64", "bool".
std::string_view to_string(DType dtype);
// The name PyTorch prints without its "torch." prefix: "float32", "bfloat16", "int64".
std::string_view torch_name(DType dtype);
// From either of the two names above; nullopt for anything else.
std::optional<DType> dtype_from_string(std::string_view name);

bool is_floating(DType dtype);  // float8 kinds included, complex not
bool is_complex(DType dtype);
inline bool is_integral(DType dtype) { return !is_floating(dtype) && !is_complex(dtype) && dtype != DType::boolean; }

// The number .pt2 files store for a dtype (torch/_export/serde/schema.py, ScalarType) and back.
int pt2_code(DType dtype);
std::optional<DType> dtype_from_pt2(int code);
// The number c10::ScalarType and TorchScript use for a dtype, and back.
int c10_code(DType dtype);
std::optional<DType> dtype_from_c10(int code);

}  // namespace ttc
