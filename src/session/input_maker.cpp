// Random numbers that are the same everywhere, recipes such as "arange", and shapes whose free dims the call decides.
#include "session/input_maker.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <random>
#include <set>

#include "executor/signature.h"
#include "formats/safetensors.h"
#include "session/input_places.h"
#include "session/values.h"
#include "support/error.h"
#include "torch/scalar_ops.h"

namespace ttc {
namespace {

using ttrt::HostTensor;
using ttrt::RtValue;
using ttrt::Shape;
using ttrt::UserInput;

// Standard normal floats; integers and bools 0 or 1, which are valid as indices and as masks.
HostTensor random_tensor(DType dtype, const Shape& sizes, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  const std::int64_t n = ttrt::volume(sizes);
  if (is_floating(dtype) || is_complex(dtype)) {
    HostTensor out = ttrt::empty_host(DType::f32, sizes);
    // Box-Muller on 53-bit uniforms: the same on every standard library.
    for (std::int64_t i = 0; i < n; ++i) {
      const double u = (static_cast<double>(engine() >> 11) + 0.5) * 0x1p-53,
                   v = static_cast<double>(engine() >> 11) * 0x1p-53;
      out.as<float>()[i] = static_cast<float>(std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v));
    }
    return ttrt::convert(out, dtype);
  }
  HostTensor out = ttrt::empty_host(DType::i64, sizes);
  for (std::int64_t i = 0; i < n; ++i) out.as<std::int64_t>()[i] = static_cast<std::int64_t>(engine() >> 63);
  return ttrt::convert(out, dtype);
}

HostTensor filled(DType dtype, const Shape& sizes, std::int64_t start, std::int64_t step) {
  HostTensor out = ttrt::empty_host(DType::i64, sizes);
  for (std::int64_t i = 0; i < out.numel(); ++i) out.as<std::int64_t>()[i] = start + i * step;
  return ttrt::convert(out, dtype);
}

std::uint64_t parse_seed(const std::string& text, const std::string& flag) {
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error != std::errc() || end != text.data() + text.size()) throw usage_error(flag + ": '" + text + "' is no seed");
  return seed;
}

// "16000", "0.5", "true": a number of the kind the input has.
std::optional<RtValue> parse_number(ir::TypeKind kind, const std::string& text) {
  const char *begin = text.data(), *end = begin + text.size();
  if (kind == ir::TypeKind::boolean && (text == "true" || text == "True" || text == "1")) return RtValue(true);
  if (kind == ir::TypeKind::boolean && (text == "false" || text == "False" || text == "0")) return RtValue(false);
  if (std::int64_t n = 0; kind == ir::TypeKind::integer && std::from_chars(begin, end, n).ptr == end && begin != end)
    return RtValue(n);
  if (double x = 0; kind == ir::TypeKind::floating && std::from_chars(begin, end, x).ptr == end && begin != end)
    return RtValue(x);
  return std::nullopt;
}

class InputMaker {
 public:
  InputMaker(const ir::Model& model, const InputOptions& options)
      : model_(model), options_(options), formal_(ttrt::user_inputs(model)) {
    given_shapes_.resize(formal_.size());
    given_.resize(formal_.size());
    parts_.resize(formal_.size());
    for (const std::string& text : options.shapes) {
      const auto [name, shape] = split_assignment(text, "--shape");
      InputShape given = parse_shape(shape, "--shape " + text);
      Part* part = part_of(name);
      auto& place = part != nullptr ? part->shape : given_shapes_[input_index(model, name, "--shape")];
      if (place) throw usage_error("--shape gives input '" + name + "' twice");
      place = std::move(given);
    }
    for (const std::string& text : options.inputs) {
      const auto [name, value] = split_assignment(text, "--input");
      Part* part = part_of(name);
      auto& place = part != nullptr ? part->recipe : given_[input_index(model, name, "--input")];
      if (place) throw usage_error("--input gives input '" + name + "' twice");
      place = value;
    }
  }

  // Fills what the inputs leave open and no step before makes; the notes say which numbers were chosen.
  void fill(Case& one) {
    std::vector<RtValue>& inputs = one.inputs;
    inputs.resize(formal_.size());
    one.carried.resize(formal_.size());
    for (std::size_t i = 0; i < formal_.size(); ++i)
      if (given_[i] && given_[i]->starts_with("@")) inputs[i] = from_file(i, given_[i]->substr(1));
    bind_known(inputs);
    for (std::size_t i = 0; i < formal_.size(); ++i) {
      if (given_shapes_[i] && !inputs[i].is_none() && (!given_[i] || given_[i]->starts_with("@")))
        idle_.insert("--shape " + formal_[i].name + " has no effect: the input is given, with a shape of its own");
      if (!one.carried[i].any() && (given(i) ? !given_[i] || !given_[i]->starts_with("@") : inputs[i].is_none())) {
        if (const bool recorded = !inputs[i].is_none(); recorded && !one.expected.empty())
          idle_.insert("--input makes another '" + formal_[i].name +
                       "' than the one that the expected outputs are recorded of");
        inputs[i] = make(i);
        if (guessed(i)) one.guessed.push_back(formal_[i].name + "=" + sizes_text(inputs[i]));
        if (const auto* n = inputs[i].get_if<std::int64_t>(); n != nullptr && *n != 0 && !given_[i])
          one.notes.push_back("input '" + formal_[i].name + "' is not given: " + value_text(inputs[i]) +
                              ", the number that the model compares it with most often (--input " + formal_[i].name +
                              "=N)");
      }
    }
  }

