// How long a device op takes. An op reports what it does (Work), its kernel how that is shared among the cores
// (CoreSplit), the profile has the chip's rates; estimate() turns the three into cycles and names the bound.
//
// The engines of a core run side by side (matrix and vector unit behind one thread, unpacker, packer, the two NoCs),
// and so do the cores, the DRAM and the dispatcher, which prepares the next program while one runs. A program therefore
// takes as long as the slowest of them, for the busiest core.
//
// A matrix product has its own clock (matmul_time): its cores take turns with the multicast of the blocks that they
// share, so that the program configuration decides how much of the engines' time overlaps.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "device/arch.h"
#include "device/matmul_program.h"
#include "device/tensor.h"

namespace ttrt {

// Pages that a program moves between a memory and the cores.
struct Pages {
  std::int64_t count = 0, bytes = 0;  // how many, and of how many bytes each
  BufferType memory = BufferType::dram;
  bool written = false;
};
Pages pages_of(const TensorSpec& spec, bool written);

// What one execution of an op does, on all cores together.
struct Work {
  double tile_products = 0;  // of 32x32x32, each of as many phases as the fidelity has
  double flops = 0;          // multiplications and additions of products of elements (2MNK), padding left out
  MathFidelity fidelity = MathFidelity::LoFi;
  double eltwise_tiles = 0;  // through the matrix unit's element-wise path; a product counts once per phase
  double reduced_tiles = 0;  // summed or compared by the matrix unit, once per phase
  double vector_ops = 0;     // vector instructions times elements
  double handovers = 0;      // tiles that pass after pass takes out of a circular buffer, and is waited for
  double unpacked_bytes = 0, packed_bytes = 0;
  std::vector<Pages> moved;
  std::int64_t pieces = 1;    // equal parts that cores can share
  std::int64_t l1_bytes = 0;  // circular buffers of each core

  std::int64_t moved_bytes() const;
  void read(const TensorSpec& spec) { moved.push_back(pages_of(spec, false)); }
  void write(const TensorSpec& spec) { moved.push_back(pages_of(spec, true)); }
};

// How a kernel shares the work on a real grid.
struct CoreSplit {
  std::int64_t cores = 1;                // that take part
  std::int64_t pieces = 1, busiest = 1;  // in whole tiles (or the op's pieces): all, and those of the busiest core
  std::int64_t l1_bytes = 0;             // circular buffers of each core; 0: as the work says
  // Of a matrix product, with its sizes: its time is matmul_time's.
  struct Product {
    MatmulShape shape;
    MatmulProgram program;
  };
  std::optional<Product> product = std::nullopt;
};
// Pieces one by one to each core in turn.
CoreSplit even_split(std::int64_t pieces, const ArchProfile& profile);

enum class Bound : std::uint8_t { math, unpack, pack, noc, dram, dispatch, pcie };
inline constexpr std::size_t bounds = 7;
std::string_view to_string(Bound bound);  // "math"

struct Time {
  double cycles = 0, us = 0;
  Bound bound = Bound::math;
  std::array<double, bounds> terms{};  // cycles that each is busy, by Bound; `cycles` is no less than the largest

  double term(Bound b) const { return terms[static_cast<std::size_t>(b)]; }
};

// A product of tiles by its program: for each block of the result, the first blocks of both operands, then for each
// block of K the longer of its computing and the next one's coming, then the block's way to DRAM. The last of these
// ways is not waited for, as the matrix unit has stopped by then, which is where published device times end.
Time matmul_time(const MatmulShape& shape, const MatmulProgram& program, MathFidelity fidelity,
                 const ArchProfile& profile);

Time estimate(const Work& work, const ArchProfile& profile, const CoreSplit& split);
// Between host memory and the device; the host link is the bound.
Time estimate_transfer(const TensorSpec& spec, const ArchProfile& profile);

}  // namespace ttrt
