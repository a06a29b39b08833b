// See shape_prop.h. Equal sample sizes in the same position of different inputs move together; each such group that can
// change without a new failure becomes a symbol, and every observed size is then fitted to an expression of the
// symbols.
#include "shapes/shape_prop.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "shapes/shape_run.h"
#include "shapes/size_fit.h"
#include "support/error.h"

namespace ttc {
namespace {

using ir::SymExpr;

constexpr std::int64_t max_elements = std::int64_t{1} << 40;
constexpr int max_groups = 8;
constexpr int sizes_tried = 4;

// Dims of inputs that change together.
struct Group {
  std::vector<std::pair<std::string, std::size_t>> dims;
  std::int64_t value = 0;
  std::string symbol;

  // Sizes to try beside the sample's: below it where there is room (tables of positions end somewhere), else above.
  std::int64_t other(int i) const { return value > 5 ? value - 1 - i : value + 1 + i; }
};

bool feeds_embedding(const ir::Value& value) {
  return std::any_of(value.users().begin(), value.users().end(), [&](const ir::Node* node) {
    return node->op() == "aten.embedding.default" && node->operand(1) == &value;
  });
}

// i64 for indices of embeddings and for what comes with them, one number a token: masks, segments, positions.
DType guess_dtype(const ir::Model& model, const ir::Value& value, const std::map<std::string, InputShape>& given) {
  if (feeds_embedding(value)) return DType::i64;
  const auto& sizes = given.at(value.name).sizes;
  for (const ir::GraphInput& other : model.graph->inputs()) {
    const auto found = given.find(other.value->name);
    if (found != given.end() && feeds_embedding(*other.value) && found->second.sizes == sizes) return DType::i64;
  }
  return DType::f32;
}

ShapeSample sample_of(const ir::Model& model, const std::map<std::string, InputShape>& given) {
  ShapeSample sample;
  std::set<std::string> known;
  for (const ir::GraphInput& input : model.graph->inputs()) {
    if (input.kind != ir::InputKind::user || input.literal) continue;
    const ir::Value& value = *input.value;
    known.insert(value.name);
    const auto found = given.find(value.name);
    if (found == given.end()) {
      if (!value.type.is_tensor()) continue;
      if (!value.type.is_static())
        throw usage_error("the shape of input '" + value.name + "' is not known",
                          "give it with --shape " + value.name + "=1x128");
      sample.inputs[value.name] = {value.type.dtype, value.type.static_sizes()};
      continue;
    }
    if (!value.type.is_tensor()) {
      if (found->second.integer && value.type.kind == ir::TypeKind::integer)
        sample.integers[value.name] = *found->second.integer;
      continue;
    }
    std::int64_t elements = 1;
    for (const std::int64_t n : found->second.sizes)
      if (n < 0 || __builtin_mul_overflow(elements, std::max<std::int64_t>(n, 1), &elements) || elements > max_elements)
        throw usage_error("the shape of input '" + value.name + "' is impossible");
    const DType guess = value.type.has_dtype ? value.type.dtype : guess_dtype(model, value, given);
    sample.inputs[value.name] = {found->second.dtype.value_or(guess), found->second.sizes};
  }
  for (const auto& [name, shape] : given)
    if (!known.contains(name)) throw usage_error("the model has no input '" + name + "'");
  return sample;
}

ShapeSample with_sizes(ShapeSample sample, const Group& group, std::int64_t size) {
  for (const auto& [name, dim] : group.dims) sample.inputs[name].second[dim] = size;
  return sample;
}

// True where `run` knows all that `base` knows, with the same ranks and dtypes.
bool agrees(const ShapeRun& base, const ShapeRun& run) {
  for (const auto& [value, seen] : base.observed) {
    const auto found = run.observed.find(value);
    if (found == run.observed.end() || found->second.tensor != seen.tensor || found->second.dtype != seen.dtype ||
        found->second.sizes.size() != seen.sizes.size())
      return false;
  }
  for (const auto& [node, steps] : base.steps)
    if (const auto other = run.steps.find(node); other == run.steps.end() || other->second != steps) return false;
  return std::all_of(run.failures.begin(), run.failures.end(),
                     [&](const auto& failure) { return base.failures.contains(failure.first); });
}

// First by (position, size), which keeps a batch and a sequence of the same length apart; then by size alone.
std::vector<Group> candidate_groups(const ShapeSample& sample, bool by_position) {
  std::map<std::pair<std::size_t, std::int64_t>, Group> groups;
  for (const auto& [name, input] : sample.inputs)
    for (std::size_t d = 0; d < input.second.size(); ++d) {
      if (input.second[d] < 1) continue;
      Group& group = groups[{by_position ? d : 0, input.second[d]}];
      group.value = input.second[d];
      group.dims.emplace_back(name, d);
    }
  std::vector<Group> out;
  for (auto& [key, group] : groups) out.push_back(std::move(group));
  return out;
}

std::vector<Group> find_groups(const ir::Model& model, const ShapeSample& sample, const ShapeRun& base) {
  std::vector<Group> found;
  std::set<std::pair<std::string, std::size_t>> taken;
  for (const bool by_position : {true, false})
    for (Group& group : candidate_groups(sample, by_position)) {
      std::erase_if(group.dims, [&](const auto& dim) { return taken.contains(dim); });
      if (group.dims.empty() || found.size() >= max_groups) continue;
      bool free = true;  // a window that swallows one element less is no proof: every size that is used later is tried
      for (int i = 0; free && i < sizes_tried; ++i)
        free = agrees(base, run_shapes(model, with_sizes(sample, group, group.other(i))));
      // Together with the dims that are free already: at one batch size a window may divide what it does not at
      // another.
      for (int i = 0; free && i < 2 && !found.empty(); ++i) {
        ShapeSample joint = with_sizes(sample, group, group.other(i));
        for (const Group& other : found) joint = with_sizes(std::move(joint), other, other.other(i));
        free = agrees(base, run_shapes(model, joint));
      }
      if (!free) continue;
      taken.insert(group.dims.begin(), group.dims.end());
      group.symbol = "s" + std::to_string(found.size());
      found.push_back(std::move(group));
    }
  return found;
}

// ---- fitting ------------------------------------------------------------------------------------------------------

struct Runs : SizeSamples {
  std::vector<Group> groups;  // by symbol
  std::vector<ShapeRun> runs;
};

// What windows and resamplings make of a size: k * floordiv(m * size + a, b) + c. Few runs tell such forms apart, so
// those of fewer terms are tried first.
std::optional<SymExpr> fit_windows(const Known& from, const Column& wanted) {
  std::int64_t common = 0;
  for (const std::int64_t n : wanted) common = std::gcd(common, n - wanted[0]);
  const auto form = [&](std::int64_t k, std::int64_t m, std::int64_t a, std::int64_t b,
                        bool no_rest) -> std::optional<SymExpr> {
    const auto windows = [&](std::size_t r) { return k * ((m * from.values[r] + a) / b); };
    const std::int64_t c = wanted[0] - windows(0);
    if (no_rest && c != 0) return std::nullopt;
    for (std::size_t r = 0; r < wanted.size(); ++r)
      if (windows(r) + c != wanted[r]) return std::nullopt;
    const SymExpr stretched = SymExpr(m) * from.expression + SymExpr(a);
    return SymExpr(k) * (b == 1 ? stretched : SymExpr::call("floordiv", {stretched, SymExpr(b)})) + SymExpr(c);
  };
  constexpr int terms = 3;
  for (int most = 1; most <= terms; ++most)  // a quotient; with a number in or behind it; with both
    for (const std::int64_t k : {std::int64_t{1}, common})
      for (std::int64_t m = 1; m <= 3; ++m)
        for (std::int64_t b = 1; b <= 64; ++b)
          for (std::int64_t a = 0; a < (most == 1 ? 1 : b); ++a)
            if (auto found = form(k, m, a, b, most == 1 || (most == 2 && a != 0))) return found;
  return std::nullopt;
}

// From the sizes of an operator's operands: one of them through windows, or two multiplied. Each step has small numbers
// that few runs tell apart, where strides behind one another have large ones.
std::optional<SymExpr> fit_step(const std::vector<Known>& operands, const Column& wanted) {
  for (const Known& from : operands)
    if (auto found = fit_windows(from, wanted)) return found;
  for (const Known& a : operands)
    for (const Known& b : operands) {
      bool all = true;
      for (std::size_t r = 0; all && r < wanted.size(); ++r) all = a.values[r] * b.values[r] == wanted[r];
      if (all) return a.expression * b.expression;
    }
  return std::nullopt;
}

class Typer {
 public:
  Typer(ir::Model& model, const Runs& runs, ShapeReport& report) : model_(model), runs_(runs), report_(report) {}

