// What outlives a run: weights and constants, buffers that the model writes, and tensors that stay on the device for
// their owner. One rule for what is newer: a buffer with an entry on the device has its value there, any other on the
// host.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "executor/device_step.h"
#include "executor/program.h"

namespace ttrt {

class BufferStore {
 public:
  BufferStore(const ttc::ir::Model& model, const Program& program, const ArchProfile& arch)
      : model_(model), program_(program), arch_(arch) {}

  // ---- weights and constants
  // Reads the weights, and the buffers' first values. `device`: where resident tensors may be; nullptr in cpu mode.
  void load(std::shared_ptr<Device> device);
  // Weights, and after set-up the results of constant instructions too.
  const Frame& constants() const { return constants_; }
  Frame take_constants() { return std::move(constants_); }
  void keep_constants(Frame frame);  // drops what only set-up needs
  PackedWeights& packed() { return packed_; }
  const PackedWeights& packed() const { return packed_; }
  // Weights on demand: what set-up computed on the device, in `frame`, has its bytes on the host from now on, and is on
  // the device where a plan's placement or an instruction brings it. An output of the model stays there.
  void park(int slot, Frame& frame);
  void park_constants();
  // Outputs that share memory with weights or buffers are copied: the next run must not change what the caller holds,
  // nor the caller the file.
  RtValue own(RtValue value) const;

  // ---- buffers that the model writes
  void reset();  // to what the file holds
  void bind(Frame& frame) const;
  void write(int slot, const RtValue& value);
  // The new value on the device beside the plan's memory. False where it is not there: cpu mode. Memory is taken first,
  // for all buffers, so that no run ends between two of them.
  bool reserve(const DeviceState& state, const Frame& frame);
  void keep(const DeviceState& state, Frame& frame);
  // tt.to_device of a buffer that is there already. In another format than it is kept in, it goes over the host.
  bool upload(const Instruction& instruction, Frame& frame);
  // A buffer that has stayed on the device; nullptr where it is on the host.
  const DeviceTensor* on_device(int slot) const {
    const auto kept = device_state_.find(slot);
    return kept != device_state_.end() ? &kept->second : nullptr;
  }
  void bring_to_host();
  void share_with(BufferStore& other);  // a store of the same program on the host

  // ---- tensors of the caller's (resident.cpp)
  // What the program sees of an input: the device tensor where its readers can have that, else a host tensor.
  RtValue bound_input(std::size_t slot, RtValue value, Transfers& transfers) const;
  // tt.to_device of an input that is there already. In another format than it has, it goes over the host.
  bool upload_resident(const Instruction& instruction, Frame& frame, Transfers& transfers) const;
  RtValue keep_output(const KeepableOutput& output, const Frame& frame) const;
  // The same where it lies, until the plan's next run.
  ResidentTensor view_output(const KeepableOutput& output, const Frame& frame) const;
  // The new value of an input into the caller's tensor.
  void write_input(const ttc::ir::GraphOutput& output, const RtValue& value, const std::vector<RtValue>& inputs,
                   Transfers& transfers) const;
  // `tensor` on the device in the format in which main brings `slot` there; the tensor itself where the host reads it.
  RtValue place_input(int slot, const HostTensor& tensor, const std::string& label) const;

 private:
  HostTensor weight_tensor(const ttc::ir::Weight& weight);

  const ttc::ir::Model& model_;
  const Program& program_;
  const ArchProfile& arch_;
  std::shared_ptr<Device> device_;
  Frame constants_;
  PackedWeights packed_{true};
  std::map<const ttc::ir::Storage*, std::pair<std::shared_ptr<const void>, const std::byte*>> storages_;
  std::map<int, HostTensor> state_;           // by slot
  std::map<int, DeviceTensor> device_state_;  // by slot of the buffer
  std::map<int, DeviceTensor> incoming_;      // the same, not written yet
};

// On the host, counted as a transfer.
HostTensor bring_back(const ResidentTensor& tensor, Transfers& transfers, const ArchProfile& arch);
// The values of `from` into the memory of `to`, which has the same sizes.
void copy_values(const HostTensor& to, const HostTensor& from);
// A copy of its own, contiguous.
HostTensor copy_of(const HostTensor& tensor);

}  // namespace ttrt
