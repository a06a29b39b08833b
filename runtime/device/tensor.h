// Device tensors: a specification and a buffer of tiles or rows on a device.
#pragma once

#include <memory>
#include <span>

#include "device/host_tensor.h"
#include "support/error.h"

namespace ttrt {

class Device;
class Buffer;

struct ShardSpec {
  std::int64_t grid_x = 1, grid_y = 1;  // cores
  Shape shape;                          // [height, width] of one shard, in elements
  bool column_major = false;            // order in which shards visit the cores
  bool operator==(const ShardSpec&) const = default;
};

struct MemoryConfig {
  BufferType buffer_type = BufferType::dram;
  TensorMemoryLayout layout = TensorMemoryLayout::interleaved;
  std::optional<ShardSpec> shard;
  bool operator==(const MemoryConfig&) const = default;
};

// Everything about a device tensor but its bytes. TILE layout pads the last two dims to multiples of 32
// (a 1-D tensor counts as one row, a 0-d tensor as [1, 1]); all leading dims are kept.
struct TensorSpec {
  Shape logical;
  DataType dtype = DataType::bfloat16;
  Layout layout = Layout::tile;
  MemoryConfig memory;
  bool operator==(const TensorSpec&) const = default;

  Shape padded() const;
  std::int64_t nbytes() const;  // of the padded tensor in its format
  // TILE view: product of the leading dims, then rows and columns of tiles.
  std::int64_t batch() const;
  std::int64_t rows() const;  // logical, 1 for ranks 0 and 1
  std::int64_t cols() const;  // logical, 1 for rank 0
  std::int64_t tile_rows() const { return round_up(rows(), tile_dim) / tile_dim; }
  std::int64_t tile_cols() const { return round_up(cols(), tile_dim) / tile_dim; }
  std::int64_t tiles() const { return batch() * tile_rows() * tile_cols(); }
};

// Holds its buffer, not its device: it may outlive the device, and says so when its bytes are then touched.
struct DeviceTensor {
  TensorSpec spec;
  std::shared_ptr<Buffer> buffer;
  std::int64_t offset = 0;  // bytes into the buffer, for tensors that share a planned region
  // Of a result that is yet to be written: rows of its tiles that hold no data are zero already, and its columns are a
  // multiple of 32, so that a kernel need write nothing but data.
  bool padding_is_zero = false;

  bool is_allocated() const;
  // The tensor's bytes. Throws ttc::Error where the buffer was deallocated or its device is closed.
  std::byte* data() const;
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data());
  }
};

// A number that the format it should go to cannot hold.
class RangeError : public ttc::Error {
 public:
  explicit RangeError(const std::string& what) : Error(ttc::Exit::usage, "", what) {}
};

// Host bytes <-> device bytes (device/layout.cpp). Padding is written as zeros. Conversion to the device format
// rounds as the host library does (facts in device/tile_formats.h).
void tilize_from_host(const HostTensor& host, const TensorSpec& spec, std::byte* out);
// `dtype` may be any floating or bool dtype for float formats, any integral or bool dtype for integer formats.
// Both throw RangeError where an integer does not fit.
void untilize_to_host(const TensorSpec& spec, const std::byte* tiles, const HostTensor& out);

// `label` names the buffer in memory reports and out-of-memory texts; the format and shape where empty.
DeviceTensor allocate(Device& device, const TensorSpec& spec, std::string_view label = {});
DeviceTensor to_device(const HostTensor& host, Device& device, const TensorSpec& spec, std::string_view label = {});
HostTensor to_host(const DeviceTensor& tensor, DType dtype);
// Frees the whole buffer, also under other tensors that share it; they say so when touched. Twice does nothing.
void deallocate(DeviceTensor& tensor);

}  // namespace ttrt
