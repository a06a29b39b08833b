// Profiles, devices and their life cycle, the allocator, reports and out-of-memory texts.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>

#include "device/shard.h"
#include "tests/unit/device_memory_test_util.h"
#include "tests/unit/device_test_util.h"

using namespace ttrt;
using namespace ttrt::test;

TEST_CASE("profiles are found by name, with a suggestion where the name is wrong", "[device][arch]") {
  std::vector<std::string> names;
  for (const ArchProfile& profile : arch_profiles()) {
    names.push_back(profile.name);
    CHECK(find_profile(profile.name) == profile);
    CHECK(!profile.source.empty());
    CHECK(parse_profile(to_json(profile), "copy.json") == profile);
  }
  CHECK(names == std::vector<std::string>{"e75", "e150", "n150", "n300", "p100", "p150"});
  CHECK(default_profile().name == "n150");
  CHECK(default_profile(Arch::grayskull).arch == Arch::grayskull);
  CHECK(default_profile(Arch::blackhole).name == "p150");
  contains(error_of([] { find_profile("n15"); }), "did you mean 'n150'");
  contains(error_of([] { profile_from_argument("wormhole_n1500000"); }), "known: e75, e150");
}

TEST_CASE("numbers of the profiles", "[device][arch]") {
  const ArchProfile& n150 = find_profile("n150");
  CHECK(n150.cores() == 64);
  CHECK(n150.l1_bytes == 1499136);
  CHECK(n150.dram_bank_bytes * n150.dram_banks == std::int64_t{12} << 30);
  CHECK(n150.peak_tflops(MathFidelity::LoFi) == Approx(262.144));
  CHECK(n150.peak_tflops(MathFidelity::HiFi4) == Approx(65.536));
  CHECK(find_profile("p100").dram_banks == 7);
  CHECK(find_profile("n300").chips == 2);
}

TEST_CASE("a user's profile overrides what it names and is checked", "[device][arch]") {
  const ArchProfile mine =
      parse_profile(R"({"name": "mine", "base": "p150", "grid_x": 11, "clock_mhz": 1000.5})", "mine.json");
  CHECK(mine.arch == Arch::blackhole);
  CHECK(mine.cores() == 110);
  CHECK(mine.clock_mhz == 1000.5);
  CHECK(mine.dram_banks == 8);
  const auto refused = [](const char* json) { return error_of([&] { parse_profile(json, "mine.json"); }); };
  contains(refused("{"), "not valid JSON");
  contains(refused("[1]"), "must be a JSON object");
  contains(refused("{}"), "needs a \"name\"");
  contains(refused(R"({"name": "x", "grid_X": 3})"), "did you mean 'grid_x'");
  contains(refused(R"({"name": "x", "grid_x": 3.5})"), "must be an integer");
  contains(refused(R"({"name": "x", "grid_x": "3"})"), "must be an integer");
  contains(refused(R"({"name": "x", "grid_x": 0})"), "must lie between 1 and 64");
  contains(refused(R"({"name": "x", "dram_bank_bytes": 1e30})"), "must be an integer");
  contains(refused(R"({"name": "x", "arch": "wormhol"})"), "did you mean 'wormhole'");
  contains(refused(R"({"name": "x", "base": "n151"})"), "unknown architecture profile");
  contains(refused(R"({"name": "x", "l1_reserved": 1499136})"), "leaves less than 16 KiB");
  contains(refused(R"({"name": "x", "dram_alignment": 48})"), "powers of two");
  contains(error_of([] { load_profile("/nowhere/at/all.json"); }), "cannot open");

  const std::filesystem::path path = std::filesystem::temp_directory_path() / "ttc_arch_test.json";
  std::ofstream(path) << to_json(mine);
  CHECK(profile_from_argument(path.string()) == mine);
  std::filesystem::remove(path);
}

