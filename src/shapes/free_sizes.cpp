// Takes graphs apart into integers and all the rest, which has to be the same, and fits the integers (size_fit.h).
#include "shapes/free_sizes.h"

#include <algorithm>
#include <bit>
#include <map>
#include <unordered_map>

namespace ttc {
namespace {

using ir::Arg;
using ir::Value;

// Takes a model apart into the integers that may follow sizes and a text of all the rest.
class Flattened {
 public:
  explicit Flattened(const ir::Model& model) {
    if (!model.weights.empty()) throw GivenUp("its definition has constants, and sizes are free");
    for (const ir::GraphInput& input : model.graph->inputs()) number(input.value.get());
    for (const auto& node : model.graph->nodes()) {
      rest += node->op() + "(";
      for (const Arg& one : node->args()) arg(one);
      rest += ")";
      for (const auto& result : node->results()) {
        number(result.get());
        rest += std::string(to_string(result->type.dtype)) + std::to_string(result->type.rank()) + ";";
        for (const ir::SymExpr& size : result->type.sizes) integers.push_back(size.number());
      }
    }
    for (const ir::GraphOutput& output : model.graph->outputs()) arg(output.arg);
  }

  std::vector<std::int64_t> integers;
  std::string rest;

 private:
  void number(const Value* value) { numbers_.emplace(value, numbers_.size()); }

  void arg(const Arg& one) {
    if (const Value* value = one.value()) {
      rest += "%" + std::to_string(numbers_.at(value)) + ",";
    } else if (const auto* n = one.get_if<std::int64_t>()) {
      integers.push_back(*n);
      rest += "n,";
    } else if (const Arg::List* items = one.list()) {
      rest += "[";
      for (const Arg& item : *items) arg(item);
      rest += "],";
    } else if (const auto* x = one.get_if<double>()) {
      rest += std::to_string(std::bit_cast<std::uint64_t>(*x)) + ",";
    } else if (const auto* text = one.get_if<std::string>()) {
      rest += "'" + *text + "',";
    } else if (const auto* flag = one.get_if<bool>()) {
      rest += *flag ? "true," : "false,";
    } else if (const auto* dtype = one.get_if<DType>()) {
      rest += std::string(to_string(*dtype)) + ",";
    } else {
      rest += std::to_string(one.v.index()) + ",";
    }
  }

  std::unordered_map<const Value*, std::size_t> numbers_;
};

// Puts expressions where the integers of a model are, in the order of Flattened.
class Sizer {
 public:
  Sizer(ir::Model& model, std::vector<ir::SymExpr> sizes) : graph_(*model.graph), sizes_(std::move(sizes)) {
    for (const auto& node : graph_.nodes()) {
      std::vector<Arg> args = node->args();
      for (Arg& one : args) arg(one);
      node->set_args(std::move(args));
      for (const auto& result : node->results())
        for (ir::SymExpr& size : result->type.sizes) size = sizes_[next_++];
    }
  }

 private:
  void arg(Arg& one) {
    if (Arg::List* items = one.list())
      for (Arg& item : *items) arg(item);
    if (one.get_if<std::int64_t>() == nullptr) return;
    const ir::SymExpr& size = sizes_[next_++];
    if (size.is_number()) return;
    Value*& input = inputs_[size.str()];
    if (input == nullptr) input = graph_.add_input(ir::Type::integer(size), graph_.unique_name("n"));
    one = input;
  }

