// Taking a block from the device's memory and giving it back, once.
#include "device/buffer.h"

#include "device/shard.h"

namespace ttrt {

std::int64_t bytes_per_bank(const ArchProfile& profile, const BufferSpec& spec) {
  if (spec.shard_bytes > 0) return spec.shard_bytes;
  const bool dram = spec.type == BufferType::dram;
  const std::int64_t banks = dram ? profile.dram_banks : profile.cores();
  const std::int64_t page = round_up(spec.page_bytes, dram ? profile.dram_alignment : profile.l1_alignment);
  const std::int64_t pages = (spec.bytes + spec.page_bytes - 1) / spec.page_bytes;
  return (pages + banks - 1) / banks * page;
}

std::int64_t bytes_per_bank(const ArchProfile& profile, const TensorSpec& spec) {
  return bytes_per_bank(profile, buffer_spec(spec, profile));
}

ttc::Refusal check_dram(const ArchProfile& profile, std::string_view program, std::span<const TensorSpec> operands,
                        std::span<const TensorSpec> results) {
  std::int64_t needed = 0;
  for (const std::span<const TensorSpec> specs : {operands, results})
    for (const TensorSpec& spec : specs)
      if (spec.memory.buffer_type == BufferType::dram)
        needed += round_up(bytes_per_bank(profile, spec), profile.dram_alignment);
  if (needed <= profile.dram_bank_bytes) return std::nullopt;
  return ttc::Reason{ttc::ReasonCode::DeviceLimit,
                     std::string(program) + " needs " + std::to_string(needed) +
                         " B in each DRAM bank for its operands and results at once, and a bank has " +
                         std::to_string(profile.dram_bank_bytes) + " B"};
}

Buffer::Buffer(std::shared_ptr<DeviceMemory> memory, const BufferSpec& spec, std::string label)
    : Buffer(std::move(memory), spec, std::move(label), nullptr, nullptr) {}

Buffer::Buffer(std::shared_ptr<DeviceMemory> memory, const BufferSpec& spec, std::string label, const std::byte* bytes,
               std::shared_ptr<const void> owner)
    : memory_(std::move(memory)), spec_(spec), owner_(std::move(owner)) {
  block_ = memory_->allocate(spec.type, bytes_per_bank(memory_->profile(), spec), spec.bytes, std::move(label));
  bytes_ = bytes != nullptr ? const_cast<std::byte*>(bytes) : block_.host;
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
