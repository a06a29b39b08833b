// Where indices lead: shared by the ops that read elements by index and those that write them.
#pragma once

#include "ops/dense.h"
#include "ops/rules.h"

namespace ttrt::ops {

// x[i, :, j, ...] of a call (x, int[] dims, Tensor[] indices): the index tensors broadcast to one shape, which takes
// the place of the dims they index where those are neighbours, else comes first.
class IndexPlan {
 public:
  explicit IndexPlan(const OpCall& call);  // throws ttc::Error where shapes do not fit
  const Shape& result() const { return result_; }
  // The offsets in x that the indices say, one per element of their common shape; `first` is the position of the first
  // index among the operands. They are the thread's until its next call. Throws ttc::Error for an index outside its
  // dim.
  const std::vector<std::int64_t>& positions(const KernelArgs& args, std::size_t first) const;
  std::int64_t inner() const { return outer_ * inner_; }  // elements of the result per index
  // f(offset in the result, offset in x, run length) over all of it.
  template <typename F>
  void for_each(const std::vector<std::int64_t>& positions, const F& f) const {
    const auto n = static_cast<std::int64_t>(positions.size());
    for (std::int64_t o = 0; o < outer_; ++o)
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t m = 0; m < static_cast<std::int64_t>(rest_.size()); ++m)
          f(((o * n + i) * static_cast<std::int64_t>(rest_.size()) + m) * run_,
            positions[static_cast<std::size_t>(i)] + outer_steps_[static_cast<std::size_t>(o)] +
                rest_[static_cast<std::size_t>(m)],
            run_);
  }

 private:
  Shape x_, strides_, common_, result_;
  std::vector<std::int64_t> dims_;
  std::vector<Shape> indices_, steps_;  // steps: from one element to the next along each common dim
  std::int64_t outer_ = 1, inner_ = 1, run_ = 1;
  std::vector<std::int64_t> outer_steps_, rest_;  // offsets in x of what is not indexed, before and after the indices
};

// One element at a time along `dim`: call (x, int dim, Tensor index).
class ElementPlan {
 public:
  explicit ElementPlan(const OpCall& call);
  std::int64_t count() const { return volume(index_); }
  // f(position in the index, offset in x).
  template <typename F>
  void for_each(const std::uint32_t* index, const F& f) const {
    thread_local Shape at;  // kept: a steady run allocates nothing
    at.assign(index_.size(), 0);
    for (std::int64_t i = 0, n = count(); i < n; ++i) {
      std::int64_t offset = 0;
      for (std::size_t d = 0; d < at.size(); ++d)
        offset += (d == dim_ ? checked_index(static_cast<std::int32_t>(index[i]), x_[d]) : at[d]) * strides_[d];
      f(i, offset);
      for (std::size_t d = at.size(); d-- > 0 && ++at[d] == index_[d];) at[d] = 0;
    }
  }

 private:
  Shape x_, index_, strides_;
  std::size_t dim_ = 0;
};

// The indexed dims and their indices of ATen's list, in which None stands for a whole dim.
struct IndexArguments {
  std::vector<std::int64_t> dims;
  ttc::ir::Arg::List indices;
};
std::variant<IndexArguments, ttc::Reason> index_arguments(const LowerContext& context, const ttc::ir::Arg& list);
// ATen's list of a call's dims and index tensors.
RtValue index_list(const OpCall& call, const RtValue& indices);

// ---- TT-NN's Python

// How many dims the indices of a call of tt.index or tt.index_put have together.
std::size_t index_rank(const OpCall& call);
// Whether the last result of a device op is positions of elements along a dim.
bool finds_positions(std::string_view op);
// Whether a device op gives the elements of its operand in their order, in another shape or format.
bool keeps_elements(std::string_view op);
// Whether a value's elements are never negative: places that were found, a range from 0 on, and what moves such.
bool counts_from_start(const ttc::ir::Value& value);
// The index operand `i` of a call, counted from the start of dim `dim` of x: the library's gathers know no other.
std::string python_index(PythonCall& to, std::size_t i, std::int64_t dim);
// `count` indices of rows along dim `at` of a tensor of these sizes, flat, for every element of the rows: uint32,
// [.., n, ..].
std::string expanded_index(PythonCall& to, std::vector<std::string> sizes, std::size_t at, const std::string& index,
                           const std::string& count);

}  // namespace ttrt::ops
