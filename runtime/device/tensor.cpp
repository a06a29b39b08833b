// Sizes that follow from a specification, and tensors that come, go and move between host and device.
#include "device/tensor.h"

#include <cstring>

#include "device/device.h"
#include "device/shard.h"

namespace ttrt {
namespace {

std::string spec_text(const TensorSpec& spec) {
  std::string text(to_string(spec.dtype));
  text += '[';
  for (std::size_t i = 0; i < spec.logical.size(); ++i) {
    if (i > 0) text += ',';
    text += std::to_string(spec.logical[i]);
  }
  return text + ']';
}

}  // namespace

Shape TensorSpec::padded() const {
  if (layout == Layout::row_major) return logical;
  Shape shape = logical;
  if (shape.size() < 2) shape = {rows(), cols()};
  for (std::size_t i = shape.size() - 2; i < shape.size(); ++i) shape[i] = round_up(shape[i], tile_dim);
  return shape;
}

std::int64_t TensorSpec::nbytes() const {
  return layout == Layout::tile ? tiles() * tile_bytes(dtype) : volume(logical) * element_bytes(dtype);
}

std::int64_t TensorSpec::batch() const {
  std::int64_t n = 1;
  for (std::size_t i = 0; i + 2 < logical.size(); ++i) n *= logical[i];
  return n;
}

std::int64_t TensorSpec::rows() const { return logical.size() < 2 ? 1 : logical[logical.size() - 2]; }
std::int64_t TensorSpec::cols() const { return logical.empty() ? 1 : logical.back(); }

bool DeviceTensor::is_allocated() const { return buffer && buffer->is_allocated(); }

std::byte* DeviceTensor::data() const {
  if (!buffer) throw ttc::usage_error("a device tensor was used before it was allocated or after it was deallocated");
  return buffer->data() + offset;
}

DeviceTensor allocate(Device& device, const TensorSpec& spec, std::string_view label) {
  device.memory()->require_open();
  const BufferSpec wanted = buffer_spec(spec, device.profile());
  return {spec, std::make_shared<Buffer>(device.memory(), wanted, label.empty() ? spec_text(spec) : std::string(label)),
          0};
}

DeviceTensor to_device(const HostTensor& host, Device& device, const TensorSpec& spec, std::string_view label) {
  if (host.sizes != spec.logical)
    throw ttc::usage_error("to_device: the host tensor's shape differs from the specification's");
  DeviceTensor tensor = allocate(device, spec, label);
  tilize_from_host(host, spec, tensor.data());
  return tensor;
}

HostTensor to_host(const DeviceTensor& tensor, DType dtype) {
  const std::byte* bytes = tensor.data();
  HostTensor out = empty_host(dtype, tensor.spec.logical);
  untilize_to_host(tensor.spec, bytes, out);
  return out;
}

void deallocate(DeviceTensor& tensor) {
  if (tensor.buffer) tensor.buffer->deallocate();
  tensor.buffer.reset();
}

}  // namespace ttrt