TEST_CASE("a device is created, initialised, used and closed", "[device]") {
  auto device = create_device(Arch::wormhole, 3);
  CHECK(device->pcie_slot() == 3);
  CHECK(device->profile().name == "n150");
  CHECK_FALSE(device->is_initialized());
  contains(error_of([&] { allocate(*device, bf16({32, 32})); }), "device n150 in slot 3 is not initialised");
  contains(error_of([&] { close_device(*device); }), "not initialised");
  contains(error_of([&] { set_default_device(device); }), "not initialised");
  initialize_device(*device);
  CHECK(device->is_initialized());
  contains(error_of([&] { initialize_device(*device); }), "already initialised");
  contains(error_of([] { create_device(Arch::blackhole, 3); }), "PCIe slot 3 is occupied by a n150");
  contains(error_of([] { create_device(Arch::blackhole, -1); }), "there is no PCIe slot -1");
  contains(error_of([] { create_device(Arch::blackhole, pcie_slots); }), "there is no PCIe slot");
  auto other = create_device(Arch::grayskull, 4);
  close_device(*device);
  CHECK(device->is_closed());
  contains(error_of([&] { close_device(*device); }), "already closed");
  contains(error_of([&] { initialize_device(*device); }), "create a new device");
  contains(error_of([&] { allocate(*device, bf16({32, 32})); }), "is closed");
  CHECK_NOTHROW(create_device(Arch::blackhole, 3));  // the slot is free again
}

TEST_CASE("a slot is free when the last handle is gone", "[device]") {
  create_device(Arch::wormhole, 5).reset();
  auto device = create_device(Arch::wormhole, 5);
  CHECK(device->pcie_slot() == 5);
}

TEST_CASE("the default device is kept alive until it is closed", "[device]") {
  contains(error_of([] { get_default_device(); }), "no default device");
  auto device = open_device(small_profile());
  set_default_device(device);
  const Device* raw = device.get();
  device.reset();
  REQUIRE(get_default_device().get() == raw);
  close_device(*get_default_device());
  contains(error_of([] { get_default_device(); }), "no default device");
  CHECK(get_host().threads() >= 1);
  CHECK(!get_host().isa().empty());
}

TEST_CASE("tensors outlive their device and say so", "[device]") {
  Random random(1);
  auto device = open_device(small_profile());
  const TensorSpec spec = bf16({32, 64});
  const HostTensor host = values_for(spec.dtype, spec.logical, random);
  DeviceTensor a = to_device(host, *device, spec), b = to_device(host, *device, spec);
  const DeviceTensor same = a;
  CHECK(a.is_allocated());
  SECTION("closed") {
    close_device(*device);
    contains(error_of([&] { to_host(a, DType::f32); }), "device small in slot 0 is closed");
  }
  SECTION("destroyed without closing") {
    device.reset();
    contains(error_of([&] { a.data(); }), "is closed");
  }
  SECTION("deallocated") {
    deallocate(a);
    CHECK_FALSE(same.is_allocated());
    contains(error_of([&] { same.data(); }), "after it was deallocated");
    contains(error_of([&] { a.data(); }), "deallocated");
    CHECK_NOTHROW(deallocate(a));
    CHECK_NOTHROW(b.data());
    return;
  }
  CHECK_FALSE(a.is_allocated());
  CHECK_NOTHROW(deallocate(a));
  auto next = open_device(small_profile());  // the slot is free, the old tensor still is not on this device
  CHECK_FALSE(b.is_allocated());
}

TEST_CASE("every order of destruction is safe", "[device]") {
  Random random(2);
  const HostTensor host = values_for(DataType::bfloat16, {32, 32}, random);
  std::vector<int> order{0, 1, 2, 3};  // device handle, two tensors, close
  do {
    auto device = open_device(small_profile());
    std::vector<DeviceTensor> tensors{to_device(host, *device, bf16({32, 32})),
                                      to_device(host, *device, bf16({32, 32}, BufferType::l1))};
    for (const int what : order) {
      if (what == 0) device.reset();
      if (what == 1 || what == 2) tensors[static_cast<std::size_t>(what) - 1] = {};
      if (what == 3 && device) close_device(*device);
    }
    CHECK_FALSE(tensors[0].is_allocated());
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("threads allocate, read, close and destroy at once", "[device]") {
  for (int round = 0; round < 20; ++round) {
    auto device = open_device(small_profile(), round % pcie_slots);
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t, handle = device] {
        std::vector<DeviceTensor> kept;
        try {
          for (int i = 0; i < 50; ++i) {
            DeviceTensor x = allocate(*handle, bf16({32, 32}, t % 2 ? BufferType::l1 : BufferType::dram));
            std::byte* bytes = x.data();
            std::fill_n(bytes, 2048, static_cast<std::byte>(t));
            for (int k = 0; k < 2048; k += 256)
              if (bytes[k] != static_cast<std::byte>(t)) ++wrong;
            if (i % 3 == 0 && kept.size() < 8) kept.push_back(x);
          }
        } catch (const ttc::Error& error) {
          if (std::string(error.what()).find("is closed") == std::string::npos) ++wrong;
        }
      });
    if (round % 2) close_device(*device);
    device.reset();
    for (std::thread& thread : threads) thread.join();
    REQUIRE(wrong == 0);
  }
}

