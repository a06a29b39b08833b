// Op records: all there is to know about a device op, in the one file that registers it.
//
// The compiler reads `lowers`, `operands` and `packed`; the runtime reads `infer`, `supports`, `prepare` and
// `reference`; `ttc ops`, the documentation and the op harness read the rest. Adding an op adds one file and one line
// in meson.build.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "device/time_model.h"
#include "ir/graph.h"
#include "support/reason.h"
#include "ops/value.h"

namespace ttrt {

struct OpRecord;
class PythonCall;  // ops/emit.h

// ---- a concrete call: shapes, dtypes and literals known, bytes not yet --------------------------------------------

struct TensorRef {
  int index = -1;
  bool operator==(const TensorRef&) const = default;
};  // into OpCall::tensors
using OpArg = std::variant<std::monostate, TensorRef, std::vector<TensorRef>, std::int64_t, double, bool, std::string,
                           std::vector<std::int64_t>, std::vector<double>, DType>;

struct OpCall {
  const OpRecord* op = nullptr;
  std::vector<OpArg> args;          // in schema order, defaults filled in
  std::vector<TensorSpec> tensors;  // the tensor operands in order; packed weights with the spec of their tiles
  bool operator==(const OpCall&) const = default;

  const OpArg& arg(std::string_view name) const;
  bool has(std::string_view name) const;                  // given and not None
  const TensorSpec* tensor(std::string_view name) const;  // nullptr for None
  int tensor_index(std::string_view name) const;          // -1 for None
  std::int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;  // int or float
  bool boolean(std::string_view name) const;
  const std::string& string(std::string_view name) const;  // "" for None
  std::vector<std::int64_t> integers(std::string_view name) const;
  // From the literals that ops/library.h lists, where the schema has them.
  ComputeConfig compute_config() const;
};

// ---- kernels ------------------------------------------------------------------------------------------------------

struct KernelArgs {
  std::span<const DeviceTensor* const> in;  // parallel to OpCall::tensors
  std::span<DeviceTensor* const> out;       // parallel to infer()'s result
};
// A call part by part, in any order and from several threads: part p of the results needs part p only of operands that
// have as many tiles as the parts; others are read whole. So calls of which one reads another's result can take turns,
// part by part (executor/together.h).
struct Parts {
  std::int64_t count = 0, tiles = 1;  // of each part, one after the other
  std::int64_t worth = 2;             // from so many on, other threads are worth waking
  std::function<void(const KernelArgs&, std::int64_t first, std::int64_t last)> run = {};  // must not throw
};
// Bound to one OpCall; called once per execution; allocates nothing. Empty where the record's `no_exact_kernel` says
// why.
class Kernel : public std::function<void(const KernelArgs&)> {
 public:
  using std::function<void(const KernelArgs&)>::function;
  // One that is nothing but its parts.
  explicit Kernel(Parts of);

