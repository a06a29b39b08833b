// The vector unit's functions: choice of instruction set, stores to Dest, and tables for 16-bit Dest.
#include "device/sfpu.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "device/cpu.h"
#include "device/fpu.h"
#include "device/sfpu_kernels.h"
#include "support/error.h"

namespace ttrt::sfpu {
namespace {

const detail::SfpuKernels& kernels() {
#if defined(__x86_64__)
  if (isa() >= Isa::avx512) return detail::sfpu_avx512();
  if (isa() == Isa::avx2) return detail::sfpu_avx2();
#endif
  return detail::sfpu_portable();
}

// Stores to Dest: denormals become zeros of their sign, and 16 bits are cut where Dest has 16.
void store(Dest dest, std::span<float> values) {
  const std::uint32_t kept = dest == Dest::bits16 ? 0xFFFF0000 : 0xFFFFFFFF;
  for (float& v : values) {
    const auto word = std::bit_cast<std::uint32_t>(v);
    v = std::bit_cast<float>(word & ((word & 0x7F800000) == 0 ? 0x80000000 : kept));
  }
}

void compute(Function function, const Params& params, Dest dest, std::span<float> values);

void hardswish(Dest dest, std::span<float> values) {
  std::array<float, 256> gate;
  for (std::size_t at = 0; at < values.size(); at += gate.size()) {
    const auto x = values.subspan(at, std::min(gate.size(), values.size() - at));
    std::copy(x.begin(), x.end(), gate.begin());
    compute(Function::hardsigmoid, {}, dest, std::span(gate).first(x.size()));
    if (dest == Dest::bits16) {
      fpu::mul(gate.data(), x.data(), x.data(), static_cast<std::int64_t>(x.size()), dest, MathFidelity::HiFi4);
    } else {
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = x[i] * gate[i] + 0.0F;  // a zero is +0
    }
  }
}

void compute(Function function, const Params& params, Dest dest, std::span<float> values) {
  if (function == Function::hardswish) {
    hardswish(dest, values);
  } else {
    const bool wide = dest == Dest::bits32;
    kernels().functions[static_cast<int>(function)][wide](values.data(), values.size(), params.data());
  }
  store(dest, values);
}

struct Table {
  std::once_flag once;
  std::vector<std::uint16_t> results;
};

void fill(Function function, const Params& params, Table& table) {
  constexpr std::uint32_t count = 65536, step = 1024;
  table.results.resize(count);
  std::vector<float> values(step);
  for (std::uint32_t base = 0; base < count; base += step) {
    for (std::uint32_t i = 0; i < step; ++i) values[i] = std::bit_cast<float>((base + i) << 16);
    compute(function, params, Dest::bits16, values);
    for (std::uint32_t i = 0; i < step; ++i) {
      table.results[base + i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(values[i]) >> 16);
    }
  }
}

}  // namespace

std::uint32_t apply(Function function, const Params& params, Dest dest, std::uint32_t bits) {
  auto value = std::bit_cast<float>(bits);
  compute(function, params, dest, {&value, 1});
  return std::bit_cast<std::uint32_t>(value);
}

std::span<const std::uint16_t> table(Function function, const Params& params) {
  using Key = std::pair<Function, std::array<std::uint32_t, 4>>;
  static std::mutex mutex;
  static auto* tables = new std::map<Key, std::unique_ptr<Table>>;
  Table* found = nullptr;
  {
    const std::lock_guard lock(mutex);
    std::unique_ptr<Table>& slot = (*tables)[{function, std::bit_cast<std::array<std::uint32_t, 4>>(params)}];
    if (!slot) slot = std::make_unique<Table>();
    found = slot.get();
  }
  std::call_once(found->once, [&] { fill(function, params, *found); });
  return found->results;
}

void run(Function function, const Params& params, Dest dest, std::span<float> values) {
  if (dest == Dest::bits16) {
    const std::span<const std::uint16_t> results = table(function, params);
    for (float& v : values) {
      v = std::bit_cast<float>(static_cast<std::uint32_t>(results[std::bit_cast<std::uint32_t>(v) >> 16]) << 16);
    }
    return;
  }
  compute(function, params, dest, values);
}

void run_behind(Function function, DataType out, std::span<float> values) {
  if (out == DataType::float32) return run(function, {}, Dest::bits32, values);
  for (float& v : values) v = round_bf16_away(v);
  run(function, {}, Dest::bits16, values);
}

void run(Function2 function, Dest dest, std::span<float> a, std::span<const float> b) {
  TTC_CHECK(a.size() == b.size(), "operands of different sizes");
  kernels().pairs[static_cast<int>(function)][dest == Dest::bits32](a.data(), b.data(), a.size());
  store(dest, a);
}

}  // namespace ttrt::sfpu
