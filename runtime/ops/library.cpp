// Function names of the op library and their default configurations, as records state them.
#include "ops/library.h"

#include <map>
#include <ranges>
#include <string>

#include "support/error.h"

namespace ttrt::ops {
namespace {

struct Functions {
  std::map<std::string, std::string_view, std::less<>> records;  // by function
  std::map<std::string_view, LibraryOp> configurations;          // by record
};

// Leaked: ops register while other libraries' variables are made.
Functions& functions() {
  static auto* all = new Functions;
  return *all;
}

}  // namespace

void register_library_op(const LibraryOp& op) {
  for (const auto name : std::views::split(op.names, ' ')) {
    const bool added = functions().records.emplace(std::string(name.begin(), name.end()), op.record).second;
    TTC_CHECK(added, "a function of the op library is one record: " + std::string(name.begin(), name.end()));
  }
  if (op.config) functions().configurations.insert_or_assign(op.record, op);
}

const OpRecord* find_library_op(std::string_view function) {
  const auto at = functions().records.find(function);
  if (at != functions().records.end()) return find_op(at->second);
  return find_op("tt." + std::string(function));
}

std::optional<ComputeConfig> library_config(std::string_view record, DataType x, Arch arch) {
  const auto at = functions().configurations.find(record);
  if (at == functions().configurations.end()) return std::nullopt;
  std::optional<ComputeConfig> config = at->second.config;
  if (arch == Arch::blackhole && config->math_fidelity == MathFidelity::HiFi3)
    config->math_fidelity = MathFidelity::HiFi4;
  if (at->second.accurate_float32 && x == DataType::float32) config->math_approx_mode = false;
  return config;
}

// LoFi where both operands are block formats; a 32-bit Dest where the operands or the result are float32.
ComputeConfig library_matmul_config(DataType a, DataType b, DataType out) {
  const bool wide = a == DataType::float32 && b == DataType::float32;
  if (wide) return {.math_fidelity = MathFidelity::HiFi3, .fp32_dest_acc_en = true, .packer_l1_acc = false};
  return {.math_fidelity = is_block_format(a) && is_block_format(b) ? MathFidelity::LoFi : MathFidelity::HiFi2,
          .fp32_dest_acc_en = out == DataType::float32,
          .packer_l1_acc = true};
}

}  // namespace ttrt::ops
