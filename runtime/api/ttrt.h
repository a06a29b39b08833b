// libttrt: runs models that ttc rewrote, and plain exported ones, from C++. The library's whole public interface.
//
//   ttrt::Session session(ttrt::Model::load("model.tt.pt2"));
//   std::vector<ttrt::Tensor> outputs = session.run({ttrt::Tensor::copy(ttrt::ElementType::float32, {2, 3}, values)});
//
// Build with `pkg-config --cflags --libs ttrt`. Needs no header of LibTorch. Errors are ttrt::Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#define TTRT_API __attribute__((visibility("default")))

namespace ttrt {

enum class ElementType : std::uint8_t {
  uint8,
  int8,
  int16,
  int32,
  int64,
  float16,
  float32,
  float64,
  complex32,
  complex64,
  complex128,
  boolean,
  bfloat16,
  uint16,
  uint32,
  uint64,
  float8_e4m3fn,
  float8_e5m2,
  float8_e4m3fnuz,
  float8_e5m2fnuz,
  float8_e8m0fnu,
};
// Bytes of one element.
TTRT_API std::size_t element_size(ElementType type);
// The name PyTorch prints, without "torch.".
TTRT_API const char* name(ElementType type);

// A contiguous, row-major array in host memory. Copies share their bytes.
// What a session keeps on the device (Session::run_keeping) has no `data` but `resident`: it may be an input of later
// runs, and Session::fetch() brings it to the host.
struct TTRT_API Tensor {
  ElementType type = ElementType::float32;
  std::vector<std::int64_t> shape;
  std::shared_ptr<void> data;
  std::shared_ptr<const void> resident = {};

  // Uninitialised.
  static Tensor empty(ElementType type, std::vector<std::int64_t> shape);
  // A copy of numel() elements at `values`.
  static Tensor copy(ElementType type, std::vector<std::int64_t> shape, const void* values);
  // The caller's memory, which must outlive the tensor. A model that writes its inputs writes here.
  static Tensor view(ElementType type, std::vector<std::int64_t> shape, void* values);

  std::int64_t numel() const;
  std::size_t bytes() const { return static_cast<std::size_t>(numel()) * element_size(type); }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data.get());
  }
};

// What went wrong, as `ttc` would say it.
class TTRT_API Error : public std::runtime_error {
 public:
  enum class Kind : std::uint8_t {
    failed,       // the model failed while it ran
    usage,        // a wrong input, name, shape, dtype or option
    unsupported,  // something this build can't run
    bad_file,     // a file that is no well-formed model
    bug,          // ours
  };
  Error(Kind kind, const std::string& what, std::string hint)
      : std::runtime_error(what), kind_(kind), hint_(std::move(hint)) {}
  ~Error() override;
  Kind kind() const { return kind_; }
  const std::string& hint() const { return hint_; }

 private:
  Kind kind_;
  std::string hint_;
};

struct InputInfo {
  std::string name;
  std::string type;  // "f32[s0, 64]": symbols are free dims
};

// A loaded file; immutable, shared by sessions.
class TTRT_API Model {
 public:
  // A .pt2 or TorchScript file. Weights are mapped, not read.
  static Model load(const std::string& path);

  std::vector<InputInfo> inputs() const;
  std::size_t output_count() const;
  bool is_rewritten() const;  // has device ops

  struct Impl;
  explicit Model(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

struct SessionOptions {
  bool device = true;         // false: every op runs on the CPU, device ops in their float32 references
  bool exact = false;         // the silicon's arithmetic bit for bit, slowly; false: fast numerics
  std::string arch = "n150";  // an architecture profile, or the path of a profile file
  int threads = 0;            // of the whole process; 0 leaves them as they are
};

struct RunReport {
  std::int64_t device_nodes = 0, cpu_nodes = 0;
  std::int64_t fallback_failures = 0;  // device ops that had to run on the CPU so far
  double device_us = 0;                // of the last run, by the device's time model
  // Tensors that crossed the bus in the last run, and their bytes; weights are not counted.
  std::int64_t to_device = 0, to_device_bytes = 0, to_host = 0, to_host_bytes = 0;
};

// Runs a model again and again. Buffers that the model writes keep their values from run to run. Thread-safe; runs of
// one session follow one another.
class TTRT_API Session {
 public:
  explicit Session(const Model& model, const SessionOptions& options = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  // Inputs in the order of the signature, or by name.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs);
  std::vector<Tensor> run(const std::map<std::string, Tensor>& inputs);
  // Leaves these outputs (by position) on the device where nothing on the host makes or reads them: a cache that is an
  // output of one run and an input of the next then never crosses the bus.
  std::vector<Tensor> run_keeping(const std::vector<Tensor>& inputs, const std::vector<std::size_t>& keep);
  // Input `index` on the device, for models that write it in place: a cache of fixed size. The tensor itself where the
  // host reads that input.
  Tensor place(std::size_t index, const Tensor& tensor);
  // The tensor in host memory.
  Tensor fetch(const Tensor& tensor) const;
  // Back to the buffers of the file.
  void reset();
  RunReport report() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// "0.1.0"
TTRT_API const char* version();

}  // namespace ttrt
