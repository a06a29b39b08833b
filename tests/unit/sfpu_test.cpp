// The vector unit: hashes of recorded results over all finite bfloat16 inputs, the same bits on every instruction set,
// properties of the multiply-add, and a table of each function's distance from the mathematical one.
#include "device/sfpu.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>
#include <functional>
#include <iomanip>
#include <map>
#include <optional>
#include <random>
#include <sstream>
#include <vector>

#include "device/cpu.h"
#include "tests/catch.h"

using namespace ttrt;
using namespace ttrt::sfpu;

namespace {

const std::string data = std::string(TTC_TEST_DATA) + "/sfpu/";

std::uint32_t bits(float f) { return std::bit_cast<std::uint32_t>(f); }
float from_pattern(std::uint32_t p) { return std::bit_cast<float>(p << 16); }
bool finite_pattern(std::uint32_t p) { return ((p >> 7) & 255) != 255; }

constexpr std::string_view names[] = {
#define TTRT_SFPU(name, widths) #name,
#define TTRT_SFPU_COMPOSITE(name) #name,
#include "device/sfpu_functions.def"
#undef TTRT_SFPU
#undef TTRT_SFPU_COMPOSITE
};
std::string_view to_string(Function function) { return names[static_cast<int>(function)]; }
std::optional<Function> function_from_string(std::string_view name) {
  const auto* at = std::find(std::begin(names), std::end(names), name);
  if (at == std::end(names)) return std::nullopt;
  return static_cast<Function>(at - std::begin(names));
}

Params default_params(Function f) {
  if (f == Function::softplus) return {1.0F, 1.0F, 20.0F, 0.0F};
  if (f == Function::elu) return {1.0F};
  if (f == Function::leaky_relu) return {0.01F};
  if (f == Function::relu_max) return {6.0F};
  if (f == Function::clamp) return {-1.0F, 2.0F};
  if (f == Function::exp_decay || f == Function::exp_scaled || f == Function::exp_scaled_approx) return {0.125F};
  if (f == Function::power) return {1.7F};
  if (f == Function::power_int) return {3.0F};
  if (f == Function::selu) return {1.0507F, 1.67326F};
  return {};
}

// FNV-1a over the packed results of all finite inputs in the order of their patterns, low byte first.
std::uint64_t hash_of(Function f, const Params& p) {
  const auto results = table(f, p);
  std::uint64_t h = 0xCBF29CE484222325;
  for (std::uint32_t i = 0; i < 65536; ++i) {
    if (!finite_pattern(i)) continue;
    const std::uint32_t packed = bits(round_bf16_away(from_pattern(results[i]))) >> 16;
    for (const std::uint32_t byte : {packed & 255, packed >> 8}) h = (h ^ byte) * 0x100000001B3;
  }
  return h;
}

const std::map<Function, std::function<double(double)>>& mathematics() {
  static const std::map<Function, std::function<double(double)>> all{
      {Function::abs, [](double x) { return std::fabs(x); }},
      {Function::ceil, [](double x) { return std::ceil(x); }},
      {Function::clamp, [](double x) { return std::fmin(std::fmax(x, -1.0), 2.0); }},
      {Function::cos, [](double x) { return std::cos(x); }},
      {Function::elu, [](double x) { return x > 0 ? x : std::expm1(x); }},
      {Function::erf, [](double x) { return std::erf(x); }},
      {Function::exp, [](double x) { return std::exp(x); }},
      {Function::exp2, [](double x) { return std::exp2(x); }},
      {Function::exp_approx, [](double x) { return std::exp(x); }},
      {Function::exp_decay, [](double x) { return std::exp(x / 8); }},
      {Function::exp_scaled, [](double x) { return std::exp(x / 8); }},
      {Function::exp_scaled_approx, [](double x) { return std::exp(x / 8); }},
      {Function::expm1, [](double x) { return std::expm1(x); }},
      {Function::floor, [](double x) { return std::floor(x); }},
      {Function::gelu, [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }},
      {Function::gelu_approx, [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }},
      {Function::hardsigmoid, [](double x) { return std::fmin(std::fmax(x / 6 + 0.5, 0.0), 1.0); }},
      {Function::hardswish, [](double x) { return x * std::fmin(std::fmax(x / 6 + 0.5, 0.0), 1.0); }},
      {Function::leaky_relu, [](double x) { return x > 0 ? x : static_cast<double>(0.01F) * x; }},
      {Function::log, [](double x) { return std::log(x); }},
      {Function::log10, [](double x) { return std::log10(x); }},
      {Function::log1p, [](double x) { return std::log1p(x); }},
      {Function::log2, [](double x) { return std::log2(x); }},
      {Function::log_sigmoid, [](double x) { return -std::log1p(std::exp(-x)); }},
      {Function::mish, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }},
      {Function::neg, [](double x) { return -x; }},
      {Function::reciprocal, [](double x) { return 1 / x; }},
      {Function::relu, [](double x) { return std::fmax(x, 0.0); }},
      {Function::relu_max, [](double x) { return std::fmin(std::fmax(x, 0.0), 6.0); }},
      {Function::rsqrt, [](double x) { return 1 / std::sqrt(x); }},
      {Function::sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {Function::sigmoid_approx, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {Function::sigmoid_fast_exp, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {Function::silu, [](double x) { return x / (1 + std::exp(-x)); }},
      {Function::sin, [](double x) { return std::sin(x); }},
      {Function::softplus, [](double x) { return std::fmax(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }},
      {Function::softsign, [](double x) { return x / (1 + std::fabs(x)); }},
      {Function::sqrt, [](double x) { return std::sqrt(x); }},
      {Function::square, [](double x) { return x * x; }},
      {Function::tan, [](double x) { return std::tan(x); }},
      {Function::tanh, [](double x) { return std::tanh(x); }},
      {Function::trunc, [](double x) { return std::trunc(x); }},
      {Function::acos, [](double x) { return std::acos(x); }},
      {Function::asin, [](double x) { return std::asin(x); }},
      {Function::atan, [](double x) { return std::atan(x); }},
      {Function::cosh, [](double x) { return std::cosh(x); }},
      {Function::power, [](double x) { return std::pow(x, static_cast<double>(1.7F)); }},
      {Function::power_int, [](double x) { return x * x * x; }},
      {Function::round, [](double x) { return std::nearbyint(x); }},
      {Function::selu,
       [](double x) {
         return static_cast<double>(1.0507F) * (x > 0 ? x : static_cast<double>(1.67326F) * std::expm1(x));
       }},
      {Function::sinh, [](double x) { return std::sinh(x); }},
  };
  return all;
}

double ulp_of(double reference, Dest dest) {
  return std::ldexp(1.0, std::ilogb(reference) - (dest == Dest::bits16 ? 7 : 23));
}

struct Worst {
  double ulp = 0, at = 0;
};

// Largest distance, in units of the reference's last place, over normal inputs of magnitude 2^-20 to 16 whose
// reference is a normal number.
Worst worst_of(Function f, Dest dest) {
  const auto& reference = mathematics().at(f);
  Worst worst;
  for (std::uint32_t p = 0; p < 65536; ++p) {
    const double x = from_pattern(p);
    const double want = reference(x);
    if (!(std::fabs(x) >= std::ldexp(1.0, -20) && std::fabs(x) <= 16)) continue;
    if (!std::isfinite(want) || std::fabs(want) < std::ldexp(1.0, -120)) continue;
    const double got = std::bit_cast<float>(apply(f, default_params(f), dest, p << 16));
    const double distance = std::fabs(got - want) / ulp_of(want, dest);
    if (distance > worst.ulp) worst = {distance, x};
  }
  return worst;
}

std::string accuracy_table() {
  std::ostringstream out;
  out << "Largest distance from the mathematical function, in ulp, and its input.\n"
         "bfloat16 inputs of magnitude 2^-20 to 16; 16-bit Dest, then 32-bit Dest.\n"
         "function bfloat16_ulp at float32_ulp at\n"
      << std::setprecision(3);
  for (const auto& [f, reference] : mathematics()) {
    const Worst narrow = worst_of(f, Dest::bits16), wide = worst_of(f, Dest::bits32);
    out << to_string(f) << ' ' << narrow.ulp << ' ' << narrow.at << ' ' << wide.ulp << ' ' << wide.at << '\n';
  }
  return out.str();
}

}  // namespace

TEST_CASE("functions give the recorded results for every finite bfloat16") {
  std::ifstream file(data + "recorded.txt");
  std::string line;
  int count = 0;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string name, hash;
    words >> name >> hash;
    Params p{};
    for (std::size_t i = 0; i < p.size() && words >> p[i];) ++i;
    const auto f = function_from_string(name);
    REQUIRE(f);
    INFO(name);
    CHECK(hash_of(*f, p) == std::stoull(hash, nullptr, 16));
    ++count;
  }
  CHECK(count >= 58);
}

// Distances from the mathematical functions, as the real kernels have them. On a difference the new table is printed.
TEST_CASE("distance from the mathematical functions is as stated") {
  std::ifstream file(data + "ulp.txt");
  std::ostringstream stated;
  stated << file.rdbuf();
  const std::string now = accuracy_table();
  CHECK(now == stated.str());
}

TEST_CASE("every instruction set gives the same bits") {
  std::mt19937 rng(7);
  std::vector<float> in(1000);
  for (float& v : in) {
    std::uint32_t u = rng();
    if (rng() % 2 == 0) u = (u & 0x83FFFFFF) | 0x3C000000;
    v = std::bit_cast<float>(u);
  }
  for (int i = 0; i < function_count; ++i) {
    const auto f = static_cast<Function>(i);
    std::vector<std::vector<float>> out;
    for (const Isa level : {Isa::portable, Isa::avx2, Isa::avx512}) {
      const ScopedIsa scope(level);
      out.push_back(in);
      run(f, default_params(f), Dest::bits32, out.back());
    }
    INFO(to_string(f));
    for (std::size_t k = 0; k < in.size(); ++k) {
      REQUIRE(bits(out[1][k]) == bits(out[0][k]));
      REQUIRE(bits(out[2][k]) == bits(out[0][k]));
    }
  }
}

TEST_CASE("one value, a table and a run agree") {
  for (const Function f : {Function::gelu, Function::exp, Function::hardswish, Function::sign}) {
    const auto results = table(f, {});
    std::vector<float> v(65536);
    for (std::uint32_t p = 0; p < 65536; ++p) v[p] = from_pattern(p);
    run(f, {}, Dest::bits16, v);
    for (std::uint32_t p = 0; p < 65536; p += 37) {
      REQUIRE(bits(v[p]) >> 16 == results[p]);
      REQUIRE(apply(f, {}, Dest::bits16, p << 16) >> 16 == results[p]);
    }
  }
}

TEST_CASE("zeros, infinities and denormals") {
  const auto one = [](Function f, float x) { return std::bit_cast<float>(apply(f, {}, Dest::bits32, bits(x))); };
  const float inf = std::numeric_limits<float>::infinity(), tiny = std::bit_cast<float>(0x00010000U);
  CHECK(one(Function::reciprocal, 0.0F) == inf);
  CHECK(one(Function::reciprocal, -inf) == 0.0F);
  CHECK(one(Function::rsqrt, inf) == 0.0F);
  CHECK(one(Function::rsqrt, -0.0F) == -inf);
  CHECK(one(Function::log, tiny) == -inf);
  CHECK(one(Function::log, inf) == inf);
  CHECK(std::isnan(one(Function::log, -1.0F)));
  CHECK(std::isnan(one(Function::sqrt, -1.0F)));
  CHECK(one(Function::ceil, tiny) == 1.0F);
  CHECK(one(Function::ltz, -0.0F) == 0.0F);
  CHECK(one(Function::ltz, -tiny) == 1.0F);
  CHECK(one(Function::exp, -1000.0F) == 0.0F);
  CHECK(one(Function::exp, 1000.0F) == inf);
}

TEST_CASE("a NaN has the sign of the product that it comes from, else of the addend") {
  const auto one = [](Function f, float x) {
    const std::uint32_t r = apply(f, {}, Dest::bits16, bits(x));
    return std::bit_cast<float>(r);
  };
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(one(Function::rsqrt, nan) == -inf);    // 1 - x y^2 is a NaN of the product's sign
  CHECK(one(Function::sigmoid, nan) == 1.0F);  // exp(-x) is held to 0
  CHECK(one(Function::silu, -inf) == -inf);    // -infinity by 0
  CHECK(one(Function::silu, nan) == inf);
  CHECK(one(Function::gelu, nan) == inf);
  CHECK(one(Function::tanh, nan) == 1.0F);
  CHECK(one(Function::relu, -nan) == 0.0F);
  float tiny = std::bit_cast<float>(0x00690000U), minus_tiny = std::bit_cast<float>(0x804F0000U);
  run(Function2::divide, Dest::bits16, {&tiny, 1}, {&minus_tiny, 1});
  CHECK(bits(tiny) == 0xFF800000U);
}

TEST_CASE("division") {
  const auto divide = [](Dest dest, float a, float b) {
    run(Function2::divide, dest, {&a, 1}, {&b, 1});
    return a;
  };
  const float inf = std::numeric_limits<float>::infinity();
  CHECK(divide(Dest::bits32, 1.0F, 3.0F) == 1.0F / 3.0F);
  CHECK(divide(Dest::bits32, -7.0F, 0.0F) == -inf);
  CHECK(divide(Dest::bits32, 1e-30F, 1e30F) == 0.0F);
  CHECK(divide(Dest::bits32, 1e30F, 1e-30F) == inf);
  CHECK(divide(Dest::bits16, 1.0F, 3.0F) == std::bit_cast<float>(0x3EAB0000U));
  CHECK(divide(Dest::bits16, -2.0F, 0.0F) == -inf);
  CHECK(std::isnan(divide(Dest::bits16, 0.0F, 0.0F)));
}

TEST_CASE("maximum and minimum order by sign and magnitude") {
  std::vector<float> a{0.0F, -0.0F, -1.0F, 3.0F}, b{-0.0F, 0.0F, -2.0F, 2.0F};
  std::vector<float> low = a;
  run(Function2::maximum, Dest::bits32, a, b);
  run(Function2::minimum, Dest::bits32, low, b);
  CHECK(a == std::vector<float>{0.0F, 0.0F, -1.0F, 3.0F});
  CHECK(low == std::vector<float>{0.0F, 0.0F, -2.0F, 2.0F});
  CHECK_FALSE(std::signbit(a[1]));
  CHECK(std::signbit(low[0]));
}

TEST_CASE("an activation behind linear sees the packed result") {
  std::vector<float> v{1.00390625F, -0.7F};
  run_behind(Function::silu, DataType::bfloat16, v);
  CHECK(bits(v[0]) == apply(Function::silu, {}, Dest::bits16, bits(round_bf16_away(1.00390625F))));
  CHECK(bits(v[1]) == apply(Function::silu, {}, Dest::bits16, bits(round_bf16_away(-0.7F))));
  std::vector<float> wide{-0.7F};
  run_behind(Function::silu, DataType::float32, wide);
  CHECK(bits(wide[0]) == apply(Function::silu, {}, Dest::bits32, bits(-0.7F)));
}
