// See model_io.h.
#include "model_io.h"

#include "executor/kernel_choice.h"

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <random>

#include "formats/model_file.h"
#include "formats/pt2_read.h"
#include "formats/safetensors.h"
#include "shapes/shape_prop.h"
#include "input_places.h"
#include "pass/compile.h"
#include "pass/conversions.h"
#include "executor/signature.h"
#include "steps.h"
#include "support/error.h"
#include "torch_library/torch_ops.h"

namespace ttc {
namespace {

using ttrt::HostTensor;
using ttrt::RtValue;
using ttrt::Shape;
using ttrt::UserInput;

HostTensor host_tensor(const ir::Weight& weight) {
  const auto [owner, data] = weight.storage->load();
  HostTensor mapped{.dtype = weight.dtype,
                    .sizes = weight.sizes,
                    .strides = weight.strides,
                    .owner = std::const_pointer_cast<void>(owner),
                    .data = const_cast<std::byte*>(data) + weight.storage_offset * size_of(weight.dtype)};
  // A model may write its inputs, and the file is mapped read-only.
  HostTensor own = ttrt::empty_host(mapped.dtype, mapped.sizes);
  std::memcpy(own.data, mapped.data, static_cast<std::size_t>(mapped.nbytes()));
  return own;
}

std::pair<std::string, std::string> split_assignment(const std::string& text, const std::string& flag) {
  const std::size_t eq = text.find('=');
  if (eq == std::string::npos || eq == 0) throw usage_error(flag + " " + text + ": expected NAME=VALUE");
  return {text.substr(0, eq), text.substr(eq + 1)};
}

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
  InputMaker(const ir::Model& model, const InputFlags& flags)
      : model_(model), flags_(flags), formal_(ttrt::user_inputs(model)) {
    given_shapes_.resize(formal_.size());
    given_.resize(formal_.size());
    for (const std::string& text : flags.shapes) {
      const auto [name, shape] = split_assignment(text, "--shape");
      given_shapes_[input_index(model, name, "--shape")] = parse_shape(shape, "--shape " + text).sizes;
    }
    for (const std::string& text : flags.inputs) {
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
        if (const auto* n = inputs[i].get_if<std::int64_t>(); n != nullptr && *n != 0 && !given_[i])
          one.notes.push_back("input '" + formal_[i].name + "' is not given: " + value_text(inputs[i]) +
                              ", the number that the model compares it with most often (--input " + formal_[i].name +
                              "=N)");
      }
  }

 private:
  RtValue from_file(std::size_t i, const std::string& path) {
    const HostTensor tensor = host_tensor(read_npy(path));
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
    for (const auto& [symbol, range] : model_.ranges) binding_.emplace(symbol, range.min.value_or(1));
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
    const std::string recipe = given_[i].value_or("rand:" + std::to_string(flags_.seed + i));
    const std::string flag = "--input " + formal_[i].name + "=" + recipe;
    if (given_[i])
      if (const auto number = parse_number(type.kind, recipe)) return *number;
    if (type.kind == ir::TypeKind::integer && !given_[i]) return ttrt::likely_integer(*formal_[i].input->value);
    if (type.kind == ir::TypeKind::integer) return std::int64_t{recipe == "ones" ? 1 : 0};
    if (type.kind == ir::TypeKind::floating) return recipe == "ones" ? 1.0 : 0.0;
    if (type.kind == ir::TypeKind::boolean) return recipe == "ones";
    if (type.kind == ir::TypeKind::string && given_[i]) return *given_[i];
    if (!type.is_tensor())
      throw usage_error("input '" + formal_[i].name + "' is not given, and takes " + type.str(),
                        type.kind == ir::TypeKind::list
                            ? "the --io file holds " + formal_[i].name + ".0, " + formal_[i].name + ".1, ..."
                            : "--input " + formal_[i].name + "=TEXT");
    const DType dtype = type.has_dtype ? type.dtype : DType::f32;
    if (recipe.starts_with("rand:")) return random_tensor(dtype, shape_of(i), parse_seed(recipe.substr(5), flag));
    if (recipe == "rand") return random_tensor(dtype, shape_of(i), flags_.seed + i);
    if (recipe == "zeros") return filled(dtype, shape_of(i), 0, 0);
    if (recipe == "ones") return filled(dtype, shape_of(i), 1, 0);
    if (recipe == "arange") return filled(dtype, shape_of(i), 0, 1);
    throw usage_error(flag + ": expected @FILE.npy, rand:SEED, zeros, ones or arange");
  }