  void type_graph(ir::Graph& graph) {
    for (const ir::GraphInput& input : graph.inputs()) {
      if (input.kind == ir::InputKind::user) type_value(*input.value, {});
      if (ir::is_weight(input.value.get()) && runs_.runs[0].conflicting.contains(input.value.get())) {
        // State whose shape changes from call to call.
        input.value->type.has_shape = false;
        input.value->type.sizes.clear();
        input.value->type.strides.clear();
      }
    }
    for (const auto& node : graph.nodes()) {
      for (const auto& region : node->regions()) type_graph(*region);
      const std::vector<Known> operands = operand_sizes(*node);
      for (const auto& result : node->results()) type_value(*result, operands);
      if (const auto failure = runs_.runs[0].failures.find(node.get());
          failure != runs_.runs[0].failures.end() && node->op() != "prim.RaiseException")
        report_.notes.push_back("%" + (node->results().empty() ? std::string("-") : node->result()->name) + " (" +
                                node->op() + "): " + failure->second);
    }
  }

 private:
  // Different sizes of the operands that follow the symbols.
  std::vector<Known> operand_sizes(const ir::Node& node) const {
    std::vector<Known> out;
    for (const ir::Value* operand : node.operands()) {
      const auto found = runs_.runs[0].observed.find(operand);
      if (found == runs_.runs[0].observed.end() || operand->type.sizes.size() != found->second.sizes.size()) continue;
      for (std::size_t d = 0; d < operand->type.sizes.size() && out.size() < max_operand_sizes; ++d) {
        const SymExpr& size = operand->type.sizes[d];
        const auto same = [&](const Known& known) { return known.expression == size; };
        if (size.is_number() || std::any_of(out.begin(), out.end(), same)) continue;
        out.push_back({size, column(*operand, &Observed::sizes, d)});
      }
    }
    return out;
  }

