// See buffer.h.
#include "device/buffer.h"

namespace ttrt {

std::int64_t bytes_per_bank(const ArchProfile& profile, const BufferSpec& spec) {
  if (spec.shard_bytes > 0) return spec.shard_bytes;
  const bool dram = spec.type == BufferType::dram;
  const std::int64_t banks = dram ? profile.dram_banks : profile.cores();
  const std::int64_t page = round_up(spec.page_bytes, dram ? profile.dram_alignment : profile.l1_alignment);
  const std::int64_t pages = (spec.bytes + spec.page_bytes - 1) / spec.page_bytes;
  return (pages + banks - 1) / banks * page;
}

Buffer::Buffer(std::shared_ptr<DeviceMemory> memory, const BufferSpec& spec, std::string label)
    : memory_(std::move(memory)), spec_(spec) {
  block_ = memory_->allocate(spec.type, bytes_per_bank(memory_->profile(), spec), spec.bytes, std::move(label));
  memory_->attach();
  allocated_.store(true, std::memory_order_release);
}

Buffer::~Buffer() {
  deallocate();
  memory_->detach();
}

void Buffer::deallocate() noexcept {
  if (allocated_.exchange(false)) memory_->free(block_);
}

void Buffer::throw_gone() const {
  memory_->require_open();
  throw ttc::usage_error("a tensor on " + memory_->name() + " was used after it was deallocated");
}

}  // namespace ttrt
