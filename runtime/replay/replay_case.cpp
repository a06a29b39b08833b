// Reading a case file. Every member is checked; sizes must agree with the arrays.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include "device/tile_formats.h"
#include "device/host_tensor.h"
#include "formats/safetensors.h"
#include "replay/replay.h"

namespace ttrt::replay {
namespace {

using ttc::as_array;
using ttc::as_bool;
using ttc::as_int;
using ttc::as_string;
using ttc::bad_file;
using ttc::find_member;
using ttc::Json;
using ttc::member;

// What no reader of these cases takes: the case is unsupported, not broken.
struct Unknown {
  std::string what;
};

DataType format_of(const std::string& name) {
  const auto dtype = data_type_from_string(name);
  if (!dtype) throw Unknown{"tensor format '" + name.substr(0, 40) + "'"};
  return *dtype;
}

std::vector<float> values_of(const ttc::ir::Weight& array) {
  const auto [owner, bytes] = array.storage->load();
  std::vector<float> out(static_cast<std::size_t>(array.numel()));
  const auto n = static_cast<std::int64_t>(out.size());
  if (array.dtype == DType::f32) {
    std::memcpy(out.data(), bytes, out.size() * 4);
  } else if (array.dtype == DType::bf16) {
    convert_from_bf16(reinterpret_cast<const std::uint16_t*>(bytes), out.data(), n);
  } else {
    const HostTensor host{.dtype = array.dtype,
                          .sizes = {array.numel()},
                          .strides = {1},
                          .owner = {},
                          .data = const_cast<std::byte*>(bytes)};  // read only
    const HostTensor floats = convert(host, DType::f32);
    std::copy_n(floats.as<float>(), out.size(), out.begin());
  }
  return out;
}

// `described` is one entry of inputs or outputs; `array` its name among the file's tensors.
Tensor tensor_of(const Json& described, const std::string& name, const ttc::SafeTensors& file,
                 const std::string& array) {
  Tensor t;
  t.name = name;
  for (const Json& size : as_array(member(described, "shape"))) t.shape.push_back(as_int(size));
  t.dtype = format_of(as_string(member(described, "dtype")));
  const Json* layout = find_member(described, "layout");
  t.layout = layout != nullptr && as_string(*layout) != "TILE" ? Layout::row_major : Layout::tile;
  const auto found = file.tensors.find(array);
  if (found == file.tensors.end()) throw bad_file("", "the file lacks the array '" + array.substr(0, 40) + "'");
  t.values = values_of(found->second);
  std::int64_t count = 1;
  for (const std::int64_t size : t.shape) {
    if (size < 0 || __builtin_mul_overflow(count, size, &count)) throw bad_file("", "a shape is impossible");
  }
  if (count != static_cast<std::int64_t>(t.values.size()))
    throw bad_file("", "'" + array + "' does not have its case's shape");
  return t;
}

std::optional<ComputeConfig> config_of(const Json& described) {
  const Json* json = find_member(described, "compute_config");
  if (json == nullptr || ttc::as_object(*json).empty()) return std::nullopt;
  const auto fidelity = math_fidelity_from_string(as_string(member(*json, "math_fidelity")));
  if (!fidelity) throw bad_file("", "unknown math_fidelity");
  return ComputeConfig{.math_fidelity = *fidelity,
                       .fp32_dest_acc_en = as_bool(member(*json, "fp32_dest_acc_en")),
                       .math_approx_mode = as_bool(member(*json, "math_approx_mode")),
                       .packer_l1_acc = as_bool(member(*json, "packer_l1_acc"))};
}

// The op library's host makes one NaN of all that are to be bfloat16, whatever their sign.
Tensor host_converted(Tensor t) {
  const auto nan = [](float v) { return std::isnan(v); };
  if (t.dtype != DataType::bfloat16 || std::none_of(t.values.begin(), t.values.end(), nan)) return t;
  std::ranges::replace_if(t.values.changed(), nan, std::numeric_limits<float>::quiet_NaN());
  return t;
}

void read_tensors(const Json& described, const ttc::SafeTensors& file, Case& c) {
  for (const Json& input : as_array(member(described, "inputs"))) {
    const std::string& name = as_string(member(input, "name"));
    c.inputs.push_back(host_converted(tensor_of(input, name, file, "in_" + name)));
  }
  int index = 0;
  for (const Json& output : as_array(member(described, "outputs"))) {
    const std::string name = "out" + std::to_string(index++);
    c.expected.push_back(tensor_of(output, name, file, name));
  }
  if (c.inputs.empty() || c.expected.empty()) throw bad_file("", "a case has inputs and outputs");
}

Case parse(const ttc::SafeTensors& file, const std::string& stem) {
  const auto text = file.metadata.find("case");
  if (text == file.metadata.end()) throw bad_file("", "no recorded case: the metadata lacks 'case'");
  const Json described = ttc::parse_json(text->second);
  Case c;
  c.id = stem;
  c.op = as_string(member(described, "op"));
  if (const Json* arch = find_member(described, "arch"))
    c.arch = as_string(*arch) == "bh" ? Arch::blackhole : Arch::wormhole;
  if (const Json* note = find_member(described, "note")) c.note = as_string(*note);
  if (const Json* params = find_member(described, "params")) {
    ttc::as_object(*params);
    c.params = *params;
  }
  c.config = config_of(described);
  try {
    read_tensors(described, file, c);
  } catch (const Unknown& unknown) {
    c.unreadable = ttc::Reason{ttc::ReasonCode::DtypeUnsupported, unknown.what};
  }
  return c;
}

}  // namespace

const Tensor* Case::find(std::string_view name) const {
  const auto at = std::find_if(inputs.begin(), inputs.end(), [&](const Tensor& t) { return t.name == name; });
  return at == inputs.end() ? nullptr : &*at;
}

const Tensor& Case::input(std::string_view name) const {
  const Tensor* t = find(name);
  if (t == nullptr) throw bad_file(id, "the case has no input '" + std::string(name) + "'");
  return *t;
}

ttc::Refusal Case::empty_operands() const {
  for (const Tensor& t : inputs)
    if (volume(t.shape) == 0) return ttc::Reason{ttc::ReasonCode::Unsupported, "empty operands"};
  return std::nullopt;
}

ttc::Refusal Case::unknown_params(std::initializer_list<std::string_view> known) const {
  for (const auto& [name, value] : params.items()) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return ttc::Reason{ttc::ReasonCode::Unsupported, "parameter '" + name + "' of " + op + " is not known"};
    }
  }
  return std::nullopt;
}

std::optional<DataType> Case::format_param(const char* name) const {
  const Json* value = find_member(params, name);
  if (value == nullptr || value->is_null()) return std::nullopt;
  const auto format = data_type_from_string(as_string(*value));
  if (!format) throw bad_file(id, "unknown tensor format '" + as_string(*value).substr(0, 40) + "'");
  return format;
}

Case read_case(const std::string& path) {
  const ttc::SafeTensors file = ttc::read_safetensors(path);
  try {
    return parse(file, std::filesystem::path(path).stem().string());
  } catch (const ttc::Error& error) {
    throw error.in_file(path);
  }
}

}  // namespace ttrt::replay
