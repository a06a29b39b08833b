// Steps over a row with fpu.h and sfpu.h; see exact_rows.h.
#include "device/exact_rows.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "device/sfpu.h"
#include "device/simd.h"

namespace ttrt::exact {
namespace {

inline constexpr int vector_bytes = 16;
#include "device/sfpu_lanes_body.h"
#include "device/sfpu_exp_body.h"

float first_lane(U x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x[0])); }

// A tensor's value in a source register.
[[gnu::always_inline]] inline float as_source(float value, Dest dest) {
  return dest == Dest::bits32 ? cut_tf32(value) : cut_bf16(value);
}

// A copy from a source register to Dest: a denormal becomes a zero of its sign.
float flushed(float value) {
  const auto u = std::bit_cast<std::uint32_t>(value);
  return (u & 0x7F800000) == 0 ? std::bit_cast<float>(u & 0x80000000) : value;
}

void as_sources(float* row, std::int64_t n, Dest dest) {
  for (std::int64_t i = 0; i < n; ++i) row[i] = as_source(row[i], dest);
}
void through_buffer(float* row, std::int64_t n, Dest dest) {
  for (std::int64_t i = 0; i < n; ++i) row[i] = exact::through_buffer(row[i], dest);
}

// As sign and magnitude order them; exponent 0 counts as +0.
[[gnu::always_inline]] inline std::int32_t comparable(float value) {
  auto u = std::bit_cast<std::uint32_t>(value);
  if ((u & 0x7F800000) == 0) u = 0;
  return u >> 31 ? -static_cast<std::int32_t>(u & 0x7FFFFFFF) - 1 : static_cast<std::int32_t>(u);
}

// The largest of n values `stride` apart, in that order: value times sign, as a source register has it.
template <Dest dest>
struct Largest {
  [[gnu::always_inline]] static inline void run(const float* values, std::int64_t n, std::int64_t stride, float sign,
                                                std::int32_t* out) {
    std::int32_t largest = comparable(sign * as_source(values[0], dest));
    if (stride == 1)
      for (std::int64_t i = 1; i < n; ++i) largest = std::max(largest, comparable(sign * as_source(values[i], dest)));
    else
      for (std::int64_t i = 1; i < n; ++i)
        largest = std::max(largest, comparable(sign * as_source(values[i * stride], dest)));
    *out = largest;
  }
};

float row_max(const float* values, std::int64_t n, std::int64_t stride, Dest dest, float sign) {
  std::int32_t largest = 0;
  dest == Dest::bits32 ? vectorised<Largest<Dest::bits32>>(values, n, stride, sign, &largest)
                       : vectorised<Largest<Dest::bits16>>(values, n, stride, sign, &largest);
  const std::uint32_t bits =
      largest < 0 ? sign_bit | static_cast<std::uint32_t>(-(largest + 1)) : static_cast<std::uint32_t>(largest);
  return std::bit_cast<float>(bits);
}

// `n` copies of one value, for an operation with a column broadcast.
const float* spread(float value, std::int64_t n) {
  thread_local std::vector<float> copies;
  copies.assign(static_cast<std::size_t>(n), value);
  return copies.data();
}

float vector_function(sfpu::Function function, float value, Dest dest) {
  return std::bit_cast<float>(sfpu::apply(function, {}, dest, std::bit_cast<std::uint32_t>(value)));
}

RowConfig accurate(RowConfig config) {
  config.approx = false;
  return config;
}

void exponential(float* row, std::int64_t n, const RowConfig& config) {
  sfpu::run(config.approx ? sfpu::Function::exp_approx : sfpu::Function::exp, {}, config.dest,
            {row, static_cast<std::size_t>(n)});
  // The approximate kernel leaves 8 mantissa bits, of which what is stored keeps 7.
  if (config.approx) std::transform(row, row + n, row, round_bf16_away);
}

float mean_of(const float* row, std::int64_t n, const RowConfig& config) {
  const float sum = fpu::sum_row(row, n, 1.0F, config.dest, config.fidelity);
  return exact::through_buffer(vector_product(sum, 1.0F / static_cast<float>(n), config.dest), config.dest);
}

// Whether the buffers of layer_norm's rows are too large for a core: three of bfloat16 and two of Dest's width, in
// blocks of as many tiles as Dest has, and some small ones. Its kernel then goes over the row in passes.
bool in_passes(std::int64_t n, Dest dest) {
  const std::int64_t block = dest == Dest::bits32 ? 4 : 8, tiles = round_up(n, block * tile_dim) / tile_dim;
  const std::int64_t narrow = 2048, wide = dest == Dest::bits32 ? 4096 : 2048, room = 1499136 / 20 * 19;
  return (3 * tiles + 4 * block + 4) * narrow + (2 * tiles + 4 * block + 12) * wide > room;
}

