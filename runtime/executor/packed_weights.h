// Constants as device ops read them: their tiles on the host, on the device while they are there, and unpacked for
// references; each made when it is first asked for.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/tensor.h"

namespace ttrt {

class PackedWeights {
 public:
  struct Entry {
    int slot = 0;
    TensorSpec spec;
    std::string label = {};
    HostTensor tiles = {};  // the bytes, where they can be moved in more than once
    DeviceTensor device = {};
    HostTensor unpacked = {};
    // Set-up computed it: frames hold the device tensor itself, where a weight of the file is its tiles on the host.
    bool computed = false;

    bool is_there() const { return device.buffer != nullptr; }
  };

  // `viewed`: the device's buffers show the bytes of the tiles, which are then kept as long as this; else they hold
  // copies, and cannot be evicted.
  explicit PackedWeights(bool viewed = false) : viewed_(viewed) {}
  // A uint8 tensor of tiles in a file. `tiles` holds spec.nbytes() bytes; throws ttc::Error (bad file) where it does
  // not.
  const DeviceTensor& on_device(int slot, const HostTensor& tiles, const TensorSpec& spec, Device& device,
                                std::string_view label);
  const HostTensor& unpacked(int slot, const HostTensor& tiles, const TensorSpec& spec);

  // ---- weights on demand
  // A constant on the device: its bytes go to the host, and `tensor` is left without a buffer.
  void park(int slot, DeviceTensor& tensor, std::string_view label);
  // All that were read in a slot, one per spec.
  std::vector<Entry*> of(int slot) const;
  // Takes memory for it, where it is not there.
  void bring(Entry& entry, Device& device) const;
  void evict_all();
  // Of those that were read on the device so far.
  std::int64_t count() const;

 private:
  Entry& entry(int slot, const HostTensor& tiles, const TensorSpec& spec);
  bool viewed_;
  std::map<int, std::vector<std::unique_ptr<Entry>>> entries_;  // by slot
};

}  // namespace ttrt
