// See dtype.h. One row per dtype; every function is a look-up in this table.
#include "support/dtype.h"

#include <array>

namespace ttc {
namespace {

struct Row {
  std::string_view short_name;
  std::string_view torch_name;
  int bytes;
  int pt2;
  int c10;
  enum Kind { integral, floating, complex, boolean } kind;
};

constexpr std::array<Row, dtype_count> rows{{
    {"u8", "uint8", 1, 1, 0, Row::integral},
    {"i8", "int8", 1, 2, 1, Row::integral},
    {"i16", "int16", 2, 3, 2, Row::integral},
    {"i32", "int32", 4, 4, 3, Row::integral},
    {"i64", "int64", 8, 5, 4, Row::integral},
    {"f16", "float16", 2, 6, 5, Row::floating},
    {"f32", "float32", 4, 7, 6, Row::floating},
    {"f64", "float64", 8, 8, 7, Row::floating},
    {"c32", "complex32", 4, 9, 8, Row::complex},
    {"c64", "complex64", 8, 10, 9, Row::complex},
    {"c128", "complex128", 16, 11, 10, Row::complex},
    {"bool", "bool", 1, 12, 11, Row::boolean},
    {"bf16", "bfloat16", 2, 13, 15, Row::floating},
    {"u16", "uint16", 2, 28, 27, Row::integral},
    {"u32", "uint32", 4, 34, 28, Row::integral},
    {"u64", "uint64", 8, 35, 29, Row::integral},
    {"f8e4m3fn", "float8_e4m3fn", 1, 29, 24, Row::floating},
    {"f8e5m2", "float8_e5m2", 1, 30, 23, Row::floating},
    {"f8e4m3fnuz", "float8_e4m3fnuz", 1, 31, 26, Row::floating},
    {"f8e5m2fnuz", "float8_e5m2fnuz", 1, 32, 25, Row::floating},
    {"f8e8m0", "float8_e8m0fnu", 1, 33, 44, Row::floating},
}};

const Row& row(DType dtype) { return rows[static_cast<std::size_t>(dtype)]; }

template <typename Predicate>
std::optional<DType> find(Predicate predicate) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (predicate(rows[i])) return static_cast<DType>(i);
  return std::nullopt;
}

}  // namespace

int size_of(DType dtype) { return row(dtype).bytes; }
std::string_view to_string(DType dtype) { return row(dtype).short_name; }
std::string_view torch_name(DType dtype) { return row(dtype).torch_name; }
bool is_floating(DType dtype) { return row(dtype).kind == Row::floating; }
bool is_complex(DType dtype) { return row(dtype).kind == Row::complex; }
int pt2_code(DType dtype) { return row(dtype).pt2; }
int c10_code(DType dtype) { return row(dtype).c10; }

std::optional<DType> dtype_from_string(std::string_view name) {
  return find([&](const Row& r) { return r.short_name == name || r.torch_name == name; });
}
std::optional<DType> dtype_from_pt2(int code) {
  return find([&](const Row& r) { return r.pt2 == code; });
}
std::optional<DType> dtype_from_c10(int code) {
  return find([&](const Row& r) { return r.c10 == code; });
}

}  // namespace ttc
