// Speed of the device's inner loops on one thread: packing, fast and exact products, exact attention and functions, per
// instruction set. Usage: device_bench [--json] [SECONDS_PER_LINE]
#include <charconv>
#include <cstdio>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "device/cpu.h"
#include "device/exact_attention.h"
#include "device/tile_formats_device.h"
#include "device/matmul.h"
#include "device/parallel.h"
#include "device/sfpu.h"

using namespace ttrt;

namespace {

double seconds_per_line = 0.3;
bool json = false, first_line = true;

// CPU seconds of one call, so that other programs on the machine count little.
template <typename F>
double time_of(F f) {
  f();
  std::clock_t spent = 0;
  long calls = 0;
  for (long batch = 1; static_cast<double>(spent) < seconds_per_line * CLOCKS_PER_SEC; batch *= 2) {
    const std::clock_t start = std::clock();
    for (long i = 0; i < batch; ++i) f();
    spent += std::clock() - start;
    calls += batch;
  }
  return static_cast<double>(spent) / CLOCKS_PER_SEC / static_cast<double>(calls);
}

void print(const char* what, const std::string& detail, double value, const char* unit) {
  const std::string level(to_string(isa()));
  if (json) {
    std::printf(R"(%s{"isa": "%s", "what": "%s", "detail": "%s", "value": %.3f, "unit": "%s"})",
                first_line ? "" : ",\n", level.c_str(), what, detail.c_str(), value, unit);
  } else {
    std::printf("%-12s %-10s %-34s %9.2f %s\n", level.c_str(), what, detail.c_str(), value, unit);
  }
  first_line = false;
}

std::vector<float> normal_values(std::size_t n) {
  std::mt19937 rng(1);
  std::normal_distribution<float> normal;
  std::vector<float> out(n);
  for (float& v : out) v = normal(rng);
  return out;
}

void bench_formats() {
  constexpr int tiles = 64;
  std::vector<float> values = normal_values(tiles * tile_elements);
  std::vector<std::byte> out(tiles * 4096);
  const double gigabytes = tiles * 4096.0 / 1e9;
  for (DataType dtype : {DataType::bfloat16, DataType::bfloat8_b, DataType::bfloat4_b, DataType::bfloat2_b}) {
    const std::string name(to_string(dtype));
    const auto each = [&](auto f) {
      return gigabytes / time_of([&] {
               for (int t = 0; t < tiles; ++t) f(values.data() + t * tile_elements, out.data() + t * 4096);
             });
    };
    print("pack", "host " + name, each([&](float* v, std::byte* t) { pack_tile(dtype, v, t); }), "GB/s of float32");
    print("pack", "device " + name, each([&](float* v, std::byte* t) { pack_dest(dtype, Dest::bits32, v, t); }),
          "GB/s of float32");
    print("unpack", name, each([&](float* v, std::byte* t) { unpack_tile(dtype, t, v); }), "GB/s of float32");
  }
}

void bench_matmul(MatmulSpec s, const std::string& detail) {
  const auto tiles = [](std::int64_t batch, std::int64_t rows, std::int64_t cols, DataType dtype) {
    const std::vector<float> values = normal_values(tile_elements);
    std::vector<std::byte> out(
        static_cast<std::size_t>(batch * round_up(rows, tile_dim) * cols / tile_elements * tile_bytes(dtype)));
    for (std::size_t at = 0; at < out.size(); at += static_cast<std::size_t>(tile_bytes(dtype))) {
      pack_tile(dtype, values.data(), out.data() + at);
    }
    return out;
  };
  const std::vector<std::byte> a = tiles(s.batch, s.m, s.k, s.a), b = tiles(s.b_batch, s.k, s.n, s.b);
  std::vector<std::byte> out(
      static_cast<std::size_t>(s.batch * round_up(s.m, tile_dim) * s.n / tile_elements * tile_bytes(s.out)));
  Matmul product(s);
  const bool constant = s.b_batch == 1;
  if (constant) product.set_b(b.data());
  const double time = time_of([&] { product.run(a.data(), b.data(), nullptr, out.data()); });
  const double macs = static_cast<double>(s.batch * s.m * s.k * s.n);
  if (s.numerics == Numerics::fast) return print("fast", detail, 2 * macs / time / 1e9, "GFLOP/s");
  const int phases = static_cast<int>(s.config.math_fidelity) + 1;
  print("exact", detail, macs * phases / time / 1e9, "GMAC/s per phase");
}

void bench_products() {
  MatmulSpec s{.m = 1024, .k = 384, .n = 1536};
  bench_matmul(s, "1024x384x1536 bfloat16");
  s.a = s.b = DataType::bfloat8_b;
  bench_matmul(s, "1024x384x1536 bfloat8_b");
  s.a = s.b = DataType::float32;
  bench_matmul(s, "1024x384x1536 float32");
  for (std::int64_t rows : {1, 4, 8, 16, 32, 128}) {
    for (DataType weight : {DataType::bfloat16, DataType::bfloat8_b, DataType::bfloat4_b}) {
      bench_matmul({.m = rows, .k = 2048, .n = 5632, .b = weight},
                   std::to_string(rows) + "x2048x5632 " + std::string(to_string(weight)) + " weight");
    }
  }
  bench_matmul({.batch = 96, .b_batch = 96, .m = 128, .k = 32, .n = 128, .transpose_b = true},
               "96 x 128x32x128 bfloat16, b turned");
  for (bool dest32 : {false, true}) {
    for (MathFidelity f : {MathFidelity::LoFi, MathFidelity::HiFi4}) {
      MatmulSpec e{.m = 256, .k = 384, .n = 384, .numerics = Numerics::exact};
      e.config.math_fidelity = f;
      e.config.fp32_dest_acc_en = dest32;
      bench_matmul(e, "256x384x384 " + std::string(to_string(f)) + (dest32 ? ", 32-bit Dest" : ", 16-bit Dest"));
    }
  }
}

void bench_exact() {
  const std::vector<float> x = normal_values(3 * 128 * 32);
  std::vector<float> out(128 * 32);
  for (const Dest dest : {Dest::bits16, Dest::bits32}) {
    const exact::RowConfig config{.dest = dest};
    const std::string name = dest == Dest::bits16 ? ", 16-bit Dest" : ", 32-bit Dest";
    const exact::AttentionCall call{.shape = {128, 128, 32, 32}, .scale = 0.1767767F, .config = config};
    const double time = time_of([&] {
      for (std::int64_t first = 0; first < 128; first += 32)
        exact::attention_rows(x.data(), x.data() + 128 * 32, x.data() + 2 * 128 * 32, call, first, out.data());
    });
    print("exact", "attention 128x128x32 HiFi4" + name, 2.0 * 128 * 128 * 32 * 4 / time / 1e9, "GMAC/s per phase");
    std::vector<float> values = normal_values(1 << 16);
    const double gelu = time_of([&] { sfpu::run(sfpu::Function::gelu, {}, dest, values); });
    print("exact", "gelu" + name, static_cast<double>(values.size()) / gelu / 1e9, "G values/s");
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    double seconds = 0;
    const char* end = std::from_chars(argv[i], argv[i] + argument.size(), seconds).ptr;
    if (argument == "--json") {
      json = true;
    } else if (seconds > 0 && *end == '\0') {
      seconds_per_line = seconds;
    } else {
      std::fprintf(stderr, "usage: device_bench [--json] [SECONDS_PER_LINE]\n");
      return 2;
    }
  }
  if (json) std::printf("[");
  set_parallel_threads(1);
  for (Isa level : {Isa::amx_bf16, Isa::avx512_bf16, Isa::avx512, Isa::avx2, Isa::portable}) {
    if (level > best_isa()) continue;
    ScopedIsa scoped(level);
    bench_formats();
    bench_products();
    bench_exact();
  }
  if (json) std::printf("]\n");
}