TEST_CASE("the allocator takes the first block that fits, from its end of the memory", "[device][memory]") {
  Allocator up(0, 1024, 32, Allocator::Direction::up);
  CHECK(up.allocate(1) == 0);
  CHECK(up.allocate(64) == 32);
  CHECK(up.allocate(33) == 96);
  CHECK(up.allocated() == 32 + 64 + 64);
  up.free(32);
  CHECK(up.allocate(65) == 160);  // the hole of 64 is too small
  CHECK(up.allocate(40) == 32);
  CHECK_FALSE(up.allocate(1024).has_value());
  CHECK(up.largest_free() == 1024 - 256);

  Allocator down(100, 1000, 16, Allocator::Direction::down);
  CHECK(down.base() == 112);
  CHECK(down.end() == 992);
  CHECK(down.allocate(100) == 992 - 112);
  CHECK(down.allocate(16) == 992 - 128);
  CHECK(down.lowest_used() == 992 - 128);
  down.free(992 - 112);
  CHECK(down.allocate(112) == 992 - 112);
  CHECK_FALSE(down.allocate(std::numeric_limits<std::int64_t>::max()).has_value());
}

TEST_CASE("random allocations never overlap and merge when freed", "[device][memory]") {
  Random random(3);
  for (const auto direction : {Allocator::Direction::up, Allocator::Direction::down}) {
    Allocator allocator(64, 1 << 16, 32, direction);
    std::vector<std::pair<std::int64_t, std::int64_t>> live;
    std::int64_t peak = 0;
    for (int i = 0; i < 5000; ++i) {
      if (between(random, 0, 1) && !live.empty()) {
        const auto victim = static_cast<std::size_t>(between(random, 0, static_cast<std::int64_t>(live.size()) - 1));
        allocator.free(live[victim].first);
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(victim));
      } else if (const std::int64_t bytes = between(random, 0, 4000); const auto at = allocator.allocate(bytes)) {
        REQUIRE(*at % 32 == 0);
        REQUIRE(*at >= 64);
        REQUIRE(*at + bytes <= 1 << 16);
        for (const auto& [start, size] : live)
          REQUIRE((*at + std::max<std::int64_t>(bytes, 1) <= start || start + size <= *at));
        live.emplace_back(*at, std::max<std::int64_t>(bytes, 1));
      } else {
        REQUIRE(allocator.largest_free() < bytes);
      }
      peak = std::max(peak, allocator.allocated());
    }
    CHECK(allocator.peak() == peak);
    for (const auto& [start, size] : live) allocator.free(start);
    CHECK(allocator.allocated() == 0);
    CHECK(allocator.largest_free() == allocator.capacity());
  }
}

TEST_CASE("memory runs out at the chip's capacity and says what holds it", "[device][memory]") {
  auto device = open_device(small_profile());
  // 128 KiB of DRAM in two banks: 64 tiles of 2 KiB.
  const DeviceTensor weights = allocate(*device, bf16({32 * 40, 32}), "layer.0.weight");
  const DeviceTensor small = allocate(*device, bf16({32, 32}), "bias");
  try {
    allocate(*device, bf16({32 * 30, 32}));
    FAIL("allocated more than there is");
  } catch (const OutOfMemory& error) {
    contains(error.what(),
             "Out of Memory: Not enough space to allocate 61440 B DRAM buffer across 2 banks, where each bank needs to "
             "store 30720 B, "
             "but bank size is 65536 B (allocated: 43008 B, free: 22528 B, largest free block: 22528 B)");
    contains(error.what(), "held now by 2 buffers: layer.0.weight 80.0 KiB at 0, bias 2048 B at 40960");
  }
  const DeviceTensor rest = allocate(*device, bf16({32 * 22, 32}));
  CHECK_THROWS_AS(allocate(*device, bf16({32, 32 * 3})), OutOfMemory);
  contains(error_of([&] { allocate(*device, bf16({32, 32 * 4096}, BufferType::l1)); }), "L1 buffer across 4 banks");
  contains(error_of([&] { allocate(*device, bf16({std::int64_t{1} << 40, std::int64_t{1} << 40})); }), "too large");
  contains(error_of([&] { allocate(*device, bf16({std::numeric_limits<std::int64_t>::max()})); }), "too large");
  contains(error_of([&] { allocate(*device, bf16({-1, 32})); }), "negative");
  CHECK(allocate(*device, bf16(Shape(12, 1), BufferType::l1)).is_allocated());  // many dims of size 1 are no size
}

