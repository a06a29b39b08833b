// Random numbers that are the same everywhere, recipes such as "arange", and shapes whose free dims the call decides.
#include "session/input_maker.h"

#include <charconv>
#include <cmath>
#include <random>
#include <set>

#include "executor/signature.h"
#include "formats/safetensors.h"
#include "session/values.h"
#include "support/error.h"
#include "torch/scalar_ops.h"

namespace ttc {
namespace {

using ttrt::HostTensor;
using ttrt::RtValue;
using ttrt::Shape;
using ttrt::UserInput;

std::size_t input_index(const ir::Model& model, const std::string& name, const std::string& flag) {
  const int index = ttrt::user_input_index(model, name);
  if (index >= 0) return static_cast<std::size_t>(index);
  std::vector<std::string> names;
  for (const UserInput& input : ttrt::user_inputs(model)) names.push_back(input.name);
  std::string all;
  for (const std::string& known : names) all += (all.empty() ? "" : ", ") + known;
  const std::string close = nearest(name, names.data(), names.size());
  throw usage_error(flag + ": the model has no input '" + name + "'",
                    close.empty() ? "its inputs are " + all : "did you mean '" + close + "'? Its inputs are " + all);
}

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
    for (const std::string& text : options.shapes) {
      const auto [name, shape] = split_assignment(text, "--shape");
      given_shapes_[input_index(model, name, "--shape")] = parse_shape(shape, "--shape " + text).sizes;
    }
    for (const std::string& text : options.inputs) {
      const auto [name, value] = split_assignment(text, "--input");
      given_[input_index(model, name, "--input")] = value;
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
    for (std::size_t i = 0; i < formal_.size(); ++i)
      if (!one.carried[i].any() && (given_[i] ? !given_[i]->starts_with("@") : inputs[i].is_none())) {
        inputs[i] = make(i);
        if (guessed(i)) one.guessed.push_back(formal_[i].name + "=" + sizes_text(inputs[i]));
        if (const auto* n = inputs[i].get_if<std::int64_t>(); n != nullptr && *n != 0 && !given_[i])
          one.notes.push_back("input '" + formal_[i].name + "' is not given: " + value_text(inputs[i]) +
                              ", the number that the model compares it with most often (--input " + formal_[i].name +
                              "=N)");
      }
  }

 private:
  RtValue from_file(std::size_t i, const std::string& path) const {
    const HostTensor tensor = own_tensor(read_npy(path));
    const auto kind = formal_[i].input->value->type.kind;
    if (kind == ir::TypeKind::integer) return ttrt::to_integer(tensor);
    if (kind == ir::TypeKind::floating) return ttrt::to_number(tensor);
    if (kind == ir::TypeKind::boolean) return ttrt::to_boolean(tensor);
    return tensor;
  }

  // Symbols from the inputs at hand, then from --shape.
  void bind_known(const std::vector<RtValue>& inputs) {
    for (std::size_t i = 0; i < formal_.size(); ++i) {
      const ir::Type& type = formal_[i].input->value->type;
      const auto* tensor = inputs[i].get_if<HostTensor>();
      const Shape* sizes = tensor != nullptr ? &tensor->sizes : given_shapes_[i] ? &*given_shapes_[i] : nullptr;
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

  Shape shape_of(std::size_t i) const {
    if (given_shapes_[i]) return *given_shapes_[i];
    const ir::Type& type = formal_[i].input->value->type;
    if (!type.has_shape)
      throw usage_error("the shape of input '" + formal_[i].name + "' is not known",
                        "give --shape " + formal_[i].name + "=8x128, or the input itself");
    Shape out;
    for (const ir::SymExpr& size : type.sizes) out.push_back(size.evaluate(binding_).value_or(2));
    return out;
  }

  RtValue make(std::size_t i) const {
    const ir::Type& type = formal_[i].input->value->type;
    const std::string recipe = given_[i].value_or("rand:" + std::to_string(options_.seed + i));
    const std::string flag = "--input " + formal_[i].name + "=" + recipe;
    if (given_[i])
      if (const auto number = parse_number(type.kind, recipe)) return *number;
    if (type.kind == ir::TypeKind::integer && !given_[i]) return ttrt::likely_integer(*formal_[i].input->value);
    if (type.kind == ir::TypeKind::integer) return std::int64_t{recipe == "ones" ? 1 : 0};
    if (type.kind == ir::TypeKind::floating) return recipe == "ones" ? 1.0 : 0.0;
    if (type.kind == ir::TypeKind::boolean) return recipe == "ones";
    if (type.kind == ir::TypeKind::string && given_[i]) return *given_[i];
    if (type.kind == ir::TypeKind::dict && recipe == "{}") return RtValue::List();
    if (!type.is_tensor())
      throw usage_error("input '" + formal_[i].name + "' is not given, and takes " + type.str(),
                        type.kind == ir::TypeKind::dict
                            ? "the --io file holds " + formal_[i].name + ".KEY, ...; --input " + formal_[i].name +
                                  "={} is an empty one"
                        : type.kind == ir::TypeKind::list
                            ? "the --io file holds " + formal_[i].name + ".0, " + formal_[i].name + ".1, ..."
                            : "--input " + formal_[i].name + "=TEXT");
    const DType dtype = type.has_dtype ? type.dtype : DType::f32;
    if (recipe.starts_with("rand:")) return random_tensor(dtype, shape_of(i), parse_seed(recipe.substr(5), flag));
    if (recipe == "rand") return random_tensor(dtype, shape_of(i), options_.seed + i);
    if (recipe == "zeros") return filled(dtype, shape_of(i), 0, 0);
    if (recipe == "ones") return filled(dtype, shape_of(i), 1, 0);
    if (recipe == "arange") return filled(dtype, shape_of(i), 0, 1);
    throw usage_error(flag + ": expected @FILE.npy, rand:SEED, zeros, ones or arange");
  }

  const ir::Model& model_;
  const InputOptions& options_;
  std::vector<UserInput> formal_;
  std::vector<std::optional<Shape>> given_shapes_;
  std::vector<std::optional<std::string>> given_;
  ir::SymBinding binding_;
  std::set<std::string> guesses_;  // symbols of binding_ that nobody gave
};

}  // namespace

void fill_inputs(const ir::Model& model, const InputOptions& options, std::vector<Case>& cases) {
  InputMaker maker(model, options);
  for (Case& one : cases) maker.fill(one);
}

}  // namespace ttc
