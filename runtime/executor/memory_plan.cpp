// First fit by decreasing size, over lifetimes; and the weights that are left out of memory until they are read.
#include "executor/memory_plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "device/types.h"

namespace ttrt {

namespace {

// Bytes that are taken: intervals that don't touch, by rising offset.
class Taken {
 public:
  void add(std::int64_t begin, std::int64_t end) {
    auto first = std::lower_bound(intervals_.begin(), intervals_.end(), begin,
                                  [](const Interval& one, std::int64_t at) { return one.end < at; });
    auto last = first;
    for (; last != intervals_.end() && last->begin <= end; ++last)
      begin = std::min(begin, last->begin), end = std::max(end, last->end);
    if (first == last) {
      intervals_.insert(first, {begin, end});
      return;
    }
    *first = {begin, end};
    intervals_.erase(first + 1, last);
  }
  // Where what stands in the way of `bytes` at `at` ends; `at` where nothing does.
  std::int64_t past(std::int64_t at, std::int64_t bytes) const {
    const auto next = std::upper_bound(intervals_.begin(), intervals_.end(), at,
                                       [](std::int64_t from, const Interval& one) { return from < one.end; });
    return next == intervals_.end() || at + bytes <= next->begin ? at : next->end;
  }

 private:
  struct Interval {
    std::int64_t begin, end;
  };
  std::vector<Interval> intervals_;
};

// The same for every span of time: a tree of spans, each the two below it, so that a life meets few of them however
// long it is and however many values there are.
class TakenOverTime {
 public:
  // `times`: begins and ends of all lives.
  explicit TakenOverTime(std::vector<int> times) : times_(std::move(times)) {
    std::sort(times_.begin(), times_.end());
    times_.erase(std::unique(times_.begin(), times_.end()), times_.end());
    spans_.resize(4 * times_.size());
  }
  void add(int begin, int end, std::int64_t from, std::int64_t to) {
    visit(begin, end, [&](Span& span, bool whole) {
      if (whole) span.throughout.add(from, to);
      span.sometime.add(from, to);
    });
  }
  // The lowest offset, `at` or beyond, at which nothing that lives from `begin` to `end` lies.
  std::int64_t lowest(int begin, int end, std::int64_t bytes, std::int64_t at) {
    met_.clear();
    visit(begin, end, [&](Span& span, bool whole) { met_.push_back(whole ? &span.sometime : &span.throughout); });
    for (std::size_t free = 0, i = 0; free < met_.size(); i = (i + 1) % met_.size()) {
      const std::int64_t next = met_[i]->past(at, bytes);
      free = next == at ? free + 1 : 0;
      at = next;
    }
    return at;
  }

 private:
  struct Span {
    Taken throughout, sometime;  // by values that live in all of it and of those around it; by those in parts, too
  };

  // Calls f(span, whether the life covers it whole): spans that do, and those around them.
  template <typename F>
  void visit(int begin, int end, const F& f) {
    const auto number = [&](int time) {
      return static_cast<std::size_t>(std::lower_bound(times_.begin(), times_.end(), time) - times_.begin());
    };
    visit(1, 0, times_.size() - 1, number(begin), number(std::max(begin, end)), f);
  }
  template <typename F>
  void visit(std::size_t span, std::size_t low, std::size_t high, std::size_t first, std::size_t last, const F& f) {
    const bool whole = first <= low && high <= last;
    f(spans_[span], whole);
    if (whole) return;
    const std::size_t middle = (low + high) / 2;
    if (first <= middle) visit(2 * span, low, middle, first, last, f);
    if (last > middle) visit(2 * span + 1, middle + 1, high, first, last, f);
  }

  std::vector<int> times_;
  std::vector<Span> spans_;
  std::vector<const Taken*> met_;
};

}  // namespace

std::int64_t plan_memory(std::vector<PlannedValue>& values, std::int64_t alignment) {
  const auto rounded = [&](std::int64_t bytes) {
    return (std::max<std::int64_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  };
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return values[a].bytes > values[b].bytes; });
  std::vector<int> times;
  for (const PlannedValue& value : values) times.insert(times.end(), {value.begin, value.end});
  TakenOverTime taken(std::move(times));
  std::int64_t total = 0;
  for (const std::size_t i : order) {
    PlannedValue& value = values[i];
    const std::int64_t bytes = rounded(value.bytes);
    value.offset = taken.lowest(value.begin, value.end, bytes, value.lowest);
    taken.add(value.begin, value.end, value.offset, value.offset + bytes);
    total = std::max(total, value.offset + bytes);
  }
  return total;
}

std::vector<char> padding_stays_zero(std::span<const PlacedTiles> values) {
  std::vector<std::int64_t> bounds;
  for (const PlacedTiles& value : values) bounds.insert(bounds.end(), {value.begin, value.end});
  std::ranges::sort(bounds);
  bounds.erase(std::ranges::unique(bounds).begin(), bounds.end());
  // Between two bounds each: how tiles lie there, and the most rows of any.
  struct Ground {
    std::int64_t tile_bytes = 0, first = 0, rows = 0;
  };
  std::vector<Ground> ground(bounds.size());
  const auto grounds_of = [&](const PlacedTiles& value) {
    const auto number = [&](std::int64_t at) { return std::ranges::lower_bound(bounds, at) - bounds.begin(); };
    return std::span(ground.begin() + number(value.begin), ground.begin() + number(value.end));
  };
  for (const PlacedTiles& value : values) {
    const std::int64_t first = value.rows < tile_dim ? value.begin % value.tile_bytes : 0;
    for (Ground& one : grounds_of(value)) {
      const bool alike = one.tile_bytes == value.tile_bytes && one.first == first;
      const std::int64_t rows = alike || one.rows == 0 ? value.rows : tile_dim;
      one = {value.tile_bytes, first, std::max(one.rows, rows)};
    }
  }
  std::vector<char> stays;
  for (const PlacedTiles& value : values)
    stays.push_back(value.rows < tile_dim &&
                    std::ranges::all_of(grounds_of(value), [&](const Ground& one) { return one.rows <= value.rows; }));
  return stays;
}