  const ir::Model& model_;
  const InputFlags& flags_;
  std::vector<UserInput> formal_;
  std::vector<std::optional<Shape>> given_shapes_;
  std::vector<std::optional<std::string>> given_;
  ir::SymBinding binding_;
};

// The tensors of one prefix ("", "alt.", "step3.").
Case read_case(const ir::Model& model, const SafeTensors& file, const std::string& prefix) {
  const auto formal = ttrt::user_inputs(model);
  Case out{.name = prefix.empty() ? "" : prefix.substr(0, prefix.size() - 1),
           .inputs = std::vector<RtValue>(formal.size()),
           .expected = {},
           .notes = {},
           .carried = {}};
  std::vector<std::string> names;
  for (const auto& [full, weight] : file.tensors)
    if (full.starts_with(prefix)) names.push_back(full.substr(prefix.size()));
  const InputPlaces places(model, names);
  std::size_t extra = 0;
  for (const auto& [full, weight] : file.tensors) {
    if (!full.starts_with(prefix)) continue;
    const std::string name = full.substr(prefix.size());
    const auto place = places.find(name);
    if (name.find('.') != std::string::npos && !place) continue;  // of another prefix
    std::size_t number = 0;
    if (name.starts_with("out") &&
        std::from_chars(name.data() + 3, name.data() + name.size(), number).ptr == name.data() + name.size() &&
        name.size() > 3 && number < 4096) {
      if (out.expected.size() <= number) out.expected.resize(number + 1);
      out.expected[number] = host_tensor(weight);
      continue;
    }
    if (!place || place->index >= formal.size()) {
      places.check_fixed(name);
      ++extra;
      continue;
    }
    places.put(out.inputs, *place, host_tensor(weight));
  }
  if (extra > 0 && std::any_of(out.inputs.begin(), out.inputs.end(), [](const RtValue& v) { return v.is_none(); }))
    throw usage_error("the inputs of the --io file do not have the names of the model's",
                      "it takes in0 ... in" + std::to_string(formal.size() - 1) + " or the names of the signature");
  return out;
}

}  // namespace

InputShape parse_shape(const std::string& text, const std::string& flag) {
  InputShape out;
  const std::size_t colon = text.find(':');
  if (colon != std::string::npos && !(out.dtype = dtype_from_string(text.substr(0, colon))))
    throw usage_error(flag + ": '" + text.substr(0, colon) + "' is no dtype such as i64");
  const char *at = text.data() + (colon == std::string::npos ? 0 : colon + 1), *end = text.data() + text.size();
  while (at < end) {
    std::int64_t dim = 0;
    const auto [next, error] = std::from_chars(at, end, dim);
    const bool more = next < end && *next == 'x' && next + 1 < end;
    if (error != std::errc() || dim < 0 || dim > (std::int64_t{1} << 40) || (next < end && !more))
      throw usage_error(flag + ": '" + text + "' is no shape such as 8x128");
    out.sizes.push_back(dim);
    at = more ? next + 1 : next;
  }
  return out;
}