  // What of the options had no effect, or not the one that whoever gave them may think.
  void warn(const Notes& notes) {
    if (options_.seed != 0 && !draws_) idle_.insert("--seed has no effect: no input is drawn");
    for (const std::string& text : idle_) notes.warning(text);
  }

 private:
  // An item of a list or dict: "x.0", "x.key".
  struct Part {
    std::string name;
    InputPlaces::Place place;
    std::optional<std::string> recipe;
    std::optional<InputShape> shape;
  };

  // nullptr where the name is a whole input's.
  Part* part_of(const std::string& name) {
    if (ttrt::user_input_index(model_, name) >= 0) return nullptr;
    auto place = places_.find(name);
    if (!place || place->path.empty()) return nullptr;
    std::vector<Part>& parts = parts_[place->index];
    const auto known = std::ranges::find(parts, place->path, [](const Part& part) { return part.place.path; });
    if (known != parts.end()) return &*known;
    parts.push_back({.name = name, .place = std::move(*place), .recipe = {}, .shape = {}});
    return &parts.back();
  }

  bool given(std::size_t i) const { return given_[i] || !parts_[i].empty(); }

  RtValue from_file(std::size_t i, const std::string& path) const {
    std::vector<RtValue> inputs(formal_.size());
    places_.put(inputs, {.index = i}, own_tensor(read_npy(path)));
    return inputs[i];
  }

  // Symbols from the inputs at hand, then from --shape.
  void bind_known(const std::vector<RtValue>& inputs) {
    for (std::size_t i = 0; i < formal_.size(); ++i) {
      const ir::Type& type = formal_[i].input->value->type;
      const auto* tensor = inputs[i].get_if<HostTensor>();
      const Shape* sizes = tensor != nullptr ? &tensor->sizes : given_shapes_[i] ? &given_shapes_[i]->sizes : nullptr;
      if (sizes == nullptr || !type.has_shape) continue;
      for (std::size_t d = 0; d < type.sizes.size() && d < sizes->size(); ++d)
        if (type.sizes[d].is_symbol()) binding_.emplace(type.sizes[d].name(), (*sizes)[d]);
    }
    for (const auto& [symbol, range] : model_.ranges)
      if (binding_.emplace(symbol, range.min.value_or(1)).second) guesses_.insert(symbol);
  }

  // Whether its sizes are what a free dim may be at least, for want of anything better.
  bool guessed(std::size_t i) const {
    const ir::Type& type = formal_[i].input->value->type;
    return !given_shapes_[i] && type.has_shape && std::any_of(type.sizes.begin(), type.sizes.end(), [&](const auto& s) {
      return s.is_symbol() && guesses_.contains(s.name());
    });
  }
  static std::string sizes_text(const RtValue& value) {
    std::string out;
    if (const auto* tensor = value.get_if<HostTensor>())
      for (const std::int64_t size : tensor->sizes) out += (out.empty() ? "" : "x") + std::to_string(size);
    return out;
  }

  Shape shape_of(const ir::Type& type, const std::string& name, const std::optional<InputShape>& given) const {
    if (given) return given->sizes;
    if (!type.has_shape)
      throw usage_error("the shape of input '" + name + "' is not known",
                        "give --shape " + name + "=8x128, or the input itself");
    Shape out;
    for (const ir::SymExpr& size : type.sizes) out.push_back(size.evaluate(binding_).value_or(2));
    return out;
  }

  RtValue make(std::size_t i) const {
    const std::string& name = formal_[i].name;
    const ir::Type& type = formal_[i].input->value->type;
    if (parts_[i].empty()) {
      if (type.kind == ir::TypeKind::integer && !given_[i]) return ttrt::likely_integer(*formal_[i].input->value);
      return made(type, name, given_[i], given_shapes_[i], i);
    }
    if (given_[i] || given_shapes_[i])
      throw usage_error("input '" + name + "' is given whole and by its item '" + parts_[i][0].name + "'");
    std::vector<RtValue> inputs(formal_.size());
    for (const Part& part : parts_[i]) {
      if (part.recipe && part.recipe->starts_with("@")) {
        places_.put(inputs, part.place, own_tensor(read_npy(part.recipe->substr(1))));
        continue;
      }
      const ir::Type& item = places_.type_at(part.place);
      places_.put_value(inputs, part.place, made(item, part.name, part.recipe, part.shape, i));
    }
    check_whole(inputs[i], name);
    return std::move(inputs[i]);
  }