namespace {

class ResidencyPlanner {
 public:
  ResidencyPlanner(std::vector<PlannedValue>& values, std::vector<PlannedWeight>& weights, std::int64_t capacity,
                   std::int64_t alignment)
      : values_(values), weights_(weights), capacity_(capacity), alignment_(alignment) {}

  std::optional<Residency> plan() {
    std::vector<std::size_t> order(weights_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const PlannedWeight &x = weights_[a], &y = weights_[b];
      return x.uses.size() != y.uses.size() ? x.uses.size() > y.uses.size() : x.bytes > y.bytes;
    });
    // The longest beginning of the order that may stay, then whatever finds room in what that leaves.
    std::size_t low = 0, high = order.size() + 1;
    while (high - low > 1) {
      const std::size_t middle = (low + high) / 2;
      (total(order, middle) <= capacity_ ? low : high) = middle;
    }
    std::int64_t used = total(order, low);
    if (used > capacity_) return std::nullopt;
    for (std::size_t i = low; i < order.size(); ++i) {
      PlannedWeight& weight = weights_[order[i]];
      if (used + rounded(weight.bytes) > capacity_) continue;
      weight.stays = true;
      used += rounded(weight.bytes);
    }
    arrive_at_each_use();
    if (resident() + lay_out() > capacity_) {  // first fit is no exact science: with fewer values a region may grow
      total(order, low);
    }
    keep_between_uses();
    lay_out();
    return std::move(out_);
  }

 private:
  std::int64_t rounded(std::int64_t bytes) const { return (bytes + alignment_ - 1) / alignment_ * alignment_; }

  std::int64_t resident() const {
    std::int64_t bytes = 0;
    for (const PlannedWeight& weight : weights_) bytes += weight.stays ? rounded(weight.bytes) : 0;
    return bytes;
  }

  // Bytes of all, where the first `count` of the order stay.
  std::int64_t total(const std::vector<std::size_t>& order, std::size_t count) {
    for (std::size_t i = 0; i < order.size(); ++i) weights_[order[i]].stays = i < count;
    arrive_at_each_use();
    return resident() + lay_out();
  }

  void arrive_at_each_use() {
    out_.arrivals.clear();
    for (std::size_t i = 0; i < weights_.size(); ++i)
      if (!weights_[i].stays)
        for (const int use : weights_[i].uses)
          out_.arrivals.push_back({.id = static_cast<int>(i), .bytes = weights_[i].bytes, .begin = use, .end = use});
    std::stable_sort(out_.arrivals.begin(), out_.arrivals.end(),
                     [](const PlannedValue& a, const PlannedValue& b) { return a.begin < b.begin; });
  }

  // Two arrivals of a weight become one where the region may grow for it, those closest to each other first.
  void keep_between_uses() {
    std::vector<PlannedValue>& all = out_.arrivals;
    struct Gap {
      int length, id, begin;
    };
    std::vector<Gap> gaps;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto next = std::find_if(all.begin() + static_cast<std::ptrdiff_t>(i) + 1, all.end(),
                                     [&](const PlannedValue& other) { return other.id == all[i].id; });
      if (next != all.end()) gaps.push_back({next->begin - all[i].end, all[i].id, next->begin});
    }
    std::stable_sort(gaps.begin(), gaps.end(), [](const Gap& a, const Gap& b) { return a.length < b.length; });
    const std::int64_t room = capacity_ - resident();
    for (const Gap& gap : gaps) {
      const std::vector<PlannedValue> before = all;
      const auto is = [&](const PlannedValue& one) { return one.id == gap.id; };
      const auto later = std::find_if(all.begin(), all.end(),
                                      [&](const PlannedValue& one) { return is(one) && one.begin == gap.begin; });
      const auto earlier = std::find_if(std::make_reverse_iterator(later), all.rend(), is);
      earlier->end = later->end;
      all.erase(later);
      if (lay_out() > room) all = before;
    }
  }

  std::int64_t lay_out() {
    std::vector<PlannedValue> all = values_;
    all.insert(all.end(), out_.arrivals.begin(), out_.arrivals.end());
    out_.region_bytes = all.empty() ? 0 : plan_memory(all, alignment_);
    const auto split = all.begin() + static_cast<std::ptrdiff_t>(values_.size());
    std::copy(all.begin(), split, values_.begin());
    std::copy(split, all.end(), out_.arrivals.begin());
    return out_.region_bytes;
  }

  std::vector<PlannedValue>& values_;
  std::vector<PlannedWeight>& weights_;
  const std::int64_t capacity_, alignment_;
  Residency out_;
};

}  // namespace

std::optional<Residency> plan_residency(std::vector<PlannedValue>& values, std::vector<PlannedWeight>& weights,
                                        std::int64_t capacity, std::int64_t alignment) {
  return ResidencyPlanner(values, weights, capacity, alignment).plan();
}

}  // namespace ttrt
