// Errors, element types and signatures: what the public headers of compiler and runtime share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#define TTC_API __attribute__((visibility("default")))

namespace ttc::api {

// What went wrong, as `ttc` would say it: kind() for programs, what() and hint() for people.
class TTC_API Error : public std::runtime_error {
 public:
  enum class Kind : std::uint8_t {
    failed,       // a check failed; the model, a kernel or LibTorch failed while it ran
    usage,        // a wrong input, name, shape, dtype, option, or order of calls
    unsupported,  // something this build, this device or this format can't do; the device's memory is full
    bad_file,     // a file that is no well-formed model, configuration or library, or that can't be read or written
    cancelled,    // Session::cancel() ended the run
    bug,          // ours
  };
  Error(Kind kind, const std::string& what, std::string hint = {}, std::string file = {})
      : std::runtime_error(what), kind_(kind), hint_(std::move(hint)), file_(std::move(file)) {}
  ~Error() override;
  Kind kind() const { return kind_; }
  // What to do about it, in terms of this library; "" where nothing is known.
  const std::string& hint() const { return hint_; }
  // The file it is about, which what() begins with; "" where it is about none.
  const std::string& file() const { return file_; }

 private:
  Kind kind_;
  std::string hint_, file_;
};
// "usage"
TTC_API const char* name(Error::Kind kind);

// The element types of PyTorch, in its order of the IR.
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
// Bytes of one element. Throws Error (usage) for a number that is no element type.
TTC_API std::size_t element_size(ElementType type);
// The name PyTorch prints, without "torch.": "float32". Throws like element_size.
TTC_API const char* name(ElementType type);

using Shape = std::vector<std::int64_t>;

// ---- what a model takes and gives -----------------------------------------------------------------------------------

struct Dim {
  std::optional<std::int64_t> size;  // nullopt: free
  std::string symbol;                // of a free dim: "s0"; dims of one symbol have one size. "s0*2" where it follows
  std::int64_t min = 0;              // the sizes that the model takes
  std::optional<std::int64_t> max;   // nullopt: no limit
  bool operator==(const Dim&) const = default;
};

struct TensorInfo {
  // Python numbers are given and come back as tensors of shape []: int64, float64, boolean. other: None, a string, a
  // list (its tensors come back one after the other).
  enum class Kind : std::uint8_t { tensor, integer, number, boolean, other };
  std::string name;  // of the signature; outputs are out0, out1, ...
  Kind kind = Kind::tensor;
  std::optional<ElementType> type;  // nullopt: the file does not say (TorchScript without shapes)
  std::vector<Dim> dims;
  bool has_shape = true;             // false: the file does not say; `dims` is empty then
  TTC_API std::string text() const;  // "float32[s0, 64]"
};

}  // namespace ttc::api
