// Function names of the op library and their default configurations, as records state them, and calls that take them.
#include "ops/library.h"

#include <cctype>
#include <map>
#include <ranges>
#include <string>

#include "ops/literals.h"
#include "support/error.h"

namespace ttrt::ops {
namespace {

struct Functions {
  std::map<std::string, std::string_view, std::less<>> records;  // by function
  std::map<std::string_view, LibraryOp> configurations;          // by record
  std::map<std::string_view, std::string_view> programs;         // by record
};

// Leaked: ops register while other libraries' variables are made.
Functions& functions() {
  static auto* all = new Functions;
  return *all;
}

const LibraryOp* configured(std::string_view record) {
  const auto at = functions().configurations.find(record);
  return at == functions().configurations.end() ? nullptr : &at->second;
}

ComputeConfig adapted(const LibraryOp& op, ComputeConfig config, DataType x, Arch arch) {
  if (arch == Arch::blackhole && op.choose == nullptr && config.math_fidelity == MathFidelity::HiFi3)
    config.math_fidelity = MathFidelity::HiFi4;
  if (x != DataType::float32) return config;
  config.fp32_dest_acc_en = true;
  if (op.accurate_float32) config.math_approx_mode = false;
  return config;
}

OpArg literal_of(const LibraryOp& op, const ComputeConfig& config, std::string_view name) {
  if (name == "fidelity") return std::string(to_string(config.math_fidelity));
  if (name == "fp32_acc") return config.fp32_dest_acc_en;
  if (name == "approx") return config.math_approx_mode;
  return name == "packer_l1_acc" ? config.packer_l1_acc : op.approx_exp && config.math_approx_mode;
}

// Programs that serve several functions, and whose records say nothing else to the library.
constexpr std::pair<std::string_view, std::string_view> shared_programs[] = {
    {"ReshapeView", "tt.reshape tt.squeeze tt.unsqueeze tt.flatten tt.unflatten"},
    {"Slice", "tt.slice tt.select tt.split"},
    {"SliceWrite", "tt.slice_scatter"},
    {"Concat", "tt.concat tt.stack"},
    {"Repeat", "tt.expand tt.repeat"},
    {"Typecast", "tt.typecast tt.convert"},
    {"Embeddings", "tt.embedding"},
    {"Ternary", "tt.where"},
    {"NlpCreateHeads", "tt.split_heads tt.split_query_key_value_and_heads"},
    {"NLPConcatHeads", "tt.concat_heads"},
    {"ScaledDotProductAttention", "tt.attention"},
    {"LayerNorm", "tt.layer_norm tt.rms_norm"},
    {"Softmax", "tt.softmax tt.log_softmax"},
    {"Reduce", "tt.sum tt.mean tt.amax tt.amin tt.max tt.min tt.prod tt.var tt.vector_norm"},
    {"ArgMax", "tt.argmax tt.argmin"},
    {"TopK", "tt.topk"},
    {"Accumulation", "tt.cumsum tt.cumprod"},
    {"Pool2D",
     "tt.max_pool2d tt.max_pool2d_with_indices tt.avg_pool2d tt.adaptive_avg_pool2d tt.adaptive_max_pool2d "
     "tt.adaptive_max_pool2d_with_indices"},
    {"Conv2d", "tt.conv2d tt.conv_transpose2d"},
    {"UpSample", "tt.upsample"},
};

}  // namespace

void register_library_op(const LibraryOp& op) {
  for (const auto name : std::views::split(op.names, ' ')) {
    const bool added = functions().records.emplace(std::string(name.begin(), name.end()), op.record).second;
    TTC_CHECK(added, "a function of the op library is one record: " + std::string(name.begin(), name.end()));
  }
  if (!op.program.empty()) functions().programs.insert_or_assign(op.record, op.program);
  if (op.config || op.choose != nullptr) functions().configurations.insert_or_assign(op.record, op);
}

const OpRecord* find_library_op(std::string_view function) {
  const auto at = functions().records.find(function);
  if (at != functions().records.end()) return find_op(at->second);
  return find_op("tt." + std::string(function));
}

std::string device_program(std::string_view record) {
  const auto at = functions().programs.find(record);
  if (at != functions().programs.end()) return std::string(at->second);
  for (const auto& [program, records] : shared_programs)
    for (const auto name : std::views::split(records, ' '))
      if (std::string_view(name.begin(), name.end()) == record) return std::string(program);
  std::string out;
  bool capital = true;
  for (const char c : record.substr(record.starts_with("tt.") ? 3 : 0)) {
    if (c != '_') out += capital ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    capital = c == '_';
  }
  return out;
}

std::optional<ComputeConfig> library_config(std::string_view record, DataType x, Arch arch) {
  const LibraryOp* op = configured(record);
  if (op == nullptr || !op->config) return std::nullopt;
  return adapted(*op, *op->config, x, arch);
}

// LoFi where both operands are block formats; a 32-bit Dest where the operands or the result are float32.
ComputeConfig library_matmul_config(DataType a, DataType b, DataType out) {
  const bool wide = a == DataType::float32 && b == DataType::float32;
  if (wide) return {.math_fidelity = MathFidelity::HiFi3, .fp32_dest_acc_en = true, .packer_l1_acc = false};
  return {.math_fidelity = is_block_format(a) && is_block_format(b) ? MathFidelity::LoFi : MathFidelity::HiFi2,
          .fp32_dest_acc_en = out == DataType::float32,
          .packer_l1_acc = true};
}

void ask_configuration(const OpRecord& record, const LowerOptions& options, std::vector<ttc::ir::Arg>& args) {
  const ttc::ir::OpSchema& schema = schema_of(record);
  const std::size_t given = args.size();
  for (const std::string_view name : configuration_literals) {
    const int index = schema.index_of(name);
    if (index < 0) continue;
    const auto at = static_cast<std::size_t>(index);
    for (std::size_t i = args.size(); i <= at; ++i)
      args.push_back(schema.args[i].default_value.value_or(ttc::ir::Arg()));
    ttc::ir::Arg& arg = args[at];
    if (at >= given) arg = {};  // left to the library
    if (name == "fidelity" && record.multiplies && options.fidelity) arg = std::string(to_string(*options.fidelity));
    if (name == "fp32_acc" && options.fp32_acc) arg = *options.fp32_acc;
  }
}

LowerResult lower_node(const OpRecord& record, const Lowering& lowering, const LowerContext& context) {
  LowerResult result = lowering.lower(context);
  if (auto* lowered = std::get_if<Lowered>(&result)) ask_configuration(record, context.options, lowered->args);
  return result;
}

void resolve_configuration(OpCall& call, Arch arch) {
  const ttc::ir::OpSchema& schema = schema_of(*call.op);
  std::optional<const LibraryOp*> op;  // once something is left to the library
  std::optional<ComputeConfig> config;
  for (const std::string_view name : configuration_literals) {
    const int index = schema.index_of(name);
    const auto at = static_cast<std::size_t>(index);
    if (index < 0 || !std::holds_alternative<std::monostate>(call.args[at])) continue;
    if (!op) op = configured(call.op->name);
    if (*op == nullptr) {
      call.args[at] = *op_literal(literal_value(*schema.args[at].default_value));
      continue;
    }
    if (!config)
      config = adapted(**op, (*op)->choose != nullptr ? (*op)->choose(call) : *(*op)->config,
                       call.tensors.empty() ? DataType::bfloat16 : call.tensors[0].dtype, arch);
    call.args[at] = literal_of(**op, *config, name);
  }
}

void write_configuration(const OpCall& call, std::vector<ttc::ir::Arg>& args) {
  const ttc::ir::OpSchema& schema = schema_of(*call.op);
  for (const std::string_view name : configuration_literals)
    if (const int index = schema.index_of(name); index >= 0 && static_cast<std::size_t>(index) < args.size())
      args[static_cast<std::size_t>(index)] = literal_arg(literal_value(call.args[static_cast<std::size_t>(index)]));
}

}  // namespace ttrt::ops
