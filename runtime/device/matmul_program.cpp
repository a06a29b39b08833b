// The rules are those of the op library's matmul program configuration (version 0.81: the automatic choices for
// interleaved operands, with a grid given and without) and of the configurations in its published GEMM benchmark.
#include "device/matmul_program.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "device/tensor.h"

namespace ttrt {
namespace {

using Kind = MatmulProgram::Kind;

std::int64_t tiles_along(std::int64_t n) { return (std::max<std::int64_t>(n, 1) + tile_dim - 1) / tile_dim; }
std::int64_t share(std::int64_t n, std::int64_t parts) { return (n + parts - 1) / std::max<std::int64_t>(parts, 1); }

// A block of a core's part: tiles of rows, of columns, of K.
struct Block {
  std::int64_t m, n, k;
};

// Partial sums are packed in 16 bits at least; in 32 where Dest has them.
std::int64_t partial_bytes(const MatmulShape& s) {
  return s.fp32_acc ? tile_bytes(DataType::float32) : std::max(tile_bytes(DataType::bfloat16), tile_bytes(s.out));
}
// The library's estimate: the result counts with the tiles of in0.
std::int64_t buffer_bytes(const MatmulShape& s, const Block& b) {
  return 2 * b.k * (b.m * tile_bytes(s.a) + b.n * tile_bytes(s.b)) + b.m * b.n * (tile_bytes(s.a) + partial_bytes(s));
}

// What the kernels take: the result and the partial sums share a buffer where they have one format.
std::int64_t result_bytes(const MatmulShape& s) {
  const bool shared = s.out == DataType::bfloat16 && !s.fp32_acc;
  return tile_bytes(s.out) + (shared ? 0 : partial_bytes(s));
}
std::int64_t true_bytes(const MatmulShape& s, const Block& b) {
  return 2 * b.k * (b.m * tile_bytes(s.a) + b.n * tile_bytes(s.b)) + b.m * b.n * result_bytes(s);
}

constexpr std::array<std::pair<std::int64_t, std::int64_t>, 20> subblocks{
    {{4, 2}, {2, 4}, {8, 1}, {1, 8}, {7, 1}, {1, 7}, {3, 2}, {2, 3}, {6, 1}, {1, 6},
     {5, 1}, {1, 5}, {2, 2}, {4, 1}, {1, 4}, {3, 1}, {1, 3}, {2, 1}, {1, 2}, {1, 1}}};

// The largest that divides the block and fits in half of Dest. A sharded result is packed row by row.
void set_subblock(const MatmulShape& s, MatmulProgram& p) {
  const std::int64_t most = s.fp32_acc ? 4 : 8;
  for (const auto& [h, w] : subblocks) {
    if (h * w > most || p.out_block_h % h != 0 || p.out_block_w % w != 0 || (p.out_sharded && h != 1)) continue;
    p.subblock_h = h, p.subblock_w = w;
    return;
  }
}

std::vector<std::int64_t> divisors_downwards(std::int64_t n) {
  std::vector<std::int64_t> out{n};
  for (std::int64_t d = n / 2; d >= 1; --d)
    if (n % d == 0) out.push_back(d);
  return out;
}

// The largest block of the result that fits, the squarest of equal ones; smaller blocks of K only where none does and
// the configuration allows them.
Block fitting(const MatmulShape& s, const Block& whole, bool cut_k, std::int64_t space) {
  if (buffer_bytes(s, whole) < space) return whole;
  std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>, std::greater<>> by_size;
  const auto ratio = [](std::int64_t m, std::int64_t n) {
    return static_cast<double>(std::max(m, n)) / static_cast<double>(std::min(m, n));
  };
  for (const std::int64_t m : divisors_downwards(whole.m)) {
    for (const std::int64_t n : divisors_downwards(whole.n)) {
      const auto [at, added] = by_size.emplace(m * n, std::pair(m, n));
      if (!added && ratio(m, n) <= ratio(at->second.first, at->second.second)) at->second = {m, n};
    }
  }
  for (const std::int64_t k : divisors_downwards(whole.k)) {
    if (k != whole.k && !cut_k) break;
    for (const auto& [size, sides] : by_size) {
      const Block block{sides.first, sides.second, k};
      if (buffer_bytes(s, block) < space) return block;
    }
  }
  return {1, 1, 1};
}

// The longest of at most `most` tiles that divides K.
std::int64_t even_k_block(std::int64_t kt, std::int64_t most) {
  while (kt % most != 0) --most;
  return most;
}

void set_block(MatmulProgram& p, const Block& b) { p.out_block_h = b.m, p.out_block_w = b.n, p.in0_block_w = b.k; }

// Rows and columns of tiles per core that the library first tries, to see on how many cores the product falls.
std::int64_t first_side(const MatmulShape& s, std::int64_t space) {
  for (std::int64_t side = 16; side > 1; side /= 2)
    if (buffer_bytes(s, {side, side, 2}) < space) return side;
  return 1;
}

// A side of one tile, or sides further apart than 8:1.
bool is_narrow(std::int64_t mt, std::int64_t nt) {
  constexpr std::int64_t ratio = 8;
  return std::max(mt, nt) / std::min(mt, nt) > ratio || mt == 1 || nt == 1;
}

// Which of the three the library takes: 1D for narrow products, and for those whose first try is one row or one column
// of several blocks on the grid.
Kind kind_of(const MatmulShape& s, const MatmulDevice& device) {
  if (s.batch == 1 && s.b_batch > 1) return Kind::mcast_in1;
  const std::int64_t mt = s.m_tiles(), nt = s.n_tiles();
  if (is_narrow(mt, nt)) return nt > mt ? Kind::mcast_in0 : Kind::mcast_in1;
  const std::int64_t side = first_side(s, device.l1_bytes);
  const std::int64_t down = share(mt, side), across = share(nt, side);
  if ((down == 1 && across == 1) || down > device.grid_y || across > device.grid_x) return Kind::mcast_2d;
  if (down == 1) return Kind::mcast_in0;
  return across == 1 ? Kind::mcast_in1 : Kind::mcast_2d;
}

}  // namespace

MatmulDevice::MatmulDevice(const ArchProfile& p)
    : grid_x(p.grid_x),
      grid_y(p.grid_y),
      dram_banks(p.dram_banks),
      l1_bytes(p.l1_bytes - p.l1_reserved - p.l1_kernel_bytes) {}

std::int64_t MatmulShape::m_tiles() const { return tiles_along(m); }
std::int64_t MatmulShape::k_tiles() const { return tiles_along(k); }
std::int64_t MatmulShape::n_tiles() const { return tiles_along(n); }

std::int64_t MatmulProgram::out_blocks() const {
  return share(per_core_m, out_block_h) * share(per_core_n, out_block_w);
}

std::string_view to_string(MatmulProgram::Kind kind) {
  constexpr std::array<std::string_view, 4> names{"2d", "1d_in0", "1d_in1", "dram_sharded"};
  return names[static_cast<std::size_t>(kind)];
}

std::string to_string(const MatmulProgram& p) {
  const auto sides = [](std::int64_t a, std::int64_t b) { return std::to_string(a) + "x" + std::to_string(b); };
  std::string text = std::string(to_string(p.kind)) + " " + sides(p.cores_x, p.cores_y) + ", in0_block_w " +
                     std::to_string(p.in0_block_w) + ", per core " + sides(p.per_core_m, p.per_core_n) + ", block " +
                     sides(p.out_block_h, p.out_block_w) + ", subblock " + sides(p.subblock_h, p.subblock_w);
  if (p.in0_sharded) text += ", in0 sharded";
  if (p.in1_sharded) text += ", in1 sharded";
  if (p.out_sharded) text += ", out sharded";
  if (p.fuse_batch) text += ", batch fused";
  return text;
}

MatmulProgram library_program(const MatmulShape& s, const MatmulDevice& device, std::optional<Kind> kind) {
  MatmulProgram p;
  p.kind = kind ? *kind : kind_of(s, device);
  const std::int64_t mt = s.m_tiles(), kt = s.k_tiles(), nt = s.n_tiles();
  p.per_core_m = mt, p.per_core_n = nt;
  std::int64_t k = kt % 2 == 0 ? 2 : 1;
  if (p.kind == Kind::mcast_2d) {
    p.per_core_m = share(mt, device.grid_y), p.per_core_n = share(nt, device.grid_x);
    p.cores_y = share(mt, p.per_core_m), p.cores_x = share(nt, p.per_core_n);
    k = kt % device.grid_x == 0 ? kt / device.grid_x : 1;
  } else if (p.kind == Kind::mcast_in0) {
    p.per_core_n = share(nt, device.cores());
    p.cores_x = share(nt, p.per_core_n);
  } else {
    p.per_core_m = share(mt, device.cores());
    p.cores_y = share(mt, p.per_core_m);
  }
  set_block(p, fitting(s, {p.per_core_m, p.per_core_n, k}, p.kind == Kind::mcast_2d, device.l1_bytes));
  set_subblock(s, p);
  return p;
}

MatmulShape folded(MatmulShape s) {
  s.m = s.batch * s.m_tiles() * tile_dim, s.batch = 1;
  return s;
}

MatmulProgram library_grid_program(const MatmulShape& one, const MatmulDevice& device) {
  const MatmulShape s = folded(one);
  MatmulProgram p;
  p.fuse_batch = one.batch > 1;
  const std::int64_t mt = s.m_tiles(), kt = s.k_tiles(), nt = s.n_tiles();
  p.per_core_m = mt, p.per_core_n = nt;
  std::int64_t k = even_k_block(kt, share(kt, device.cores()));
  if (!is_narrow(mt, nt) && one.m_tiles() > 1 && kt > 1 && nt > 1) {
    p.per_core_m = share(mt, device.grid_y), p.per_core_n = share(nt, device.grid_x);
    p.cores_y = share(mt, p.per_core_m), p.cores_x = share(nt, p.per_core_n);
    k = even_k_block(kt, 4);
  } else if (mt > nt) {
    p.kind = Kind::mcast_in1, p.per_core_m = share(mt, device.cores()), p.cores_y = share(mt, p.per_core_m);
  } else {
    p.kind = Kind::mcast_in0, p.per_core_n = share(nt, device.cores()), p.cores_x = share(nt, p.per_core_n);
  }
  set_block(p, fitting(s, {p.per_core_m, p.per_core_n, k}, false, device.l1_bytes));
  set_subblock(s, p);  // the rule for a given grid takes one tile at a time of a part seven tiles high
  return p;
}

MatmulProgram tuned_program(const MatmulShape& s, bool in0_sharded, bool out_sharded, const MatmulDevice& device) {
  MatmulProgram p;
  p.in0_sharded = in0_sharded, p.out_sharded = out_sharded;
  const std::int64_t mt = s.m_tiles(), kt = s.k_tiles(), nt = s.n_tiles();
  p.per_core_m = share(mt, device.grid_y), p.per_core_n = share(nt, device.grid_x);
  p.cores_y = share(mt, p.per_core_m), p.cores_x = share(nt, p.per_core_n);
  const std::int64_t k = kt % device.grid_x == 0 ? kt / device.grid_x : 1;
  // Beside the buffers: the benchmark's own reserve for small buffers and the core's shards, that of the result twice,
  // as the last run's is still there.
  constexpr std::int64_t small_buffers = 24 * 1024;
  const std::int64_t result = p.per_core_m * p.per_core_n * tile_bytes(s.out);
  const std::int64_t space = device.l1_bytes - small_buffers - (in0_sharded ? p.per_core_m * k * tile_bytes(s.a) : 0) -
                             (out_sharded ? 2 * result : 0);
  // A sharded result is packed where it stays.
  const auto bytes = [&](const Block& b) {
    return true_bytes(s, b) - (out_sharded ? b.m * b.n * tile_bytes(s.out) : 0);
  };
  // Blocks of K of more than 16 tiles gain nothing. Halving them once costs less than cutting the result into blocks,
  // which reads the operands again; halving them more often does not.
  std::int64_t longest = k;
  while (longest > 16 && longest % 2 == 0) longest /= 2;
  for (std::int64_t cut = 1; cut <= std::min(p.per_core_m, p.per_core_n); cut *= 2) {
    if (p.per_core_m % cut != 0 || p.per_core_n % cut != 0) break;
    for (std::int64_t w = longest; w >= 1; w = w % 2 == 0 ? w / 2 : 0) {
      const Block block{p.per_core_m / cut, p.per_core_n / cut, w};
      if (bytes(block) > space) {
        if (!out_sharded && 2 * w <= longest) break;
        continue;
      }
      set_block(p, block);
      set_subblock(s, p);
      return p;
    }
  }
  set_block(p, fitting(s, {p.per_core_m, p.per_core_n, longest}, true, space));
  set_subblock(s, p);
  return p;
}

MatmulProgram dram_sharded_program(const MatmulShape& s, const MatmulDevice& device) {
  MatmulProgram p;
  p.kind = Kind::dram_sharded, p.cores_x = std::min(device.dram_banks, s.n_tiles());
  p.in0_sharded = p.out_sharded = true;
  p.per_core_m = s.m_tiles(), p.per_core_n = share(s.n_tiles(), device.dram_banks);
  const std::int64_t kt = s.k_tiles();
  std::int64_t k = kt % device.cores() == 0 ? kt / device.cores() : 1;
  for (std::int64_t d = std::min<std::int64_t>(kt, 8); k == 1 && d > 1; --d)
    if (kt % d == 0) k = d;
  set_block(p, fitting(s, {p.per_core_m, p.per_core_n, k}, true, device.l1_bytes));
  set_subblock(s, p);
  return p;
}

std::int64_t circular_buffers(const MatmulShape& s, const MatmulProgram& p) {
  return true_bytes(s, {p.out_block_h, p.out_block_w, p.in0_block_w});
}

}  // namespace ttrt