// Whether the buffers of a softmax over a line of tiles are too large for the part of a core that its kernel may take.
bool in_small_steps(std::int64_t n, Dest dest, std::int64_t tile_bytes) {
  const std::int64_t tiles = round_up(n, tile_dim) / tile_dim, wide = dest == Dest::bits32 ? 4096 : tile_bytes;
  const std::int64_t room = 512 * 1024, taken = 105 * 1024;  // by the system, about
  return taken + 2 * (tiles + 1) * tile_bytes + (2 * tiles + 3) * wide > room;
}

// Adds `more` to `sums`, both from a buffer and back to it.
void add_in_buffer(float* sums, const float* more, std::int64_t n, Dest dest) {
  fpu::add(sums, more, sums, n, dest);
  through_buffer(sums, n, dest);
}

// What Dest holds of the sum of values in a buffer. Lines too long for a core have their tiles added first, value by
// value; so has what lies across tiles, which leaves one value.
float sum_of_line(const std::vector<float>& values, Along along, std::int64_t tile_bytes, const RowConfig& config) {
  const auto n = static_cast<std::int64_t>(values.size());
  const std::int64_t step = along == Along::tiles ? 1 : tile_dim;
  const float* line = values.data();
  std::int64_t length = n;
  if (along == Along::tiles || (in_small_steps(n, config.dest, tile_bytes) && n > step)) {
    thread_local std::vector<float> sums;
    sums.assign(line, line + step);
    for (std::int64_t i = step; i < n; i += step)
      add_in_buffer(sums.data(), line + i, std::min(step, n - i), config.dest);
    line = sums.data(), length = step;
  }
  if (along == Along::tiles) return *line;
  if (along == Along::row) return fpu::sum_row(line, length, 1.0F, config.dest, config.fidelity);
  return fpu::sum_column(line, length, 1, 1.0F, config.dest, config.fidelity);
}

}  // namespace

float through_buffer(float value, Dest dest) {
  return dest == Dest::bits32 ? cut_tf32(value) : round_bf16_away(cut_bf16(value));
}

float multiply_add(float a, float b, float c) { return first_lane(mad(num(a), num(b), num(c))); }

float vector_product(float a, float b, Dest dest) {
  const float product = multiply_add(a, b, 0.0F);
  return dest == Dest::bits32 ? product : cut_bf16(product);
}

float reciprocal(float value, const RowConfig& config) {
  const bool blackhole = config.arch == Arch::blackhole;
  if (config.approx) return first_lane(blackhole ? guess_blackhole(num(value)) : inverse<1>(num(value)));
  using sfpu::Function;
  return vector_function(blackhole ? Function::reciprocal_blackhole : Function::reciprocal, value, config.dest);
}

float reciprocal_root(float value, const RowConfig& config) {
  if (!config.approx) return vector_function(sfpu::Function::rsqrt, value, config.dest);
  // One step of the 10-bit method from a magic first guess.
  const U x = num(value), y = all(0x5F0B3892) - (x >> 1);
  const U root = mul(y, mad(negate(y), mul(x, y), num(1.89099014875F)));
  const U rest = all(infinity) - x;  // x = 0: infinity; x = infinity: 0
  const U r = select(negative(x), all(quiet_nan), select((rest != 0) & (x != 0), root, rest));
  return first_lane(config.dest == Dest::bits32 ? r : round_bf16(r));
}

float reduce(Reduce kind, const float* values, std::int64_t n, std::int64_t stride, const RowConfig& config) {
  if (kind == Reduce::max) return row_max(values, n, stride, config.dest, 1.0F);
  if (kind == Reduce::min) return -row_max(values, n, stride, config.dest, -1.0F);
  const float scaler = kind == Reduce::mean ? cut_bf16(1.0F / static_cast<float>(n)) : 1.0F;
  if (stride != 1) return fpu::sum_column(values, n, stride, scaler, config.dest, config.fidelity);
  return fpu::sum_row(values, n, scaler, config.dest, config.fidelity);
}

float vector_sum(const float* values, std::int64_t n, std::int64_t stride) {
  float tile[tile_dim] = {};
  for (std::int64_t i = 0; i < n; ++i) {
    float& sum = tile[i % tile_dim];
    sum = i < tile_dim ? values[i * stride] : flushed(sum + values[i * stride]);
  }
  const auto four = [](float a, float b, float c, float d) { return flushed(a + flushed(b + flushed(c + d))); };
  float lanes[8];
  if (stride != 1) {
    for (int i = 0; i < 8; ++i) lanes[i] = four(tile[4 * i], tile[4 * i + 1], tile[4 * i + 2], tile[4 * i + 3]);
    return flushed(four(lanes[0], lanes[1], lanes[2], lanes[3]) + four(lanes[4], lanes[5], lanes[6], lanes[7]));
  }
  for (int i = 0; i < 8; ++i) lanes[i] = four(tile[2 * i], tile[2 * i + 1], tile[2 * i + 16], tile[2 * i + 17]);
  for (int half = 4; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) lanes[i] = flushed(lanes[i] + lanes[i + half]);
  return lanes[0];
}

