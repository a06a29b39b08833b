// Offsets for values whose lifetimes are known: those that never live at the same time may share bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ttrt {

struct PlannedValue {
  int id = 0;  // the caller's
  std::int64_t bytes = 0;
  int begin = 0, end = 0;   // instruction numbers, inclusive
  std::int64_t offset = 0;  // the result, a multiple of the alignment
  std::int64_t lowest = 0;  // the least offset that it may have, a multiple of the alignment
};

// Fills the offsets and returns the bytes of the whole region. Largest values first, each at the lowest place that it
// may have and no value alive at the same time holds. `alignment` is a power of two.
std::int64_t plan_memory(std::vector<PlannedValue>& values, std::int64_t alignment = 64);

// A value of tiles, at its place.
struct PlacedTiles {
  std::int64_t begin = 0, end = 0;  // bytes
  std::int64_t tile_bytes = 0;      // one after the other from `begin`
  std::int64_t rows = 0;            // of each tile, the first ones, which hold data; the others hold zeros
};
// Which of the values' other rows stay zero once they are: those of values of less than tile_dim rows that share bytes
// only with tiles that lie as theirs do and have no more rows.
std::vector<char> padding_stays_zero(std::span<const PlacedTiles> values);

// A constant that instructions read.
struct PlannedWeight {
  std::int64_t bytes = 0;
  std::vector<int> uses;  // instruction numbers, ascending
  bool stays = false;     // the result: in memory beside the region, from run to run
};

struct Residency {
  // Of the weights that do not stay: moved in before `begin`, to `offset` in the region, gone after `end`. id: the
  // weight's index. By begin.
  std::vector<PlannedValue> arrivals;
  std::int64_t region_bytes = 0;
};

// Where `capacity` bytes do not hold all weights beside the values: chooses the weights that stay and lays out the
// region that the values share with the others. Those stay whose absence would move most bytes per byte that they take
// (read most often in a run), the larger before the smaller; of the others each use moves the weight in anew, unless
// there is room to keep it from one use to the next. Fills the values' offsets. nullopt where some instruction needs
// more than there is.
std::optional<Residency> plan_residency(std::vector<PlannedValue>& values, std::vector<PlannedWeight>& weights,
                                        std::int64_t capacity, std::int64_t alignment = 64);

}  // namespace ttrt