void add_input_flags(FlagSet& app, InputFlags& flags) {
  app.add_option(
      "--io", flags.io,
      "Inputs in0, in1, ... or by name (x.0, x.1, ... of a list x), expected outputs out0, ... (safetensors)");
  app.add_option("--io-prefix", flags.io_prefix, "Take PREFIX.in0 ... of the --io file");
  app.add_flag("--io-steps", flags.io_steps, "Run step0, step1, ... of the --io file in order, buffers kept");
  app.add_option("--input", flags.inputs,
                 "NAME=@x.npy | rand:SEED | zeros | ones | arange, a number where the model takes one; repeatable")
      .repeatable();
  app.add_option("--shape", flags.shapes, "NAME=8x128 where dims are free; repeatable").repeatable();
  app.add_option(
         "--carry", flags.carry,
         "outN=NAME: with --io-steps, input NAME of each step is output N of the step before; repeatable. Inputs "
         "that steps leave out are the outputs of their types")
      .repeatable();
  app.add_option("--seed", flags.seed, "Seed of the inputs that nothing else gives");
}

void add_exec_flags(FlagSet& app, ExecFlags& flags, bool with_mode) {
  if (with_mode) app.add_option("--mode", flags.mode, "device or cpu").one_of({"device", "cpu"});
  app.add_option("--numerics", flags.numerics, "fast or exact").one_of({"fast", "exact"});
  app.add_option("--arch", flags.arch, "An architecture profile (ttc archs) or a profile file");
  app.add_option("--dispatcher", flags.dispatcher,
                 "Which kernels serve device ops (ttc dispatchers); TT_SYMBIOTE_DISPATCHER wins");
  app.add_option("--dispatch-mode", flags.dispatch_mode,
                 "static: kernels are fixed when shapes are known; the others choose at each call")
      .one_of({"static", "dynamic", "config", "hot_reload", "auto"});
  app.add_option("--dispatch-config", flags.dispatch_config,
                 "Rules that choose kernels (YAML), for config and hot_reload");
}

ttrt::ExecutorOptions executor_options(const ExecFlags& flags) {
  ttrt::ExecutorOptions options;
  options.mode = flags.mode == "cpu" ? ttrt::Mode::cpu : ttrt::Mode::device;
  options.numerics = flags.numerics == "exact" ? ttrt::Numerics::exact : ttrt::Numerics::fast;
  options.profile = ttrt::profile_from_argument(flags.arch);
  options.chooser = std::make_shared<ttrt::KernelChooser>(
      ttrt::KernelChoiceOptions{.dispatcher = flags.dispatcher,
                                .mode = *ttrt::dispatch::dispatch_mode_from_string(flags.dispatch_mode),
                                .config_path = flags.dispatch_config});
  return options;
}

namespace {

std::vector<Case> make_cases(const ir::Model& model, const InputFlags& flags, bool first_only) {
  InputMaker maker(model, flags);
  std::vector<Case> cases;
  if (flags.io.empty()) {
    if (flags.io_steps || !flags.io_prefix.empty()) throw usage_error("--io-steps and --io-prefix need --io");
    cases.emplace_back();
  } else {
    const SafeTensors file = read_safetensors(flags.io);
    const std::string prefix = flags.io_prefix.empty() ? "" : flags.io_prefix + ".";
    const auto has_prefix = [&](const std::string& p) {
      return std::any_of(file.tensors.begin(), file.tensors.end(),
                         [&](const auto& t) { return t.first.starts_with(p); });
    };
    if (!flags.io_steps) {
      if (!prefix.empty() && !has_prefix(prefix)) throw usage_error(flags.io + " holds nothing under '" + prefix + "'");
      cases.push_back(read_case(model, file, prefix));
    }
    for (std::size_t step = 0; flags.io_steps; ++step) {
      const std::string step_prefix = prefix + "step" + std::to_string(step) + ".";
      if (!has_prefix(step_prefix)) break;
      cases.push_back(read_case(model, file, step_prefix));
    }
    if (cases.empty())
      throw usage_error(flags.io + " holds no steps",
                        "its tensors must be named step0.in0, step0.out0, step1.in0, ...");
    const bool empty =
        std::all_of(cases[0].inputs.begin(), cases[0].inputs.end(), [](const RtValue& v) { return v.is_none(); });
    if (empty && !cases[0].inputs.empty() && flags.inputs.empty())
      throw usage_error(flags.io + " holds no inputs of the model",
                        has_prefix("step0.") ? "it holds steps: use --io-steps"
                                             : "inputs are named in0, in1, ... or as in the signature");
  }
  if (first_only) cases.resize(1);
  carry_between(model, flags, cases);
  for (Case& one : cases) maker.fill(one);
  return cases;
}

}  // namespace