void softmax_row(float* row, std::int64_t n, const RowConfig& config, bool stable) {
  // Padding is hidden in rows that fit a 32-bit Dest of 4 tiles; of longer ones it takes part, as zeros.
  if (stable && config.dest == Dest::bits32 && n > 4 * tile_dim && n % tile_dim != 0) {
    std::vector<float> padded(static_cast<std::size_t>(round_up(n, tile_dim)), 0.0F);
    std::copy_n(row, n, padded.begin());
    softmax_row(padded.data(), static_cast<std::int64_t>(padded.size()), config, stable);
    std::copy_n(padded.begin(), n, row);
    return;
  }
  if (stable) {
    as_sources(row, n, config.dest);
    const float max = row_max(row, n, 1, config.dest, 1.0F);
    fpu::sub(row, spread(max, n), row, n, config.dest);
  } else {
    for (std::int64_t i = 0; i < n; ++i) row[i] = flushed(as_source(row[i], config.dest));
  }
  exponential(row, n, config);
  through_buffer(row, n, config.dest);
  const float sum = fpu::sum_row(row, n, 1.0F, config.dest, config.fidelity);
  const float scale = exact::through_buffer(reciprocal(sum, accurate(config)), config.dest);
  fpu::mul(row, spread(scale, n), row, n, config.dest, config.fidelity);
}

void softmax_line(float* values, std::int64_t n, Along along, bool logarithm, std::int64_t tile_bytes,
                  const RowConfig& config) {
  const Dest dest = config.dest;
  as_sources(values, n, dest);
  fpu::sub(values, spread(row_max(values, n, 1, dest, 1.0F), n), values, n, dest);
  through_buffer(values, n, dest);
  thread_local std::vector<float> powers;
  powers.assign(values, values + n);
  exponential(powers.data(), n, accurate(config));
  through_buffer(powers.data(), n, dest);
  const float sum = sum_of_line(powers, along, tile_bytes, config);
  if (logarithm) {
    const float shift = exact::through_buffer(vector_function(sfpu::Function::log, sum, dest), dest);
    fpu::sub(values, spread(shift, n), values, n, dest);
  } else {
    const float scale = exact::through_buffer(reciprocal(sum, config), dest);
    fpu::mul(powers.data(), spread(scale, n), values, n, dest, config.fidelity);
  }
}

float variance(const float* values, std::int64_t n, std::int64_t stride, float correction) {
  U mean = all(0), squares = all(0);
  for (std::int64_t i = 0; i < n; ++i) {
    const U x = num(cut_tf32(values[i * stride]));
    const U apart = mad(num(-1.0F), mean, x);
    mean = mad(apart, num(1.0F / static_cast<float>(i + 1)), mean);
    squares = mad(apart, mad(num(-1.0F), mean, x), squares);
  }
  return first_lane(mul(squares, num(1.0F / std::max(static_cast<float>(n) - correction, 0.0F))));
}

void norm_row(float* row, std::int64_t n, const Norm& norm, const RowConfig& config) {
  const Dest dest = config.dest;
  as_sources(row, n, dest);
  thread_local std::vector<float> squares;
  if (!norm.rms) fpu::sub(row, spread(mean_of(row, n, config), n), row, n, dest);
  squares.assign(row, row + n);
  if (!norm.rms) through_buffer(row, n, dest);
  if (!norm.rms && in_passes(n, dest))
    sfpu::run(sfpu::Function::square, {}, dest, squares);
  else
    fpu::mul(row, row, squares.data(), n, dest, config.fidelity);
  through_buffer(squares.data(), n, dest);
  const float mean = mean_of(squares.data(), n, config), epsilon = cut_bf16(norm.epsilon);
  float sum = 0.0F;
  fpu::add(&mean, &epsilon, &sum, 1, dest);
  const float scale = exact::through_buffer(reciprocal_root(sum, config), dest);
  fpu::mul(row, spread(scale, n), row, n, dest, config.fidelity);
  if (norm.weight != nullptr) {
    through_buffer(row, n, dest);
    fpu::mul(row, norm.weight, row, n, dest, config.fidelity);
  }
  if (norm.bias != nullptr) {
    through_buffer(row, n, dest);
    fpu::add(row, norm.bias, row, n, dest);
  }
}

void rotary_row(const float* row, const float* cos, const float* sin, std::int64_t n, float* out,
                const RowConfig& config) {
  const std::int64_t half = n / 2;
  thread_local std::vector<float> turned;
  turned.resize(static_cast<std::size_t>(n));
  fpu::mul(row + half, spread(-1.0F, half), turned.data(), half, config.dest, config.fidelity);
  through_buffer(turned.data(), half, config.dest);
  std::copy(row, row + half, turned.data() + half);
  fpu::mul(turned.data(), sin, turned.data(), n, config.dest, config.fidelity);
  through_buffer(turned.data(), n, config.dest);
  fpu::mul(row, cos, out, n, config.dest, config.fidelity);
  through_buffer(out, n, config.dest);
  fpu::add(out, turned.data(), out, n, config.dest);
}

}  // namespace ttrt::exact
