// Weights leave as they lie on the device; nothing of a folder is written in place.
#include "emit/package.h"

#include <filesystem>

#include "device/tensor.h"
#include "emit/tensor_file.h"
#include "emit/texts.h"
#include "ops/bind.h"
#include "support/atomic_file.h"
#include "support/error.h"
#include "support/progress.h"

namespace ttc::emit {
namespace {

namespace fs = std::filesystem;
using ttrt::HostTensor;
using ttrt::Shape;

HostTensor host_of(const ir::Weight& weight, const std::shared_ptr<const void>& owner, const std::byte* data) {
  const auto* first = data + weight.storage_offset * size_of(weight.dtype);
  const HostTensor view{.dtype = weight.dtype,
                        .sizes = weight.sizes,
                        .strides = weight.strides,
                        .owner = std::const_pointer_cast<void>(owner),
                        .data = const_cast<std::byte*>(first)};  // read only
  return contiguous(view);
}

std::vector<std::byte> tiles_of(const HostTensor& host, const ttrt::TensorSpec& spec) {
  std::vector<std::byte> out(static_cast<std::size_t>(spec.nbytes()));
  tilize_from_host(host, spec, out.data());
  return out;
}

// What lies packed in tiles, in another form.
std::vector<std::byte> repacked(const Parameter& parameter, const std::byte* tiles, const Shape& sizes) {
  const HostTensor matrix = ttrt::empty_host(DType::f32, parameter.stored.logical);
  untilize_to_host(parameter.stored, tiles, matrix);
  HostTensor values = unpacked_constant(matrix, *parameter.packed, sizes);
  values.sizes = parameter.spec.logical;
  values.strides = ttrt::contiguous_strides(values.sizes);
  return tiles_of(values, parameter.spec);
}

class Writer {
 public:
  Writer(fs::path folder, const ir::Model& model) : folder_(std::move(folder)), model_(model) {}

  void text(const std::string& name, const std::string& content) {
    write_file((folder_ / name).string(), content);
    ++out_.files;
  }
  void weights(const Program& program) {
    fs::create_directories(folder_ / "weights");
    SafeTensors host;
    Phase phase("writing weights", program.parameters.size());
    for (const Parameter& parameter : program.parameters) {
      phase.advance();
      const ir::Weight* weight = model_.weight_of(parameter.weight);
      if (weight == nullptr || weight->storage->absent())
        throw usage_error("weight " + parameter.name + " has no bytes",
                          "structure alone can't be written as a program");
      const auto [owner, data] = weight->storage->load();
      if (parameter.form == Parameter::Form::torch) {
        const HostTensor own = host_of(*weight, owner, data);
        host.tensors[parameter.name] =
            ir::make_weight(weight->dtype, weight->sizes, {own.data, own.data + own.nbytes()});
        continue;
      }
      device_weight(parameter, *weight, owner, data);
    }
    if (host.tensors.empty()) return;
    for (const auto& [name, tensor] : host.tensors) out_.weight_bytes += tensor.nbytes();
    write_safetensors((folder_ / "weights" / "host.safetensors").string(), host);
    ++out_.files;
  }
  Package& package() { return out_; }

 private:
  void device_weight(const Parameter& parameter, const ir::Weight& weight, const std::shared_ptr<const void>& owner,
                     const std::byte* data) {
    const ttrt::TensorSpec& spec = parameter.spec;
    const std::byte* stored = data + weight.storage_offset * size_of(weight.dtype);
    std::vector<std::byte> made;
    if (parameter.packed == nullptr)
      made = tiles_of(host_of(weight, owner, data), spec);
    else if (!same_form(parameter))
      made = repacked(parameter, stored, spec.logical);
    const auto size = static_cast<std::size_t>(spec.nbytes());
    out_.weight_bytes += size;
    const std::string folder = parameter.form == Parameter::Form::host ? "weights/host/" : "weights/";
    if (parameter.form == Parameter::Form::host) fs::create_directories(folder_ / folder);
    text(folder + parameter.name + ".tensorbin", tensor_file(spec, {made.empty() ? stored : made.data(), size}));
  }
  static bool same_form(const Parameter& parameter) {
    return parameter.spec.logical == parameter.stored.logical && parameter.spec.dtype == parameter.stored.dtype &&
           parameter.spec.layout == parameter.stored.layout;
  }

  fs::path folder_;
  const ir::Model& model_;
  Package out_;
};

// What may be replaced: a program that was written before.
void check_folder(const fs::path& folder, bool replace) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(folder, error))) return;
  if (!fs::is_directory(folder, error)) throw usage_error(folder.string() + " is no folder");
  if (fs::is_empty(folder, error)) return;
  const bool program = fs::exists(folder / "model.py", error) && fs::exists(folder / "parameters.py", error);
  if (!program) throw usage_error(folder.string() + " holds other files", "a program goes into a folder of its own");
  if (!replace) throw usage_error(folder.string() + " holds a program already", "--overwrite replaces it");
}

}  // namespace

Package write_package(const std::string& folder, const ir::Model& model, const Program& program,
                      const SafeTensors& vectors, bool replace) {
  fs::path target = fs::path(folder).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();
  check_folder(target, replace);
  std::error_code error;
  if (target.has_parent_path()) fs::create_directories(target.parent_path(), error);
  AtomicFolder made(target.string());
  try {
    const fs::path unfinished = made.unfinished();
    Writer to(unfinished, model);
    to.text("model.py", program.text);
    to.text("parameters.py", std::string(parameters_text));
    to.text("run.py", run_text(program, vectors));
    to.text("requirements.txt", std::string(requirements_text));
    to.weights(program);
    if (!vectors.tensors.empty()) {
      write_safetensors((unfinished / "vectors.safetensors").string(), vectors);
      ++to.package().files;
    }
    made.commit();
    return to.package();
  } catch (const fs::filesystem_error& failed) {
    throw usage_error(target.string() + ": " + failed.code().message());
  }
}

}  // namespace ttc::emit
