// What make_program() is put together from: each part adds what it knows to a program whose instructions are there, and
// needs nothing of the others but what it is given.
#pragma once

#include <set>
#include <vector>

#include "executor/program.h"

namespace ttrt {

// ---- program.cpp
// Which values may share memory, and which memory is written. By slot.
class AliasClasses {
 public:
  explicit AliasClasses(const Program& program);
  int find(int slot) const { return class_of_[static_cast<std::size_t>(slot)]; }
  bool written(int slot) const { return written_[static_cast<std::size_t>(slot)]; }

 private:
  std::vector<int> class_of_;
  std::vector<bool> written_;
};

// ---- program_residents.cpp
// Buffers that only the device reads and writes, outputs that may stay there, inputs that may be there already.
void find_residents(Program& program, const AliasClasses& aliases);

// ---- program_shapes.cpp
// What follows from shapes alone.
void find_shape_values(Program& program, const AliasClasses& aliases);

// ---- program_liveness.cpp
// Every slot that the block, or a region in it, reads.
void read_slots(const Region& block, std::set<int>& out);
// What each instruction of set-up and main reads for the last time, and the slots' lifetimes over main.
void find_lifetimes(Program& program, const AliasClasses& aliases);

}  // namespace ttrt