std::vector<Case> load_cases(const ir::Model& model, const InputFlags& flags, bool first_only) {
  try {
    return make_cases(model, flags, first_only);
  } catch (const Error& error) {
    throw error.file().empty() ? error.in_file(model.info.path) : error;
  }
}

std::unique_ptr<ir::Model> load(const std::string& path, bool to_run) {
  ttrt::register_torch_ops();  // rewritten TorchScript names tt operators
  std::unique_ptr<ir::Model> model = load_model(path);
  if (to_run) check_known_ops(*model);
  return model;
}

bool is_rewritten(const ir::Model& model) {
  bool found = false;
  ir::walk(*model.graph, [&](ir::Node* node) { found = found || node->op().starts_with("tt."); });
  return found;
}

namespace {

// Shapes of the first case, for models that carry none and for the values of free dims.
void apply_shapes(ir::Model& model, const InputFlags& inputs, CompileOptions& options) {
  const std::vector<Case> cases = load_cases(model, inputs, true);
  const auto formal = ttrt::user_inputs(model);
  std::map<std::string, InputShape> shapes;
  bool missing = false;
  for (std::size_t i = 0; i < formal.size(); ++i) {
    const ir::Type& type = formal[i].input->value->type;
    missing = missing || (type.is_tensor() && !type.has_shape);
    if (const auto* tensor = cases[0].inputs[i].get_if<HostTensor>())
      shapes[formal[i].name] = {.sizes = tensor->sizes, .dtype = tensor->dtype};
    if (const auto* number = cases[0].inputs[i].get_if<std::int64_t>())
      shapes[formal[i].name] = {.sizes = {}, .dtype = {}, .integer = *number};
  }
  if (missing) {
    const ShapeReport report = propagate_shapes(model, shapes);
    options.shapes.insert(report.symbols.begin(), report.symbols.end());
  }
  options.shapes.merge(ttrt::bind_symbols(model, cases[0].inputs));
}

}  // namespace

std::shared_ptr<const ir::Model> load_for(const Globals& globals, const std::string& path, const InputFlags& inputs,
                                          const ExecFlags& exec) {
  std::unique_ptr<ir::Model> model = load(path);
  if (exec.mode != "device" || is_rewritten(*model)) return model;
  CompileOptions options;
  options.arch = exec.arch;
  apply_shapes(*model, inputs, options);
  const CompileResult result = compile(*model, options);
  const std::string converted = conversions_text(*model);
  note(globals,
       "compiled in memory with default options: " + result.summary() + (converted.empty() ? "" : "; " + converted));
  return model;
}

void add_threshold_flags(FlagSet& app, Thresholds& thresholds) {
  app.add_option("--pcc", thresholds.pcc, "Fail where the PCC of an output is lower").range(-1.0, 1.0);
  app.add_option("--atol", thresholds.atol, "Fail where |a - e| > atol + rtol |e|").not_negative();
  app.add_option("--rtol", thresholds.rtol, "See --atol").not_negative();
}