  std::shared_ptr<const Parts> parts;
  // The call, whose result's tiles are left where they are to lie; empty: it can't.
  std::function<void(const KernelArgs&, const TilePlace&)> placed;
  // Of a kernel that does nothing but move each tile of its only operand: where to.
  std::function<std::byte*(const KernelArgs&, std::int64_t tile)> place;
};

struct PrepareContext {
  Numerics numerics = Numerics::fast;
  // Parallel to OpCall::tensors: the tensor where it is a constant of the program, else nullptr. A kernel may turn its
  // bytes into the layout it computes with, once.
  std::span<const DeviceTensor* const> constants;
  // Which of the record's variants, "" for what the op library takes by itself; and the chip it runs on.
  std::string_view variant = {};
  const ArchProfile& profile = default_profile();
};

// What of a call and its device decides which variants can serve it. Negative sizes: not known, or the op has no such.
struct VariantQuery {
  std::int64_t batch = 1, m = -1, k = -1, n = -1;  // matrix products, each of the batch
  std::int64_t queries = -1, keys = -1, heads = -1, kv_heads = -1, head_dim = -1;
  DataType a = DataType::bfloat16, b = DataType::bfloat16;
  bool constant_b = false, exact = false, fp32_acc = true;
  std::int64_t grid_x = default_profile().grid_x, grid_y = default_profile().grid_y;
  std::int64_t dram_banks = default_profile().dram_banks;
  std::int64_t l1_bytes = 0;  // per core, for circular buffers; 0: not known
};

// ---- the compiler's side ------------------------------------------------------------------------------------------

// What the user chose for one node's module.
struct LowerOptions {
  DataType activation = DataType::bfloat16;
  DataType weight = DataType::bfloat16;
  // nullopt: as the op library takes it by itself (ops/library.h).
  std::optional<MathFidelity> fidelity;
  std::optional<bool> fp32_acc;
};

struct LowerContext {
  const ttc::ir::Node& node;  // an ATen node, arguments normalised to the schema
  const LowerOptions& options;
};
// The arguments of the device op in schema order, over the ATen node's own values. Trailing defaults may be left out.
// The literals of the compute configuration are None: lower_node() (ops/library.h) sets what the user chose.
struct Lowered {
  std::vector<ttc::ir::Arg> args;
  // Which results of the ATen node the op's results stand for; empty: one to one. The others must be unused.
  std::vector<int> results = {};
};
using LowerResult = std::variant<Lowered, ttc::Reason>;
// Multiplications and additions (2MNK) of an ATen node; 0 where a dim has no value under the binding.
using Flops = double (*)(const ttc::ir::Node&, const ttc::ir::SymBinding&);
struct Lowering {
  std::string_view aten;  // "aten.softmax.int"
  LowerResult (*lower)(const LowerContext&);
  Flops flops = nullptr;  // of operators that multiply matrices
};

// How an operand reaches the device.
enum class OperandKind : std::uint8_t {
  activation,  // in the program's activation format
  index,       // int32, exact; refuses values that do not fit
  any,         // floats and booleans in the activation format, integers as int32
  boolean,     // a mask of 0 and 1 in the activation format
  packed,      // a constant, packed to tiles at compile time: what the record has a Packed for
  exact,       // in the format that holds the host dtype exactly (float32 for f32, int32 for integers)
};
struct Operand {
  std::string_view name;
  OperandKind kind;
};
// How a constant becomes tiles. `spec` is its shape and format on the device, from the call's literals.
struct Packed {
  std::string_view name;
  enum class Form : std::uint8_t { matrix, transposed, row, arranged } form;  // row: a vector [N] as one row [1, N]
  TensorSpec (*spec)(const OpCall&);
  // arranged: the constant in the spec's shape, and back to its own sizes.
  HostTensor (*arrange)(const HostTensor& constant, const TensorSpec& spec) = nullptr;
  HostTensor (*restore)(const HostTensor& arranged, const Shape& sizes) = nullptr;
  bool multiplied = false;  // the matrix unit's second operand (SrcA)
};
// The values that are packed for `matrix`, a constant in the spec's shape. Packed as float32 for the matrix unit, which
// would cut them to 10 significant bits and so shrink every product: rounded to nearest even there. Others as they are.
HostTensor packed_values(const HostTensor& matrix, const Packed& packed, const TensorSpec& spec);

// ---- the record ---------------------------------------------------------------------------------------------------

// Calls ATen for an op's CPU reference.
struct Reference {
  virtual std::vector<RtValue> call(std::string_view op,
                                    std::vector<RtValue> args) = 0;  // trailing defaults may be left out
  virtual ~Reference() = default;
};

// How far results may be from what ATen computes in float32 of the same operands: bfloat16 activations, all multiplier
// bits, 32-bit Dest. The harness derives the other configurations from it.
struct Tolerance {
  double pcc = 0.999;        // correlation
  double max_rel = 0.005;    // largest |a - e| over the largest |e|: an error of scale or offset of a hundredth shows
  double exact_max_rel = 0;  // in exact numerics, where they round more often than once; 0: as max_rel
};
// Of records that move, choose, compare or count.
inline constexpr Tolerance equal_results{.pcc = 1, .max_rel = 0};

// One case of the harness: a text-IR graph of ATen nodes that this op must serve. Operands get seeded values.
struct OpCase {
  std::string_view name;
  std::string_view graph;
  std::string_view range =
      "normal";  // "normal", "positive", "unit" [0,1), "wide" (values over many magnitudes), "index"
};

// What an op is for that no ATen node is lowered to: passes ask for it by this (op_for) and write it where they need
// it. One op each. The transfers between host and device compute nothing and have no kernel.
enum class Role : std::uint8_t {
  none,
  to_device,
  to_host,
  change_format,
  split_heads,
  split_query_key_value,
  concat_heads,
  rotary_embedding
};
constexpr bool is_transfer(Role role) { return role == Role::to_device || role == Role::to_host; }

// The words that a literal of type str takes beside its default; the binder refuses others. Not stated for "fidelity"
// and names that end in "format", which hold what the device calls its fidelities and formats.
struct Words {
  std::string_view literal;
  std::string_view words = {};                  // separated by blanks
  bool (*permits)(std::string_view) = nullptr;  // instead, where another table has them
};

// One of several kernels of an op. They compute the same; how they cut the work differs, and with it what they can
// take, what they cost, and in exact numerics where sums are rounded. A record lists them best first.
struct KernelVariant {
  std::string_view name, summary;                           // "2d"
  ttc::Refusal (*supports)(const VariantQuery&) = nullptr;  // a limit; nullptr: everything the record supports
  // Why a call that it can take is better served by one of the others; nullptr: never.
  ttc::Refusal (*out_of_place)(const VariantQuery&) = nullptr;
  // How it shares the work among the cores; nullptr: the work's pieces one by one to each in turn.
  CoreSplit (*split)(const VariantQuery&) = nullptr;
  void (*more)(const VariantQuery&, Work&) = nullptr;  // what it does beyond the record's work
};

struct OpRecord {
  std::string_view name;     // "tt.softmax"
  std::string_view summary;  // one sentence
  std::string_view schema;   // "(Tensor x, int dim) -> Tensor"
  std::vector<Lowering> lowers = {};
  std::vector<Operand> operands = {};  // tensor operands that neither this nor `packed` names are activations
  std::vector<Packed> packed = {};
  // Specs of the results. Throws ttc::Error on arguments that can never be right.
  std::vector<TensorSpec> (*infer)(const OpCall&) = nullptr;
  // Limits of the kernels for a concrete call; nullptr: none.
  ttc::Refusal (*supports)(const OpCall&) = nullptr;
  Kernel (*prepare)(const OpCall&, const PrepareContext&) = nullptr;
  // The same in ATen on host values (packed weights arrive unpacked as float32 in their spec's shape), in schema order.
  std::vector<RtValue> (*reference)(Reference&, const OpCall&, std::span<const RtValue> args) = nullptr;
  Work (*work)(const OpCall&) = nullptr;  // of one execution, on whatever chip
  Tolerance tolerance = {};
  std::vector<OpCase> cases = {};
  // Empty: one kernel, called "device". `describe` fills in the sizes that the variants ask for.
  std::vector<KernelVariant> variants = {};
  void (*describe)(const OpCall&, VariantQuery&) = nullptr;
  // Sums many products: worth a transfer by itself, and no place where one wrong operand bit shows.
  bool multiplies = false;
  // Layers of a model that `replace` looks for, family by family: "linear", "norm", "attention". "" for what `place`
  // decides on.
  std::string_view family = {};
  // Reads an angle of any size: what computes it stays in float32, as its last bits decide the result.
  bool angle = false;
  Role role = Role::none;
  std::vector<Words> words = {};
  // Why `prepare` gives no kernel in exact numerics, for any call or for some; "" where it always does.
  std::string_view no_exact_kernel = {};
  // Where NaN, infinities and denormals give other results than in LibTorch, and what the card does; "" where alike.
  std::string_view special_values = {};
  // Writes a call in TT-NN's Python, or says why TT-NN cannot express it; nullptr: TT-NN has no such function.
  ttc::Refusal (*emit)(PythonCall& to) = nullptr;
};

// ATen operators that no record lowers, or not in every form: passes write them out in others, or they stay on the
// host.
struct OpFamily {
  // Without namespace and overload, separated by blanks; one that ends in '*' stands for all that begin so.
  std::string_view names;
  std::string_view reason = {};  // why there is no kernel
  Flops flops = nullptr;
};

const OpRecord* find_op(std::string_view name);              // nullptr where there is none
std::span<const OpRecord* const> all_ops();                  // sorted by name
const ttc::ir::OpSchema& schema_of(const OpRecord& record);  // of one that is registered
Role role_of(std::string_view name);                         // none where there is no such op
const OpRecord& op_for(Role role);                           // aborts where no op has it
// Every record that lowers this ATen op, in registration-independent (sorted) order.
std::vector<std::pair<const OpRecord*, const Lowering*>> lowerings_of(std::string_view aten);
// Aborts on a duplicate name. Registers the op's schema with ir::register_schema too.
void register_op(const OpRecord& record);
// Aborts where another family has one of the names.
void register_family(const OpFamily& family);
std::vector<const OpFamily*> all_families();
// Of "aten.nonzero.default": the reason of its family. "" for operators that nobody thought of.
std::string_view host_reason(std::string_view aten);
// Of a canonical ATen node, by its lowering or family; 0 for operators that multiply no matrices.
double flops_of(const ttc::ir::Node& node, const ttc::ir::SymBinding& shapes);
// The device time of a call by one of its record's variants (nullptr: by the record's work alone, shared evenly).
Time device_time(const OpCall& call, const ArchProfile& profile, const KernelVariant* variant = nullptr,
                 const VariantQuery& sizes = {});
// Calls f for every record, those that are registered later included.
void watch_ops(void (*f)(const OpRecord&));

}  // namespace ttrt

#define TTRT_REGISTER_FAMILY(family)                                        \
  namespace {                                                               \
  const bool registered_##family = (::ttrt::register_family(family), true); \
  }
#define TTRT_REGISTER_OP(record)                                        \
  namespace {                                                           \
  const bool registered_##record = (::ttrt::register_op(record), true); \
  }