  // A list of which item 1 is given has an item 0.
  void check_whole(const RtValue& value, const std::string& name) const {
    if (value.is_none()) throw usage_error("input '" + name + "' is not given, one that comes after it is");
    if (const auto* items = value.get_if<RtValue::List>())
      for (std::size_t i = 0; i < items->size(); ++i) check_whole((*items)[i], name + "." + std::to_string(i));
  }

  RtValue made(const ir::Type& type, const std::string& name, const std::optional<std::string>& given,
               const std::optional<InputShape>& shape, std::size_t input) const {
    const std::string recipe = given.value_or("rand:" + std::to_string(options_.seed + input));
    const std::string flag = "--input " + name + "=" + recipe;
    const bool number = type.kind == ir::TypeKind::integer || type.kind == ir::TypeKind::floating ||
                        type.kind == ir::TypeKind::boolean;
    if (number && given && recipe != "zeros" && recipe != "ones") {
      if (const auto value = parse_number(type.kind, recipe)) return *value;
      throw usage_error(flag + ": the model takes " + type.str() + " there");
    }
    if (type.kind == ir::TypeKind::integer) return std::int64_t{recipe == "ones" ? 1 : 0};
    if (type.kind == ir::TypeKind::floating) return recipe == "ones" ? 1.0 : 0.0;
    if (type.kind == ir::TypeKind::boolean) return recipe == "ones";
    if (type.kind == ir::TypeKind::string && given) return *given;
    if (type.kind == ir::TypeKind::dict && recipe == "{}") return RtValue::List();
    if (!type.is_tensor())
      throw usage_error((given ? flag + ": the model" : "input '" + name + "' is not given, and") + " takes " +
                            type.str() + (given ? " there" : ""),
                        items_text(type, name));
    const DType wanted = shape && shape->dtype ? *shape->dtype : DType::f32;
    const DType dtype = type.has_dtype ? type.dtype : wanted;
    if (shape && shape->dtype && dtype != wanted)
      throw usage_error("--shape " + name + ": the model takes " + type.str() + ", not " +
                        std::string(to_string(wanted)));
    const auto sizes = [&] { return shape_of(type, name, shape); };
    draws_ = draws_ || !given || recipe == "rand";
    if (recipe.starts_with("rand:")) return random_tensor(dtype, sizes(), parse_seed(recipe.substr(5), flag));
    if (recipe == "rand") return random_tensor(dtype, sizes(), options_.seed + input);
    if (recipe == "zeros") return filled(dtype, sizes(), 0, 0);
    if (recipe == "ones") return filled(dtype, sizes(), 1, 0);
    if (recipe == "arange") return filled(dtype, sizes(), 0, 1);
    throw usage_error(flag + ": expected @FILE.npy, rand:SEED, zeros, ones or arange");
  }

  // How to give what is no single tensor or number.
  static std::string items_text(const ir::Type& type, const std::string& name) {
    const bool dict = type.kind == ir::TypeKind::dict;
    if (!dict && type.kind != ir::TypeKind::list) return "--input " + name + "=TEXT";
    const ir::Type& item = type.elements.at(dict ? 1 : 0);
    const std::string first = name + (dict ? ".KEY" : ".0");
    std::string out = item.is_tensor() ? "--shape " + first + "=8x128 or --input " + first + "=@x.npy gives an item"
                      : item.elements.empty() ? "--input " + first + "=VALUE gives an item"
                                              : "the names of its items begin with " + first;
    out += ", as " + first + " does in an --io file";
    return dict ? out + "; --input " + name + "={} is an empty one" : out;
  }

  const ir::Model& model_;
  const InputOptions& options_;
  std::vector<UserInput> formal_;
  InputPlaces places_{model_, {}};
  std::vector<std::optional<InputShape>> given_shapes_;
  std::vector<std::optional<std::string>> given_;
  std::vector<std::vector<Part>> parts_;  // by input
  ir::SymBinding binding_;
  std::set<std::string> guesses_;  // symbols of binding_ that nobody gave
  std::set<std::string> idle_;     // warnings
  mutable bool draws_ = false;     // any input by the seed
};

}  // namespace

std::size_t input_index(const ir::Model& model, const std::string& name, const std::string& flag) {
  const int index = ttrt::user_input_index(model, name);
  if (index >= 0) return static_cast<std::size_t>(index);
  std::vector<std::string> names;
  for (const UserInput& input : ttrt::user_inputs(model)) names.push_back(input.name);
  std::string all;
  for (const std::string& known : names) all += (all.empty() ? "" : ", ") + known;
  const std::string close = nearest(name, names.data(), names.size());
  throw usage_error(flag + ": the model has no input '" + name + "'",
                    all.empty()     ? "it takes none"
                    : close.empty() ? "its inputs are " + all
                                    : "did you mean '" + close + "'? Its inputs are " + all);
}

void fill_inputs(const ir::Model& model, const InputOptions& options, std::vector<Case>& cases, const Notes& notes) {
  InputMaker maker(model, options);
  for (Case& one : cases) maker.fill(one);
  maker.warn(notes);
}

}  // namespace ttc