namespace {

// Numbers and bools that a model returns, as the tensors an --io file holds for them.
std::optional<HostTensor> as_tensor(const RtValue& value) {
  if (auto tensor = host_tensor_of(value)) return tensor;
  if (value.get_if<std::int64_t>() == nullptr && value.get_if<double>() == nullptr && value.get_if<bool>() == nullptr)
    return std::nullopt;
  HostTensor out = ttrt::empty_host(DType::f64, {});
  *out.as<double>() = ttrt::to_number(value);
  return out;
}

}  // namespace

std::optional<HostTensor> host_tensor_of(const RtValue& value) {
  if (const auto* tensor = value.get_if<HostTensor>()) return *tensor;
  if (const auto* kept = value.get_if<ttrt::ResidentTensor>()) return to_host(kept->tensor, kept->dtype);
  return std::nullopt;
}

std::vector<RtValue> flat_outputs(const std::vector<RtValue>& outputs) {
  std::vector<RtValue> flat;
  for (const RtValue& output : outputs) {
    const auto* items = output.get_if<RtValue::List>();
    const std::vector<RtValue> inner = items != nullptr ? flat_outputs(*items) : std::vector<RtValue>{output};
    flat.insert(flat.end(), inner.begin(), inner.end());
  }
  return flat;
}

std::vector<Check> check_outputs(const Case& expected, const std::vector<RtValue>& given, const Thresholds& thresholds,
                                 bool approximate) {
  const std::vector<RtValue> outputs = flat_outputs(given);
  const bool defaults = !thresholds.pcc && !thresholds.atol && !thresholds.rtol;
  const double atol = thresholds.atol.value_or(thresholds.rtol ? 0 : 1e-4),
               rtol = thresholds.rtol.value_or(thresholds.atol ? 0 : 1e-4);
  const double pcc = thresholds.pcc.value_or(0.99);
  const bool need_close = thresholds.atol || thresholds.rtol || (defaults && !approximate);
  const bool need_pcc = thresholds.pcc || (defaults && approximate);
  std::vector<Check> checks;
  for (std::size_t i = 0; i < expected.expected.size(); ++i) {
    if (!expected.expected[i]) continue;
    Check check{.output = (expected.name.empty() ? "" : expected.name + ".") + "out" + std::to_string(i),
                .metrics = {},
                .problem = {}};
    const auto actual = i < outputs.size() ? as_tensor(outputs[i]) : std::nullopt;
    if (!actual) {
      check.problem = "the model has no such tensor output";
    } else if (actual->sizes != expected.expected[i]->sizes) {
      check.problem = "is " + value_text(*actual) + " where " + value_text(*expected.expected[i]) + " is expected";
    } else {
      check.metrics = ttrt::compare(*actual, *expected.expected[i]);
      check.allclose = ttrt::all_close(*actual, *expected.expected[i], atol, rtol);
      // Equal NaN and infinities count as right; a PCC over what is left decides.
      check.pass = (!need_close || check.allclose) && (!need_pcc || check.metrics.correlates(pcc)) &&
                   (check.metrics.nan == 0 || check.allclose);
    }
    checks.push_back(std::move(check));
  }
  return checks;
}

std::string value_text(const RtValue& value) {
  if (const auto* tensor = value.get_if<HostTensor>()) {
    std::string out = std::string(to_string(tensor->dtype)) + "[";
    for (std::size_t i = 0; i < tensor->sizes.size(); ++i)
      out += (i > 0 ? ", " : "") + std::to_string(tensor->sizes[i]);
    return out + "]";
  }
  if (const auto* i = value.get_if<std::int64_t>()) return std::to_string(*i);
  if (const auto* d = value.get_if<double>()) return std::to_string(*d);
  if (const auto* b = value.get_if<bool>()) return *b ? "True" : "False";
  if (const auto* s = value.get_if<std::string>()) return "'" + *s + "'";
  return value.is_none() ? "None" : "object";
}

std::int64_t peak_rss() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

std::string bytes_text(double bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  while (bytes >= 1024 && unit < 4) bytes /= 1024, ++unit;
  char text[40];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
  return text;
}

}  // namespace ttc