  Column column(const ir::Value& value, std::vector<std::int64_t> Observed::* member, std::size_t i) const {
    Column out;
    for (const ShapeRun& run : runs_.runs) out.push_back((run.observed.at(&value).*member)[i]);
    return out;
  }

  void type_value(ir::Value& value, const std::vector<Known>& operands) {
    const auto found = runs_.runs[0].observed.find(&value);
    if (found == runs_.runs[0].observed.end()) return;
    const Observed& seen = found->second;
    if (!seen.tensor) {
      if (value.type.kind != ir::TypeKind::integer) return;
      const bool given = value.def() == nullptr && value.graph()->parent() == nullptr;
      const SymExpr number = size(column(value, &Observed::sizes, 0), operands);
      if (given || !number.is_number()) value.type.sym = number;
      return;
    }
    std::vector<SymExpr> sizes, strides;
    for (std::size_t i = 0; i < seen.sizes.size(); ++i) {
      sizes.push_back(size(column(value, &Observed::sizes, i), operands));
      if (auto stride = fit(runs_, column(value, &Observed::strides, i))) strides.push_back(std::move(*stride));
    }
    value.type = ir::Type::tensor(seen.dtype, std::move(sizes));
    if (strides.size() == seen.sizes.size()) value.type.strides = std::move(strides);
  }

  // The same expression for all quantities that follow the symbols alike. One that follows them in a way ttc has no
  // expression for becomes a symbol.
  SymExpr size(const Column& wanted, const std::vector<Known>& operands) {
    if (const auto known = sizes_.find(wanted); known != sizes_.end()) return known->second;
    auto found = fit(runs_, wanted);
    if (!found) found = fit_step(operands, wanted);
    return sizes_.emplace(wanted, found ? *found : fresh(wanted[0])).first->second;
  }

  SymExpr fresh(std::int64_t sample) {
    const std::string name = "u" + std::to_string(unknown_++);
    model_.ranges[name] = {.min = 0, .max = std::nullopt};
    model_.info.hints[name] = sample;
    report_.symbols[name] = sample;
    return SymExpr::symbol(name);
  }

