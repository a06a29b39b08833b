// Which instructions run together, where their memory allows it, and how.
#include "executor/together.h"

#include <algorithm>
#include <set>

#include "device/parallel.h"
#include "executor/plan.h"

namespace ttrt {
namespace {

constexpr std::int64_t few_tiles = 8;     // of each tensor, which a core's first cache holds
constexpr std::size_t most_members = 16;  // each is compared with those before it

std::int64_t tiles_of(const Parts& parts) { return parts.count * parts.tiles; }

std::set<int> slots_read(const Instruction& i) {
  std::set<int> out;
  for (const ArgSource& arg : i.args) arg.for_each_slot([&](int s) { out.insert(s); });
  return out;
}

// Calls that go part by part.
class Growth {
 public:
  Growth(const Plan& plan, const Program& program, std::size_t first, const Kernel& kernel)
      : plan_(plan), instructions_(program.main.instructions) {
    if (kernel.parts == nullptr) return;
    step_ = kernel.parts->tiles, tiles_ = tiles_of(*kernel.parts);
    if (tiles_ > 0) add(first);
  }

  bool take(std::size_t position, const Kernel& kernel) {
    if (group_.members.empty() || group_.members.size() == most_members) return false;
    if (kernel.parts == nullptr || tiles_of(*kernel.parts) != tiles_) return false;
    const std::int64_t step = kernel.parts->tiles;
    if (step != 1 && step_ != 1 && step_ != step) return false;
    bool reads = false;
    for (const int slot : slots_read(instructions_[position])) {
      if (whole_.contains(slot)) return false;
      reads = reads || made_.contains(slot);
    }
    if (!reads) return false;
    step_ = std::max(step_, step);
    add(position);
    return true;
  }

  TogetherGroup group() && { return std::move(group_); }

 private:
  void add(std::size_t position) {
    group_.members.push_back(position);
    const Instruction& i = instructions_[position];
    const std::vector<TensorSpec>& specs = plan_.step(i).results();
    for (std::size_t r = 0; r < i.results.size(); ++r)
      (specs[r].tiles() == tiles_ ? made_ : whole_).insert(i.results[r]);
  }

  const Plan& plan_;
  const std::vector<Instruction>& instructions_;
  std::int64_t step_ = 1, tiles_ = 0;
  TogetherGroup group_;
  std::set<int> made_, whole_;  // slots that are there part by part, and those that are at the end only
};

// Whether the second is where the first one's tiles go, which nobody else reads.
bool moves(const Program& program, std::size_t first, const Kernel& kernel, std::size_t second, const Kernel& mover) {
  const std::vector<Instruction>& all = program.main.instructions;
  if (!kernel.placed || !mover.place || all[first].results.size() != 1) return false;
  const int slot = all[first].results[0];
  return slots_read(all[second]) == std::set{slot} &&
         program.slots[static_cast<std::size_t>(slot)].end == static_cast<int>(second);
}

struct Bytes {
  const std::byte *first, *last;
  explicit Bytes(const DeviceTensor& tensor) : first(tensor.data()), last(first + tensor.spec.nbytes()) {}
  bool operator==(const Bytes&) const = default;
  bool meets(const Bytes& other) const { return first < other.last && other.first < last; }
};

// Whether `op` may write its results while `earlier` has not done all of its own. What lies in the very same place is
// overwritten part by part when it has been read (else the two would not share the place).
bool may_write(const SettledOp& op, const SettledOp& earlier) {
  const Parts* const parts = op.kernel->parts != nullptr ? earlier.kernel->parts.get() : nullptr;
  const auto leaves = [&](const DeviceTensor* tensor) {
    const Bytes other(*tensor);
    const bool by_parts = parts != nullptr && tensor->spec.tiles() == tiles_of(*parts);
    return std::ranges::all_of(op.args.out, [&](const DeviceTensor* result) {
      return !Bytes(*result).meets(other) || (by_parts && Bytes(*result) == other);
    });
  };
  return std::ranges::all_of(earlier.args.in, leaves) && std::ranges::all_of(earlier.args.out, leaves);
}

}  // namespace

std::vector<TogetherGroup> together_groups(const Plan& plan, const Program& program,
                                           const std::function<const Kernel*(std::size_t)>& kernel_of) {
  const std::vector<Instruction>& all = program.main.instructions;
  std::vector<TogetherGroup> groups;
  for (std::size_t first = 0, next = 0; first < all.size(); first = next) {
    next = first + 1;
    const Kernel* const head = kernel_of(first);
    if (head == nullptr) continue;
    Growth growth(plan, program, first, *head);
    for (std::size_t at = next; at < all.size(); ++at) {
      if (all[at].of_shapes) continue;  // nothing is done there
      const Kernel* const kernel = kernel_of(at);
      if (kernel == nullptr) break;
      if (next == first + 1 && moves(program, first, *head, at, *kernel)) {
        groups.push_back({.members = {first, at}, .places = true});
        next = at + 1;
        break;
      }
      if (!growth.take(at, *kernel)) break;
      next = at + 1;
    }
    if (next > first + 1 && (groups.empty() || groups.back().members.front() != first))
      groups.push_back(std::move(growth).group());
  }
  return groups;
}

std::shared_ptr<const Together> Together::make(const TogetherGroup& group, const std::vector<SettledOp>& ops) {
  auto made = std::make_shared<Together>();
  for (const std::size_t member : group.members) {
    if (!std::ranges::all_of(made->members_, [&](std::size_t earlier) { return may_write(ops[member], ops[earlier]); }))
      break;
    made->add(member, ops[member]);
  }
  if (made->ops_.size() < 2) return nullptr;
  if (group.places) {
    const Op& mover = made->ops_[1];
    made->place_ = {.of = [&mover](std::int64_t tile) { return mover.kernel->place(mover.args, tile); },
                    .padding_is_zero = std::ranges::all_of(mover.args.out,
                                                           [](const DeviceTensor* to) { return to->padding_is_zero; })};
  }
  return made;
}

void Together::add(std::size_t member, const SettledOp& op) {
  members_.push_back(member);
  ops_.push_back({op.kernel, op.args});
  if (op.kernel->parts == nullptr) return;
  const Parts& parts = *op.kernel->parts;
  tiles_ = tiles_of(parts);
  step_ = std::max(step_, parts.tiles);
  worth_ = worth_ || parts.count >= parts.worth;
}

// Members that take single tiles take turns after a few of these, others after all.
void Together::run_parts(std::int64_t first_tile, std::int64_t last_tile) const {
  const auto tiles_of_part = [&](std::size_t i) { return ops_[i].kernel->parts->tiles; };
  for (std::size_t begin = 0, end = 0; begin < ops_.size(); begin = end) {
    while (end < ops_.size() && tiles_of_part(end) == tiles_of_part(begin)) ++end;
    const std::int64_t tiles = tiles_of_part(begin), step = tiles == 1 ? few_tiles : tiles;
    for (std::int64_t tile = first_tile; tile < last_tile; tile += step) {
      const std::int64_t next = std::min(tile + step, last_tile);
      for (std::size_t i = begin; i < end; ++i) ops_[i].kernel->parts->run(ops_[i].args, tile / tiles, next / tiles);
    }
  }
}

void Together::run() const {
  if (place_.of) return ops_[0].kernel->placed(ops_[0].args, place_);
  const std::int64_t step = step_ > 1 ? step_ : few_tiles;
  parallel_ranges((tiles_ + step - 1) / step, worth_, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) run_parts(i * step, std::min((i + 1) * step, tiles_));
  });
}

}  // namespace ttrt
