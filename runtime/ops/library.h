// What the op library knows of an op record: the functions that are this op and the compute configuration they take
// where the caller gives none. A record states it beside itself with TTRT_LIBRARY_OP.
//
// A call's configuration are its literals of the names below. One that is None stands for what the library takes, which
// depends on the operands' formats and the chip: the binder puts that in its place, and compiled programs hold what it
// put there. A record that states nothing is the function of its own name ("tt.softmax": softmax); its configuration
// are its schema's defaults.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "ops/op.h"

namespace ttrt::ops {

// ComputeConfig's members, and attention's approximate exponential.
inline constexpr std::array<std::string_view, 5> configuration_literals{"fidelity", "fp32_acc", "approx",
                                                                        "packer_l1_acc", "approx_exp"};

struct LibraryOp {
  std::string_view record;      // "tt.mul"
  std::string_view names = {};  // separated by blanks, besides the record's own
  std::optional<ComputeConfig> config = std::nullopt;
  ComputeConfig (*choose)(const OpCall&) = nullptr;  // instead, where formats decide
  bool accurate_float32 = false;                     // the approximate modes are off for float32
  bool approx_exp = false;
  std::string_view program = {};  // its device programs in profilers: "Matmul"; "": by the record's name
};

// Aborts where another record has one of the names.
void register_library_op(const LibraryOp& op);
// The record that serves this function of the op library; nullptr where there is none.
const OpRecord* find_library_op(std::string_view function);
// How profilers call the record's device programs: "LayerNorm" of "tt.layer_norm", "Matmul" of all products.
std::string device_program(std::string_view record);
// Of a call on `x`, where formats of other operands do not matter. float32 meets a 32-bit Dest. Blackhole has HiFi4
// where Wormhole, with a 32-bit Dest, has HiFi3.
std::optional<ComputeConfig> library_config(std::string_view record, DataType x = DataType::bfloat16,
                                            Arch arch = Arch::wormhole);
// Of products, which it chooses by the operands' and the result's formats.
ComputeConfig library_matmul_config(DataType a, DataType b, DataType out);

// Adds a call's configuration to its arguments: as the user chose it, the rest of it None. What he chose for products
// is theirs alone: the fidelity of rows of values stays the library's.
void ask_configuration(const OpRecord& record, const LowerOptions& options, std::vector<ttc::ir::Arg>& args);
// The device op's arguments for an ATen node, with that.
LowerResult lower_node(const OpRecord& record, const Lowering& lowering, const LowerContext& context);
// What is None of a call's configuration becomes what the library takes.
void resolve_configuration(OpCall& call, Arch arch);
// The arguments of a node with the configuration of the call that they were bound to.
void write_configuration(const OpCall& call, std::vector<ttc::ir::Arg>& args);

}  // namespace ttrt::ops

#define TTRT_LIBRARY_OP(id, ...)                                                                             \
  namespace {                                                                                                \
  const bool library_op_##id = (::ttrt::ops::register_library_op(::ttrt::ops::LibraryOp __VA_ARGS__), true); \
  }
