// Devices to test memory with: a small one, tensor specifications, texts of errors.
#pragma once

#include <string>

#include "device/device.h"
#include "tests/catch.h"

namespace ttrt::test {

// The text of the ttc::Error that `work` throws, "" where it throws none.
template <typename Work>
std::string error_of(const Work& work) {
  try {
    work();
  } catch (const ttc::Error& error) {
    return error.what() + (error.hint().empty() ? "" : "\n" + error.hint());
  }
  return "";
}

inline bool contains(const std::string& text, const std::string& part) {
  INFO("'" << text << "' should contain '" << part << "'");
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

// Two DRAM banks of 64 KiB, 2x2 cores with 128 KiB of L1 of which 64 KiB are free.
inline ArchProfile small_profile() {
  return parse_profile(
      R"({"name": "small", "grid_x": 2, "grid_y": 2, "dram_banks": 2, "dram_bank_bytes": 65536,
          "l1_bytes": 131072, "l1_reserved": 65536})",
      "small.json");
}

inline std::shared_ptr<Device> open_device(const ArchProfile& profile, int slot = 0) {
  auto device = create_device(profile, slot);
  initialize_device(*device);
  return device;
}

inline TensorSpec bf16(Shape shape, BufferType type = BufferType::dram) {
  TensorSpec spec{std::move(shape), DataType::bfloat16, Layout::tile, {}};
  spec.memory.buffer_type = type;
  return spec;
}

}  // namespace ttrt::test
