// Entries by slot and spec, and their way to the device and back.
#include "executor/packed_weights.h"

#include <algorithm>
#include <cstring>

#include "device/buffer.h"
#include "device/shard.h"
#include "support/error.h"

namespace ttrt {
namespace {

constexpr std::uintptr_t tile_alignment = 64;  // of what files hold, and of what kernels read fast

}  // namespace

PackedWeights::Entry& PackedWeights::entry(int slot, const HostTensor& tiles, const TensorSpec& spec) {
  auto& entries = entries_[slot];
  for (const auto& known : entries)
    if (known->spec == spec) return *known;
  if (tiles.dtype != DType::u8 || tiles.nbytes() != spec.nbytes())
    throw ttc::bad_file("", "a packed weight holds " + std::to_string(tiles.nbytes()) +
                                " bytes where its format needs " + std::to_string(spec.nbytes()));
  entries.push_back(std::make_unique<Entry>(Entry{.slot = slot, .spec = spec}));
  return *entries.back();
}

const DeviceTensor& PackedWeights::on_device(int slot, const HostTensor& tiles, const TensorSpec& spec, Device& device,
                                             std::string_view label) {
  Entry& e = entry(slot, tiles, spec);
  if (e.is_there()) return e.device;
  if (e.tiles.data == nullptr) {
    e.label = label;
    e.tiles = contiguous(tiles);
  }
  bring(e, device);
  if (!viewed_) e.tiles = {};
  return e.device;
}

const HostTensor& PackedWeights::unpacked(int slot, const HostTensor& tiles, const TensorSpec& spec) {
  Entry& e = entry(slot, tiles, spec);
  if (e.unpacked.data == nullptr) {
    const HostTensor dense = contiguous(tiles);
    HostTensor out = empty_host(is_float_format(spec.dtype) ? DType::f32 : torch_dtype(spec.dtype), spec.logical);
    untilize_to_host(spec, dense.data, out);
    e.unpacked = std::move(out);
  }
  return e.unpacked;
}

void PackedWeights::park(int slot, DeviceTensor& tensor, std::string_view label) {
  Entry parked{.slot = slot, .spec = tensor.spec, .label = std::string(label), .computed = true};
  parked.tiles = empty_host(DType::u8, {tensor.spec.nbytes()});
  std::memcpy(parked.tiles.data, tensor.data(), static_cast<std::size_t>(parked.tiles.nbytes()));
  auto& entries = entries_[slot];
  entries.clear();
  entries.push_back(std::make_unique<Entry>(std::move(parked)));
  tensor = {.spec = tensor.spec, .buffer = nullptr};
}

std::vector<PackedWeights::Entry*> PackedWeights::of(int slot) const {
  std::vector<Entry*> out;
  if (const auto found = entries_.find(slot); found != entries_.end())
    for (const auto& entry : found->second) out.push_back(entry.get());
  return out;
}

void PackedWeights::bring(Entry& e, Device& device) const {
  if (e.is_there()) return;
  if (viewed_ && reinterpret_cast<std::uintptr_t>(e.tiles.data) % tile_alignment == 0) {
    e.device = {.spec = e.spec,
                .buffer = std::make_shared<Buffer>(device.memory(), buffer_spec(e.spec, device.profile()), e.label,
                                                   e.tiles.data, e.tiles.owner)};
    return;
  }
  e.device = allocate(device, e.spec, e.label);
  std::memcpy(e.device.data(), e.tiles.data, static_cast<std::size_t>(e.tiles.nbytes()));
}

void PackedWeights::evict_all() {
  for (auto& [slot, entries] : entries_)
    for (auto& entry : entries) entry->device = {};
}

std::int64_t PackedWeights::count() const {
  std::int64_t out = 0;
  for (const auto& [slot, entries] : entries_)
    out += std::count_if(entries.begin(), entries.end(), [](const auto& e) { return e->tiles.data != nullptr; });
  return out;
}

}  // namespace ttrt
