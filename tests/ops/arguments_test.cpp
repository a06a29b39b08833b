// Arguments nobody thought of: every graph of tests/data/aten_ops.ir again with one literal of one node changed, with
// one left out, or with inputs of another dtype. Lowerings and rules that look at too few of their arguments show here.
#include <functional>
#include <iterator>

#include "sweep.h"
#include "tests/catch.h"

using namespace ttrt;
using namespace ttrt::test;

namespace {

using ttc::ir::Arg;

// Where the outcome is LibTorch's choice, or LibTorch itself ends the process.
bool defined(const std::string& text) {
  for (const char* name : {
           "sort.default",
           "topk",
           "bucketize",
           "searchsorted",  // equal elements in any order; tables out of order
           "empty_permuted",
           "randint",  // whatever is in memory, random
           "grid_sampler",
           "l1_loss",  // modes are numbers, not all have a meaning
           "_weight_norm",
           "no_stats",
           "native_group_norm",  // LibTorch checks too little
           "div.Tensor_mode",    // float16 rounds a quotient up to a whole number
       })
    if (text.find(name) != std::string::npos) return false;
  return true;
}

// Other values of a literal, of the same kind.
std::vector<Arg> others(const Arg& arg) {
  std::vector<Arg> out;
  if (const auto* b = arg.get_if<bool>()) return {Arg(!*b)};
  if (const auto* d = arg.get_if<double>()) return {Arg(*d * 0.5 + 0.25), Arg(-*d - 1.0)};
  if (const auto* i = arg.get_if<std::int64_t>()) return {Arg(*i + 1), Arg(-*i - 1), Arg(std::int64_t{0})};
  if (const auto* dtype = arg.get_if<DType>())
    return {Arg(*dtype == DType::f32 ? DType::f64 : DType::f32), Arg(DType::i32)};
  if (const auto* text = arg.get_if<std::string>())
    for (const char* other : {"none", "tanh", "floor", "trunc", "same", "mean"})
      if (*text != other) out.emplace_back(other);
  if (const auto integers = arg.integers(); integers && !integers->empty()) {
    const std::vector<std::int64_t> reversed(integers->rbegin(), integers->rend());
    std::vector<std::int64_t> more(*integers), fewer(*integers);
    for (std::int64_t& i : more) ++i;
    fewer.pop_back();
    for (const auto& list : {reversed, more, fewer})
      if (list != *integers) out.push_back(Arg::ints(list));
  }
  return out;
}

// One node's argument replaced.
std::string with_argument(const std::string& text, std::size_t node, std::size_t arg, const Arg& value) {
  return altered(text, [&](ttc::ir::Model& model) {
    (*std::next(model.graph->nodes().begin(), static_cast<std::ptrdiff_t>(node)))->set_arg(arg, value);
    return true;
  });
}

// All inputs of a dtype in another one.
std::string with_inputs(const std::string& text, DType from, DType to) {
  return altered(text, [&](ttc::ir::Model& model) {
    bool changed = false;
    for (const auto& input : model.graph->inputs()) {
      if (model.weight_of(input.value.get()) != nullptr || input.value->type.dtype != from) continue;
      input.value->type.dtype = to;
      changed = true;
    }
    return changed;
  });
}

// What a file may leave open: sizes that are symbols, ranks or dtypes that nobody knows.
std::string with_open_types(const std::string& text, const std::function<void(ttc::ir::Type&)>& forget) {
  const auto model = parse_text(text);
  for (const auto& input : model->graph->inputs())
    if (model->weight_of(input.value.get()) == nullptr && input.value->type.is_tensor()) forget(input.value->type);
  ttc::ir::walk(*model->graph, [&](ttc::ir::Node* node) {
    for (const auto& result : node->results())
      if (result->type.is_tensor()) forget(result->type);
  });
  return ttc::ir::print(*model);
}

std::vector<std::function<Try()>> variants(const std::string& text) {
  std::vector<std::function<Try()>> out;
  if (!defined(text)) return out;
  const auto add = [&](std::function<std::string()> made) {
    out.emplace_back([made = std::move(made)] { return Try{made()}; });
  };
  const auto model = parse_text(text);
  std::size_t at = 0;
  for (const auto& node : model->graph->nodes()) {
    for (std::size_t i = 0; i < node->args().size(); ++i)
      for (const Arg& other : others(node->arg(i))) add([=] { return with_argument(text, at, i, other); });
    ++at;
  }
  for (const DType other : {DType::f64, DType::f16, DType::i64})
    add([=] { return with_inputs(text, DType::f32, other); });
  for (const DType other : {DType::i32, DType::u8}) add([=] { return with_inputs(text, DType::i64, other); });
  add([=] { return with_open_types(text, [](ttc::ir::Type& type) { type.has_shape = false; }); });
  add([=] { return with_open_types(text, [](ttc::ir::Type& type) { type.has_shape = type.has_dtype = false; }); });
  // Each extent a symbol of its own. Results of the graph are made of them, or their types would not fit.
  add([=] {
    return altered(
        text,
        [](ttc::ir::Model& altered) {
          for (const auto& input : altered.graph->inputs()) {
            if (altered.weight_of(input.value.get()) != nullptr) continue;
            for (ttc::ir::SymExpr& size : input.value->type.sizes)
              if (size.is_number() && size.number() > 1)
                size = ttc::ir::SymExpr::symbol("s" + std::to_string(size.number()));
          }
          return true;
        },
        true);
  });
  return out;
}

}  // namespace

TEST_CASE("other arguments give what LibTorch gives", "[edges]") { check_sweep(variants, 3, 1, 4, 400); }

// Behind the suite `long`.
TEST_CASE("every other argument gives what LibTorch gives", "[.long]") { check_sweep(variants, 3, 1, 1, 1000); }
