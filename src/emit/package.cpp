// Weights leave as they lie on the device; nothing of a folder is written in place.
#include "emit/package.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "device/tensor.h"
#include "emit/tensor_file.h"
#include "emit/texts.h"
#include "support/atomic_file.h"
#include "support/error.h"
#include "support/progress.h"

namespace ttc::emit {
namespace {

namespace fs = std::filesystem;
using ttrt::HostTensor;

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

// A table in tiles as rows of bfloat16, which gathers read.
std::vector<std::byte> rows_of(const ttrt::TensorSpec& spec, const std::byte* tiles, ttrt::TensorSpec& rows) {
  const HostTensor values = ttrt::empty_host(DType::f32, spec.logical);
  untilize_to_host(spec, tiles, values);
  rows = spec;
  rows.dtype = ttrt::DataType::bfloat16, rows.layout = ttrt::Layout::row_major;
  return tiles_of(values, rows);
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
      if (parameter.form == Parameter::Form::host) {
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
    ttrt::TensorSpec spec = parameter.spec;
    const std::byte* stored = data + weight.storage_offset * size_of(weight.dtype);
    std::vector<std::byte> made;
    if (!parameter.packed) made = tiles_of(host_of(weight, owner, data), spec);
    const std::byte* tiles = parameter.packed ? stored : made.data();
    std::vector<std::byte> rows;
    if (parameter.form == Parameter::Form::rows) rows = rows_of(parameter.spec, tiles, spec), tiles = rows.data();
    const auto size = static_cast<std::size_t>(spec.nbytes());
    out_.weight_bytes += size;
    text("weights/" + parameter.name + ".tensorbin", tensor_file(spec, {tiles, size}));
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
  std::string made = target.string() + ".XXXXXX";  // beside it, for the rename
  if (mkdtemp(made.data()) == nullptr)
    throw usage_error(target.string() + ": " + std::strerror(errno), "a program needs a folder that can be written");
  const fs::path unfinished = made;
  fs::permissions(unfinished,
                  fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec | fs::perms::others_read |
                      fs::perms::others_exec,
                  error);
  try {
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
    fs::remove_all(target);
    fs::rename(unfinished, target);
    return to.package();
  } catch (const fs::filesystem_error& failed) {
    fs::remove_all(unfinished, error);
    throw usage_error(target.string() + ": " + failed.code().message());
  } catch (...) {
    fs::remove_all(unfinished, error);
    throw;
  }
}

}  // namespace ttc::emit