TEST_CASE("memory that one buffer exceeds names no holders", "[device][memory]") {
  auto device = open_device(small_profile());
  contains(error_of([&] { allocate(*device, bf16({32 * 80, 32})); }), "nothing is allocated");
}

TEST_CASE("freed memory is given out again at the same place", "[device][memory]") {
  auto device = open_device(small_profile());
  DeviceTensor a = allocate(*device, bf16({64, 64}));
  std::byte* const where = a.data();
  std::fill_n(where, a.spec.nbytes(), std::byte{7});
  deallocate(a);
  const DeviceTensor b = allocate(*device, bf16({64, 64}));
  CHECK(b.data() == where);
  const DeviceTensor c = allocate(*device, bf16({64, 64}));
  CHECK(std::abs(c.data() - b.data()) >= b.spec.nbytes());
}

TEST_CASE("the report tells peaks, holders and what made up the peak", "[device][memory]") {
  auto device = open_device(small_profile());
  DeviceTensor a = allocate(*device, bf16({64, 64}), "a");
  DeviceTensor b = allocate(*device, bf16({32, 64}), "b");
  deallocate(a);
  const DeviceTensor c = allocate(*device, bf16({32, 32}, BufferType::l1), "c");
  const MemoryReport report = device->memory_report();
  CHECK(report.dram.banks == 2);
  CHECK(report.dram.bank_bytes == 65536);
  CHECK(report.dram.allocated_per_bank == 2048);
  CHECK(report.dram.peak_per_bank == 2048 + 4096);
  REQUIRE(report.dram.live.size() == 1);
  CHECK(report.dram.live[0].label == "b");
  REQUIRE(report.dram.at_peak.size() == 2);
  CHECK(report.dram.at_peak[0].label == "a");
  CHECK(report.dram.at_peak[0].bytes == 8192);
  CHECK(report.dram.at_peak[1].label == "b");
  REQUIRE(report.l1.live.size() == 1);
  CHECK(report.l1.live[0].address == 131072 - 2048);
  device->memory()->reset_peak();
  CHECK(device->memory_report().dram.peak_per_bank == 2048);
}

TEST_CASE("circular buffers must fit into L1, under the buffers that are there", "[device][memory]") {
  const ArchProfile& n150 = find_profile("n150");
  CHECK_FALSE(check_circular_buffers(n150, 1432 * 1024).has_value());
  const auto refusal = check_circular_buffers(n150, 1432 * 1024 + 1);
  REQUIRE(refusal.has_value());
  CHECK(refusal->code == ttc::ReasonCode::DeviceLimit);
  CHECK(refusal->detail ==
        "Statically allocated circular buffers on core range [(x=0,y=0) - (x=7,y=7)] grow to 1499137 B which is beyond "
        "max L1 size of 1499136 B");
  auto device = open_device(small_profile());
  const DeviceTensor x = allocate(*device, bf16({64, 64}, BufferType::l1), "activations");
  CHECK_FALSE(device->memory()->check_circular_buffers("matmul", 65536 - 2048).has_value());
  const auto clash = device->memory()->check_circular_buffers("matmul", 65536 - 2047);
  REQUIRE(clash.has_value());
  contains(clash->detail,
           "Statically allocated circular buffers in program matmul clash with L1 buffers on core range [(x=0,y=0) - "
           "(x=1,y=1)]. "
           "L1 buffer allocated at 129024 and static circular buffer region ends at 129025");
  contains(clash->detail, "activations");
}