  static constexpr std::size_t max_operand_sizes = 8;
  ir::Model& model_;
  const Runs& runs_;
  ShapeReport& report_;
  int unknown_ = 0;
  std::map<Column, SymExpr> sizes_;
};

// The number a 0-d tensor certainly holds: a constant of the file, or made from a number.
std::optional<ir::Arg> number_in(const ir::Model& model, const ir::Value& value) {
  if (value.def() && value.def()->op() == "aten.scalar_tensor.default") return value.def()->arg(0);
  const ir::GraphInput* input = ir::weight_input(&value);
  const ir::Weight* weight = input && input->kind == ir::InputKind::constant ? model.weight_of(&value) : nullptr;
  if (!weight || !weight->sizes.empty() || !weight->data()) return std::nullopt;
  switch (weight->dtype) {
    case DType::i64:
      return *reinterpret_cast<const std::int64_t*>(weight->data());
    case DType::f64:
      return *reinterpret_cast<const double*>(weight->data());
    case DType::f32:
      return double{*reinterpret_cast<const float*>(weight->data())};
    default:
      return std::nullopt;
  }
}

// Traced models divide by 0-d tensors where other files have numbers: x / sqrt(d). With operands of one kind and a
// result like the first, a number does the same.
void use_numbers(ir::Model& model, ir::Graph& graph) {
  static const std::set<std::string_view> arithmetic = {"aten.add.Tensor", "aten.sub.Tensor", "aten.mul.Tensor",
                                                        "aten.div.Tensor"};
  for (const auto& node : graph.nodes()) {
    for (const auto& region : node->regions()) use_numbers(model, *region);
    const ir::Value *first = node->operand(0), *second = node->operand(1);
    if (!arithmetic.contains(node->op()) || !first || !second || !first->type.has_shape || first->type.rank() == 0 ||
        !second->type.is_tensor())
      continue;
    const bool integer = second->type.has_dtype && is_integral(second->type.dtype);
    if (!(node->result()->type == first->type) || !(is_floating(first->type.dtype) || integer)) continue;
    if (auto number = number_in(model, *second)) node->set_arg(1, std::move(*number));
  }
}

// The items that a list's readers take by number, by reader; empty where something else reads it.
std::vector<std::pair<ir::Node*, std::size_t>> items_taken(const ir::Value& list, std::size_t length) {
  std::vector<std::pair<ir::Node*, std::size_t>> out;
  if (list.output_uses() > 0) return {};
  for (ir::Node* user : list.users()) {
    const auto at = user->op() == "aten.__getitem__.t" ? user->arg(1).integer() : std::nullopt;
    const auto size = static_cast<std::int64_t>(length);
    if (!at || *at < -size || *at >= size || !user->result()->type.is_tensor()) return {};
    out.emplace_back(user, static_cast<std::size_t>(*at < 0 ? *at + size : *at));
  }
  return out;
}

// x.chunk(3)[1] in a script: a list whose length the sample decides becomes one result for each of its items, as in
// exported programs. (Lists that are unpacked at once were read that way.)
bool unpack_lists(ir::Model& model, const ShapeSample& sample) {
  bool changed = false;
  const ShapeRun run = run_shapes(model, sample);
  std::vector<ir::Node*> nodes;
  ir::walk(*model.graph, [&](ir::Node* node) { nodes.push_back(node); });
  for (ir::Node* node : nodes) {
    const auto found = run.lists.find(node);
    if (found == run.lists.end() || found->second.size() != 1) continue;
    const std::size_t length = *found->second.begin();
    const auto taken = items_taken(*node->result(), length);
    if (taken.empty()) continue;
    ir::Node* made = node->graph()->insert_before(node, node->op(), node->args());
    made->provenance = node->provenance;
    for (std::size_t i = 0; i < length; ++i) made->add_result(ir::Type::unknown_tensor(), node->result()->name);
    for (const auto& [reader, i] : taken) {
      reader->result()->replace_all_uses_with(made->result(i));
      reader->graph()->erase(reader);
    }
    node->graph()->erase(node);
    changed = true;
  }
  return changed;
}

// x.view(y.shape) in a script: the sizes as integers of their own, as exported programs have them.
bool spell_sizes(ir::Model& model, const ShapeSample& sample) {
  bool changed = false;
  const ShapeRun run = run_shapes(model, sample);
  std::vector<ir::Node*> nodes;
  ir::walk(*model.graph, [&](ir::Node* node) {
    if (node->op() == "aten.size.default") nodes.push_back(node);
  });
  for (ir::Node* node : nodes) {
    const auto found = run.observed.find(node->operand(0));
    if (found == run.observed.end() || !found->second.tensor) continue;
    ir::Arg::List sizes;
    const std::vector<ir::Node*> users = node->result()->users();
    for (ir::Node* user : users)
      for (std::size_t i = 0; i < user->args().size(); ++i) {
        const ir::OpSchema* schema = user->schema();
        const bool sized = schema && i < schema->args.size() && schema->args[i].type.starts_with("SymInt[");
        if (!sized || user->operand(i) != node->result()) continue;
        for (std::size_t d = sizes.size(); d < found->second.sizes.size(); ++d) {
          ir::Node* size =
              node->graph()->insert_before(node, "aten.sym_size.int", {node->arg(0), static_cast<std::int64_t>(d)});
          size->provenance = node->provenance;
          sizes.emplace_back(size->add_result(ir::Type::integer()));
        }
        user->set_arg(i, sizes);
        changed = true;
      }
    if (!node->result()->has_uses()) node->graph()->erase(node);
  }
  return changed;
}

Runs observe(const ir::Model& model, const ShapeSample& sample, bool dynamic) {
  Runs all;
  all.runs.push_back(run_shapes(model, sample));
  all.alone.push_back(-1);
  if (dynamic) all.groups = find_groups(model, sample, all.runs[0]);
  std::vector<std::int64_t> values;
  for (const Group& group : all.groups) {
    all.names.push_back(group.symbol);
    values.push_back(group.value);
  }
  all.symbols.push_back(values);
  const auto add = [&](const std::vector<std::int64_t>& sizes, int alone) {
    ShapeSample changed = sample;
    for (std::size_t g = 0; g < sizes.size(); ++g) changed = with_sizes(std::move(changed), all.groups[g], sizes[g]);
    ShapeRun run = run_shapes(model, changed);
    if (!agrees(all.runs[0], run)) return false;
    all.symbols.push_back(sizes);
    all.runs.push_back(std::move(run));
    all.alone.push_back(alone);
    return true;
  };
  bool together = true;
  for (std::size_t g = 0; g < all.groups.size(); ++g) {
    auto sizes = values;
    for (int i = 0; i < sizes_tried; i += 2) {
      sizes[g] = all.groups[g].other(i);
      together = together && add(sizes, static_cast<int>(g));
    }
    // Far from the sample the steps of strided windows show; tables of positions may end before.
    for (const std::int64_t far : {values[g] / 2 + 1, values[g] + values[g] / 2 + 3})
      if (sizes[g] = far; far != values[g]) add(sizes, static_cast<int>(g));
  }
  for (int mix = 0; mix < 2 && !all.groups.empty(); ++mix) {
    auto sizes = values;
    for (std::size_t g = 0; g < sizes.size(); ++g)
      sizes[g] = all.groups[g].other(1 + mix + (mix ? static_cast<int>(g % 2) : 0));
    together = together && add(sizes, -1);
  }
  if (together) return all;
  return observe(model, sample, false);  // dims that only change one at a time: all stay numbers
}

}  // namespace

ShapeReport propagate_shapes(ir::Model& model, const std::map<std::string, InputShape>& inputs, bool dynamic) {
  const ShapeSample sample = sample_of(model, inputs);
  // What comes behind a list or a shape is known only once these are.
  for (bool lists = true, sizes = true; lists || sizes;) {
    lists = unpack_lists(model, sample);
    sizes = spell_sizes(model, sample);
  }
  const Runs runs = observe(model, sample, dynamic);
  ShapeReport report;
  for (const Group& group : runs.groups) {
    report.symbols[group.symbol] = group.value;
    model.ranges[group.symbol] = {.min = 1, .max = std::nullopt};
    model.info.hints[group.symbol] = group.value;
  }
  Typer(model, runs, report).type_graph(*model.graph);
  use_numbers(model, *model.graph);
  return report;
}

}  // namespace ttc
