// Reads the index operands of a call and turns them into positions, checked.
#include "ops/emit.h"
#include "ops/index_plan.h"

#include <algorithm>

namespace ttrt::ops {

using ttc::Reason;
using ttc::ReasonCode;
namespace ir = ttc::ir;

namespace {

// Offsets in row-major order of all positions of some dims of a tensor.
std::vector<std::int64_t> offsets(const Shape& shape, const Shape& strides, std::size_t first, std::size_t last,
                                  const std::vector<std::int64_t>& without) {
  std::vector<std::int64_t> out{0};
  for (std::size_t d = first; d < last; ++d) {
    if (std::find(without.begin(), without.end(), static_cast<std::int64_t>(d)) != without.end()) continue;
    std::vector<std::int64_t> next;
    for (const std::int64_t at : out)
      for (std::int64_t i = 0; i < shape[d]; ++i) next.push_back(at + i * strides[d]);
    out = std::move(next);
  }
  return out;
}

}  // namespace

IndexPlan::IndexPlan(const OpCall& call) : x_(spec_of(call, "x").logical), strides_(strides_of(x_)) {
  for (const std::int64_t dim : call.integers("dims")) dims_.push_back(wrap_dim(call, dim, x_.size()));
  const auto* refs = std::get_if<std::vector<TensorRef>>(&call.arg("indices"));
  if (refs == nullptr || refs->size() != dims_.size() || dims_.empty() || x_.empty() ||
      !std::is_sorted(dims_.begin(), dims_.end()))
    bad_call(call, "dims and indices do not go together");
  for (const TensorRef ref : *refs) {
    indices_.push_back(call.tensors.at(static_cast<std::size_t>(ref.index)).logical);
    common_ = broadcast(call, common_, indices_.back());
  }
  const auto first = static_cast<std::size_t>(dims_.front()), last = static_cast<std::size_t>(dims_.back());
  const bool neighbours = last - first + 1 == dims_.size();
  for (Shape own : indices_) {
    own.insert(own.begin(), common_.size() - own.size(), 1);
    Shape steps = strides_of(own);
    for (std::size_t d = 0; d < own.size(); ++d)
      if (own[d] == 1) steps[d] = 0;
    steps_.push_back(std::move(steps));
  }
  const std::size_t split = neighbours ? first : 0;
  outer_steps_ = offsets(x_, strides_, 0, split, dims_);
  outer_ = static_cast<std::int64_t>(outer_steps_.size());
  // The dims after the last index lie side by side: one run.
  for (std::size_t d = last + 1; d < x_.size(); ++d) run_ *= x_[d];
  rest_ = offsets(x_, strides_, split, last + 1, dims_);
  inner_ = static_cast<std::int64_t>(rest_.size()) * run_;
  for (std::size_t d = 0; d < split; ++d) result_.push_back(x_[d]);
  result_.insert(result_.end(), common_.begin(), common_.end());
  for (std::size_t d = split; d < x_.size(); ++d) {
    if (std::find(dims_.begin(), dims_.end(), static_cast<std::int64_t>(d)) == dims_.end()) result_.push_back(x_[d]);
  }
}

const std::vector<std::int64_t>& IndexPlan::positions(const KernelArgs& args, std::size_t first) const {
  thread_local std::vector<std::int64_t> out;
  thread_local Shape at;
  out.assign(static_cast<std::size_t>(volume(common_)), 0);
  for (std::size_t k = 0; k < indices_.size(); ++k) {
    const std::uint32_t* index = load_dense(*args.in[first + k], 3);
    const auto dim = static_cast<std::size_t>(dims_[k]);
    at.assign(common_.size(), 0);
    for (std::int64_t& position : out) {
      std::int64_t from = 0;
      for (std::size_t d = 0; d < at.size(); ++d) from += at[d] * steps_[k][d];
      position += checked_index(static_cast<std::int32_t>(index[from]), x_[dim]) * strides_[dim];
      for (std::size_t d = at.size(); d-- > 0 && ++at[d] == common_[d];) at[d] = 0;
    }
  }
  return out;
}

ElementPlan::ElementPlan(const OpCall& call)
    : x_(spec_of(call, "x").logical), index_(spec_of(call, "index").logical), strides_(strides_of(x_)) {
  dim_ = static_cast<std::size_t>(wrap_dim(call, call.integer("dim"), x_.size()));
}

std::variant<IndexArguments, Reason> index_arguments(const LowerContext& context, const ir::Arg& list) {
  if (auto no = check_values(context)) return *no;
  if (list.list() == nullptr) return unsupported("indices computed at run time");
  IndexArguments out;
  std::int64_t dim = 0;
  for (const ir::Arg& item : *list.list()) {
    const ir::Value* index = item.value();
    if (index != nullptr && is_boolean(index)) return unsupported("a mask as index: its ones are counted at run time");
    if (index != nullptr) {
      out.dims.push_back(dim);
      out.indices.push_back(item);
    }
    ++dim;
  }
  if (out.dims.empty()) return unsupported("no index");
  return out;
}

RtValue index_list(const OpCall& call, const RtValue& indices) {
  RtValue::List out;
  const auto* given = indices.get_if<RtValue::List>();
  const auto dims = call.integers("dims");
  const std::size_t rank = spec_of(call, "x").logical.size();
  for (std::size_t i = 0; given != nullptr && i < dims.size(); ++i) {
    const auto dim = static_cast<std::size_t>(wrap_dim(call, dims[i], rank));
    while (out.size() < dim) out.emplace_back();
    out.push_back(as_wide((*given)[i]));
  }
  return out;
}

std::size_t index_rank(const OpCall& call) {
  std::size_t rank = 0;
  for (const TensorRef& index : std::get<std::vector<TensorRef>>(call.arg("indices")))
    rank = std::max(rank, call.tensors.at(static_cast<std::size_t>(index.index)).logical.size());
  return rank;
}

bool finds_positions(std::string_view op) {
  constexpr std::string_view found[] = {"tt.argmax", "tt.argmin", "tt.argsort", "tt.max",
                                        "tt.min",    "tt.topk",   "tt.sort"};
  return std::ranges::find(found, op) != std::end(found);
}

bool keeps_elements(std::string_view op) {
  constexpr std::string_view same[] = {"tt.reshape", "tt.squeeze", "tt.unsqueeze", "tt.typecast"};
  return std::ranges::find(same, op) != std::end(same);
}

bool counts_from_start(const ir::Value& value) {
  const ir::Node* node = value.def();
  if (node == nullptr) return false;
  const std::string& op = node->op();
  if (op == "tt.arange") {
    const ir::Arg *start = node->arg("start"), *step = node->arg("step");
    return (start == nullptr || start->number().value_or(-1) >= 0) &&
           (step == nullptr || step->number().value_or(-1) > 0);
  }
  if (finds_positions(op)) return value.index() + 1 == static_cast<int>(node->results().size());
  constexpr std::string_view moves[] = {"tt.reshape", "tt.expand",    "tt.slice",     "tt.select", "tt.squeeze",
                                        "tt.repeat",  "tt.unsqueeze", "tt.transpose", "tt.permute"};
  return std::ranges::find(moves, op) != std::end(moves) && counts_from_start(*node->operand(0));
}

std::string python_index(PythonCall& to, std::size_t i, std::int64_t dim) {
  const auto tensor = static_cast<std::size_t>(std::get<std::vector<TensorRef>>(to.call.arg("indices")).at(i).index);
  const std::string index = to.operands("indices").at(i);
  if (to.counts_from_start(tensor)) return index;
  return to.let("index", Python("ttnn.remainder").arg(index).arg(to.sizes("x").at(static_cast<std::size_t>(dim))));
}

std::string expanded_index(PythonCall& to, std::vector<std::string> sizes, std::size_t at, const std::string& index,
                           const std::string& count) {
  std::vector<std::string> flat(sizes.size(), "1");
  flat[at] = sizes[at] = count;
  const std::string ids = to.let("index", Python("ttnn.typecast").arg(index).arg("ttnn.uint32"));
  const std::string column = to.let("index", Python("ttnn.reshape").arg(ids).arg(python_list(flat)));
  return to.let("index", Python("ttnn.expand").arg(column).arg(python_list(sizes)));
}

}  // namespace ttrt::ops
