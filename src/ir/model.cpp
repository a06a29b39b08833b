// Storages that make their bytes when asked, views into them, and the inputs that stand for weights.
#include "ir/model.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <mutex>
#include <set>
#include <utility>

#include "support/error.h"

namespace ttc::ir {

std::pair<std::shared_ptr<const void>, const std::byte*> Storage::load() const {
  if (data != nullptr || !produce) return {owner, data};
  auto made = std::make_shared<const std::vector<std::byte>>(produce());
  TTC_CHECK(made->size() == bytes, "a storage produced another number of bytes than it has");
  return {made, made->data()};
}

struct ExtraText::Late {
  std::function<std::string()> make;
  std::once_flag once;
  std::string text;
};

ExtraText::ExtraText(std::function<std::string()> make) : late_(std::make_shared<Late>()) {
  late_->make = std::move(make);
}

const std::string& ExtraText::str() const {
  if (!late_) return text_;
  std::call_once(late_->once, [this] { late_->text = std::exchange(late_->make, {})(); });
  return late_->text;
}

std::int64_t Weight::numel() const {
  std::int64_t n = 1;
  for (const std::int64_t size : sizes)
    if (__builtin_mul_overflow(n, size, &n)) return std::numeric_limits<std::int64_t>::max();
  return n;
}

std::size_t Weight::nbytes() const {
  std::int64_t n = 0;
  if (__builtin_mul_overflow(numel(), static_cast<std::int64_t>(size_of(dtype)), &n))
    return std::numeric_limits<std::int64_t>::max();
  return static_cast<std::size_t>(n);
}

const std::byte* Weight::data() const {
  if (!storage || storage->data == nullptr) return nullptr;
  return storage->data + storage_offset * size_of(dtype);
}

bool Weight::is_contiguous() const {
  if (strides.size() != sizes.size()) return false;
  if (numel() == 0) return true;
  std::int64_t expected = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 1) continue;
    if (strides[i] != expected) return false;
    expected *= sizes[i];
  }
  return true;
}

bool Weight::fits_storage() const {
  if (strides.size() != sizes.size() || storage_offset < 0 || !storage) return false;
  std::int64_t last = storage_offset;  // of the element with the largest offset
  bool empty = false;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::int64_t step = 0;
    if (sizes[i] < 0 || strides[i] < 0) return false;
    empty = empty || sizes[i] == 0;
    if (__builtin_mul_overflow(std::max<std::int64_t>(sizes[i] - 1, 0), strides[i], &step) ||
        __builtin_add_overflow(last, step, &last))
      return false;
  }
  const std::int64_t elements = static_cast<std::int64_t>(storage->bytes / static_cast<std::size_t>(size_of(dtype)));
  return empty ? storage_offset <= elements : last < elements;
}

std::vector<std::int64_t> contiguous_strides(const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> strides(sizes.size());
  std::int64_t stride = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    if (__builtin_mul_overflow(stride, std::max<std::int64_t>(sizes[i], 1), &stride))
      stride = std::numeric_limits<std::int64_t>::max();
  }
  return strides;
}

Weight make_weight(DType dtype, std::vector<std::int64_t> sizes, std::vector<std::byte> bytes) {
  Weight weight;
  weight.dtype = dtype;
  weight.strides = contiguous_strides(sizes);
  weight.sizes = std::move(sizes);
  TTC_CHECK(weight.nbytes() == bytes.size(), "make_weight with another number of bytes than the sizes say");
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  auto storage = std::make_shared<Storage>();
  storage->data = owner->data();
  storage->bytes = owner->size();
  storage->owner = std::move(owner);
  weight.storage = std::move(storage);
  return weight;
}

const Weight* Model::weight_of(const Value* value) const {
  const GraphInput* input = weight_input(value);
  if (input == nullptr || value->graph() != graph.get()) return nullptr;
  const auto it = weights.find(input->target);
  return it == weights.end() ? nullptr : &it->second;
}

namespace {

// Attributes of torch.nn.Module that operators share names with: PyTorch sets constants as attributes when it loads.
bool is_module_attribute(std::string_view name) {
  static constexpr std::string_view taken[] = {"apply",  "bfloat16", "call",     "compile", "cpu",  "cuda",
                                               "double", "eval",     "float",    "forward", "half", "modules",
                                               "to",     "train",    "training", "type"};
  return std::find(std::begin(taken), std::end(taken), name) != std::end(taken);
}

}  // namespace

Value* Model::add_constant(std::string name, Weight weight) {
  std::string target = name;
  for (int i = 1; weights.contains(target) || is_module_attribute(target); ++i) target = name + "_" + std::to_string(i);
  std::vector<SymExpr> sizes(weight.sizes.begin(), weight.sizes.end());
  Value* value = graph->add_input(Type::tensor(weight.dtype, std::move(sizes)), target, InputKind::constant, target);
  weights.emplace(std::move(target), std::move(weight));
  return value;
}

void Model::remove_constant(Value* value) {
  weights.erase(graph->inputs().at(static_cast<std::size_t>(value->index())).target);
  graph->remove_input(static_cast<std::size_t>(value->index()));
}

namespace {

std::vector<std::size_t> unread_inputs(const Graph& graph) {
  std::set<std::string_view> written;
  for (const GraphOutput& output : graph.outputs()) written.insert(output.target);
  std::vector<std::size_t> unread;
  for (std::size_t i = 0; i < graph.inputs().size(); ++i)
    if (const GraphInput& input = graph.inputs()[i];
        is_weight(input.value.get()) && !input.value->has_uses() && !written.contains(input.target))
      unread.push_back(i);
  return unread;
}

}  // namespace

std::uint64_t Model::weight_bytes() const {
  std::set<const Storage*> seen;
  std::uint64_t bytes = 0;
  for (const auto& [name, weight] : weights)
    if (weight.storage && seen.insert(weight.storage.get()).second) bytes += weight.storage->bytes;
  return bytes;
}

std::vector<std::string> Model::unread_weights() const {
  std::vector<std::string> targets;
  for (const std::size_t i : unread_inputs(*graph)) targets.push_back(graph->inputs()[i].target);
  return targets;
}

namespace {

// Targets are paths of attributes: what was made of a weight that stays cannot be an attribute of it.
void leave_weight(std::map<std::string, Weight, std::less<>>& weights, std::string& target) {
  std::string beside = target;
  for (std::size_t dot = beside.find('.'); dot != std::string::npos; dot = beside.find('.', dot + 1))
    if (weights.contains(std::string_view(beside).substr(0, dot))) beside[dot] = '_';
  if (beside == target) return;
  const std::string stem = beside;
  for (int i = 1; weights.contains(beside); ++i) beside = stem + "_" + std::to_string(i);
  auto entry = weights.extract(target);
  if (entry.empty()) return;
  entry.key() = beside;
  weights.insert(std::move(entry));
  target = beside;
}

}  // namespace

void Model::drop_unused_weights() {
  graph->remove_inputs(unread_inputs(*graph));
  std::set<std::string, std::less<>> named;
  for (const GraphInput& input : graph->inputs())
    if (is_weight(input.value.get())) named.insert(input.target);
  std::erase_if(weights, [&](const auto& item) { return !named.contains(item.first); });
  for (std::size_t i = 0; i < graph->inputs().size(); ++i)
    if (graph->inputs()[i].kind == InputKind::constant) leave_weight(weights, graph->input(i).target);
}

}  // namespace ttc::ir
