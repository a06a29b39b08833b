// Instructions that run together, so that a result is used where it is made: a product or an attention leaves its tiles
// where the movement of heads behind it would put them; calls that go part by part take turns after a few tiles or a
// row of them, which are still in the core's cache. What any of them computes and rounds is what it does alone.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "ops/op.h"

namespace ttrt {

struct Plan;
struct Program;
struct SettledOp;

// Positions in the main block, ascending. Each but the first reads what those before it make.
struct TogetherGroup {
  std::vector<std::size_t> members;
  bool places = false;  // two: the second is nothing but the places of the first one's tiles
};
// `kernel_of`: what serves the instruction at a position; nullptr: not known, or not in the same way in every run.
std::vector<TogetherGroup> together_groups(const Plan& plan, const Program& program,
                                           const std::function<const Kernel*(std::size_t)>& kernel_of);

class Together {
 public:
  // The first of the group's members, of which a result would not lie where another is still to read. nullptr: there
  // are not two.
  static std::shared_ptr<const Together> make(const TogetherGroup& group, const std::vector<SettledOp>& ops);

  void run() const;
  const std::vector<std::size_t>& members() const { return members_; }

 private:
  struct Op {
    const Kernel* kernel;
    KernelArgs args;
  };
  void add(std::size_t member, const SettledOp& op);
  void run_parts(std::int64_t first_tile, std::int64_t last_tile) const;

  std::vector<std::size_t> members_;
  std::vector<Op> ops_;
  TilePlace place_;  // of the first one's tiles, by the second
  std::int64_t tiles_ = 0, step_ = 1;
  bool worth_ = false;
};

}  // namespace ttrt
