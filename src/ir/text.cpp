// See text.h. Half and bfloat16 elements go through float, which holds each of them exactly.
#include "ir/text.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace ttc::ir::text {
namespace {

template <typename T>
std::string shortest(T value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto r = std::to_chars(buffer, buffer + sizeof buffer, value);
  std::string out(buffer, r.ptr);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

float half_to_float(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  const float sign = (bits & 0x8000) != 0 ? -1.0F : 1.0F;
  if (exponent == 31)
    return mantissa != 0 ? std::numeric_limits<float>::quiet_NaN() : sign * std::numeric_limits<float>::infinity();
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
}

std::uint16_t float_to_half(double value) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  if (std::isnan(value)) return sign | 0x7e00;
  const double magnitude = std::fabs(value);
  if (magnitude >= 65520.0) return sign | 0x7c00;
  if (magnitude == 0) return sign;
  const int exponent = std::max(std::ilogb(magnitude), -14);
  const auto mantissa =
      static_cast<int>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));  // 1024..2048, or less: subnormal
  return static_cast<std::uint16_t>(sign + ((exponent + 14) << 10) +
                                    mantissa);  // the implicit bit adds one to the exponent
}

std::uint16_t float_to_bfloat(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

template <typename T>
T read(const std::byte* element) {
  T value;
  std::memcpy(&value, element, sizeof value);
  return value;
}
template <typename T>
void write(T value, std::byte* element) {
  std::memcpy(element, &value, sizeof value);
}

template <typename T>
bool parse_to(std::string_view text, T& value) {
  const auto r = std::from_chars(text.data(), text.data() + text.size(), value);
  return r.ec == std::errc() && r.ptr == text.data() + text.size();
}

template <typename T>
bool parse_integer(std::string_view text, std::byte* element) {
  T value;
  if (!parse_to(text, value)) return false;
  write(value, element);
  return true;
}

template <typename T>
void write_clamped(double value, std::byte* element) {
  const double low = static_cast<double>(std::numeric_limits<T>::min()),
               high = static_cast<double>(std::numeric_limits<T>::max());
  if (!(value > low)) return write(std::isnan(value) ? T{0} : std::numeric_limits<T>::min(), element);
  write(value >= high ? std::numeric_limits<T>::max() : static_cast<T>(std::nearbyint(value)), element);
}

}  // namespace

bool is_word(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), is_word_char); }
bool is_identifier(std::string_view text) { return is_word(text) && !is_digit(text[0]) && text[0] != '.'; }

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    static const char* hex = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 32 || byte == 127) {
      out += std::string("\\x") + hex[byte >> 4] + hex[byte & 15];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string word_or_quoted(std::string_view text) { return is_word(text) ? std::string(text) : quoted(text); }
std::string float_text(double value) { return shortest(value); }

bool has_decimal_text(DType dtype) {
  return dtype == DType::boolean || is_integral(dtype) || dtype == DType::f16 || dtype == DType::bf16 ||
         dtype == DType::f32 || dtype == DType::f64;
}

std::string element_text(DType dtype, const std::byte* element) {
  switch (dtype) {
    case DType::boolean:
      return read<std::uint8_t>(element) != 0 ? "true" : "false";
    case DType::u8:
      return std::to_string(read<std::uint8_t>(element));
    case DType::i8:
      return std::to_string(read<std::int8_t>(element));
    case DType::u16:
      return std::to_string(read<std::uint16_t>(element));
    case DType::i16:
      return std::to_string(read<std::int16_t>(element));
    case DType::u32:
      return std::to_string(read<std::uint32_t>(element));
    case DType::i32:
      return std::to_string(read<std::int32_t>(element));
    case DType::u64:
      return std::to_string(read<std::uint64_t>(element));
    case DType::i64:
      return std::to_string(read<std::int64_t>(element));
    case DType::f16:
      return shortest(half_to_float(read<std::uint16_t>(element)));
    case DType::bf16:
      return shortest(std::bit_cast<float>(static_cast<std::uint32_t>(read<std::uint16_t>(element)) << 16));
    case DType::f32:
      return shortest(read<float>(element));
    case DType::f64:
      return shortest(read<double>(element));
    default:
      return "0";
  }
}

bool parse_element(DType dtype, std::string_view text, std::byte* element) {
  switch (dtype) {
    case DType::boolean:
      if (text != "true" && text != "false") return false;
      write<std::uint8_t>(text == "true", element);
      return true;
    case DType::u8:
      return parse_integer<std::uint8_t>(text, element);
    case DType::i8:
      return parse_integer<std::int8_t>(text, element);
    case DType::u16:
      return parse_integer<std::uint16_t>(text, element);
    case DType::i16:
      return parse_integer<std::int16_t>(text, element);
    case DType::u32:
      return parse_integer<std::uint32_t>(text, element);
    case DType::i32:
      return parse_integer<std::int32_t>(text, element);
    case DType::u64:
      return parse_integer<std::uint64_t>(text, element);
    case DType::i64:
      return parse_integer<std::int64_t>(text, element);
    case DType::f32: {  // not through double, which would round twice
      float value;
      if (!parse_to(text, value)) return false;
      write(value, element);
      return true;
    }
    default: {
      double value;
      if (!has_decimal_text(dtype) || !parse_to(text, value)) return false;
      write_element(dtype, value, element);
      return true;
    }
  }
}

void write_element(DType dtype, double value, std::byte* element) {
  switch (dtype) {
    case DType::boolean:
      return write<std::uint8_t>(value > 0, element);
    case DType::u8:
      return write_clamped<std::uint8_t>(value, element);
    case DType::i8:
      return write_clamped<std::int8_t>(value, element);
    case DType::u16:
      return write_clamped<std::uint16_t>(value, element);
    case DType::i16:
      return write_clamped<std::int16_t>(value, element);
    case DType::u32:
      return write_clamped<std::uint32_t>(value, element);
    case DType::i32:
      return write_clamped<std::int32_t>(value, element);
    case DType::u64:
      return write_clamped<std::uint64_t>(value, element);
    case DType::i64:
      return write_clamped<std::int64_t>(value, element);
    case DType::f16:
      return write(float_to_half(value), element);
    case DType::bf16:
      return write(float_to_bfloat(value), element);
    case DType::f32:
      return write(static_cast<float>(value), element);
    case DType::f64:
      return write(value, element);
    default:
      return;
  }
}

}  // namespace ttc::ir::text