  ir::Graph& graph_;
  std::vector<ir::SymExpr> sizes_;
  std::size_t next_ = 0;
  std::map<std::string, Value*> inputs_;
};

// ---- what sizes are made of: those of operands and results, their products, and what was found before

void add_known(std::vector<Known>& known, const ir::SymExpr& expression, const Column& values) {
  constexpr std::size_t most = 24;
  const auto same = [&](const Known& one) { return one.values == values; };
  if (known.size() < most && !expression.is_number() && std::ranges::none_of(known, same))
    known.push_back({expression, values});
}

void add_sizes(std::vector<Known>& known, const ir::Type& type, const SizeSamples& samples) {
  if (!type.is_tensor() || !type.has_shape) return;
  ir::SymExpr all(1);
  Column elements(samples.symbols.size(), 1);
  for (const ir::SymExpr& size : type.sizes) {
    Column values;
    for (std::size_t r = 0; r < elements.size(); ++r) {
      const auto n = size.evaluate(samples.binding(r));
      if (!n) return;
      values.push_back(*n);
      elements[r] *= *n;
    }
    all = all * size;
    add_known(known, size, values);
  }
  add_known(known, all, elements);
}

std::vector<Known> sizes_of(const ir::Node& node, const SizeSamples& samples) {
  std::vector<Known> out;
  for (const Value* operand : node.operands()) add_sizes(out, operand->type, samples);
  for (const auto& result : node.results()) add_sizes(out, result->type, samples);
  return out;
}

}  // namespace

// The sample that the model came with, each symbol alone at sizes near and far and at multiples, which what divides a
// size takes, and all together.
SizeSamples samples_of(const ir::Model& of, const ir::Node& node) {
  std::vector<std::string> names;
  for (const Value* value : node.operands()) {
    for (const ir::SymExpr& size : value->type.sizes) size.collect_symbols(names);
    if (value->type.sym) value->type.sym->collect_symbols(names);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  SizeSamples out{.names = names, .symbols = {}, .alone = {}};
  std::vector<std::int64_t> base;
  const auto least = [&](const std::string& name) {
    const auto range = of.ranges.find(name);
    return range == of.ranges.end() ? 1 : std::max<std::int64_t>(range->second.min.value_or(1), 1);
  };
  for (const std::string& name : names) {
    const auto hint = of.info.hints.find(name);
    base.push_back(hint == of.info.hints.end() ? least(name) + 4 : std::max(hint->second, least(name)));
  }
  const auto add = [&](std::vector<std::int64_t> symbols, int alone) {
    for (std::size_t g = 0; g < names.size(); ++g) {
      const auto range = of.ranges.find(names[g]);
      if (range != of.ranges.end() && range->second.max && symbols[g] > *range->second.max) return;
    }
    out.symbols.push_back(std::move(symbols));
    out.alone.push_back(alone);
  };
  add(base, -1);
  for (std::size_t g = 0; g < names.size(); ++g)
    for (const std::int64_t n : {base[g] + 1, base[g] * 2 + 3, base[g] * 2, base[g] * 3, least(names[g])})
      if (auto symbols = base; n != base[g]) symbols[g] = n, add(std::move(symbols), static_cast<int>(g));
  for (const bool backwards : {false, true}) {
    auto symbols = base;
    for (std::size_t g = 0; g < names.size(); ++g)
      symbols[g] += static_cast<std::int64_t>(backwards ? names.size() - g : g + 1);
    if (names.size() > 1) add(std::move(symbols), -1);
  }
  return out;
}

void free_sizes(ir::Model& model, const ir::Node& node, const std::vector<std::unique_ptr<ir::Model>>& others,
                const SizeSamples& samples) {
  std::vector<Flattened> seen;
  seen.emplace_back(model);
  SizeSamples taken{.names = samples.names, .symbols = {samples.symbols[0]}, .alone = {-1}};
  for (std::size_t i = 0; i < others.size(); ++i) {
    if (!others[i]) continue;
    seen.emplace_back(*others[i]);
    if (seen.back().rest != seen[0].rest) throw GivenUp("what it calls depends on sizes that are free");
    taken.symbols.push_back(samples.symbols[i + 1]);
    taken.alone.push_back(samples.alone[i + 1]);
  }
  for (std::size_t g = 0; g < taken.names.size(); ++g)
    if (std::count(taken.alone.begin(), taken.alone.end(), static_cast<int>(g)) < 2)
      throw GivenUp("sizes of it cannot change by themselves");
  std::vector<Known> known = sizes_of(node, taken);
  std::vector<ir::SymExpr> sizes;
  for (std::size_t i = 0; i < seen[0].integers.size(); ++i) {
    Column column;
    for (const Flattened& one : seen) column.push_back(one.integers[i]);
    auto found = fit(taken, column);
    if (!found) found = fit_known(known, column);
    if (!found) throw GivenUp("a size within it follows the free ones in no simple way");
    add_known(known, *found, column);
    sizes.push_back(std::move(*found));
  }
  Sizer(model, std::move(sizes));
}

}  // namespace ttc
