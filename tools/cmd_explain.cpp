// ttc explain OP: which kernel dispatch would choose for a call, and every step that leads there: the op's own limits,
// the table's slot and what filled it, each kernel's checks, the rules of a configuration, and LibTorch's key set
// behind all.
#include <algorithm>
#include <charconv>
#include <iostream>

#include "dispatch/last_resort.h"
#include "dispatch/table.h"
#include "ir/op_name.h"
#include "json_out.h"
#include "executor/kernel_choice.h"
#include "ops/bind.h"
#include "run_flags.h"
#include "support/error.h"
#include "torch/cpu_op.h"
#include "torch_library/torch_last_resort.h"

namespace ttc {
namespace {

struct Flags {
  std::string op, dtype = "bfloat16", weight_dtype, numerics = "fast", arch = "n150";
  std::vector<std::string> shapes, args;
  DispatchFlags dispatch;
} flags;

void options(FlagSet& app) {
  app.add_option("op", flags.op, "A device op (tt.matmul) or an ATen operator (aten.matmul.default)").required();
  app.add_option("--dtype", flags.dtype, "Format of the tensors: bfloat16, float32, bfloat8_b, ...");
  app.add_option("--weight-dtype", flags.weight_dtype, "Format of the second tensor");
  app.add_option("--shape", flags.shapes, "Shape of the next tensor, as 8x128x64; or several, as 32x64,64x128");
  app.add_option("--arg", flags.args, "A literal argument, as dim=-1");
  app.add_option("--config", flags.dispatch.config, "The same as --dispatch-config");
  add_dispatch_flags(app, flags.dispatch);
  app.add_option("--numerics", flags.numerics, "Fast, or as the hardware rounds").one_of({"fast", "exact"});
  add_arch_flag(app, flags.arch, "n150 where none is given");
}

// ---- the call ------------------------------------------------------------------------------------------------------

// Of several that lower the operator the one of its own name, else one that packs no operand: the tensors of this call
// are computed.
template <typename Lowerings>
const ttrt::OpRecord& served_by(const std::string& aten, const Lowerings& found) {
  const std::size_t begin = aten.find('.') + 1;  // "aten.bmm.default", "library.op.default"
  const std::string own = "tt." + aten.substr(begin, aten.find('.', begin) - begin);
  for (const auto& [record, lowering] : found)
    if (record->name == own) return *record;
  for (const auto& [record, lowering] : found)
    if (record->packed.empty()) return *record;
  return *found.front().first;
}

const ttrt::OpRecord& record_of(const std::string& op, std::string& aten) {
  const std::string name = ir::ir_op_name(op);
  if (const ttrt::OpRecord* record = ttrt::find_op(name)) {
    if (!record->lowers.empty()) aten = record->lowers.front().aten;
    return *record;
  }
  for (const std::string& spelling : {name, name + ".default", "aten." + name + ".default", "aten." + name}) {
    const auto found = ttrt::lowerings_of(spelling);
    if (found.empty()) continue;
    aten = spelling;
    return served_by(spelling, found);
  }
  std::vector<std::string> names;
  for (const ttrt::OpRecord* record : ttrt::all_ops()) names.emplace_back(record->name);
  std::string close = nearest(op, names.data(), names.size());
  if (close.empty()) close = nearest("tt." + op, names.data(), names.size());
  throw usage_error("no device op is called '" + op + "'",
                    close.empty() ? "ttc ops lists them" : "did you mean '" + close + "'?");
}

ttrt::DataType format_of(const std::string& name) {
  if (const auto format = ttrt::data_type_from_string(name)) return *format;
  if (const auto dtype = dtype_from_string(name)) {
    if (const auto format = ttrt::data_type_from_string(torch_name(*dtype))) return *format;
    if (*dtype == DType::f16) return ttrt::DataType::bfloat16;
  }
  std::vector<std::string> names;
  std::string listed;
  for (const ttrt::DataTypeInfo& type : ttrt::data_types) {
    names.emplace_back(type.name);
    listed += (listed.empty() ? "" : ", ") + names.back();
  }
  const std::string close = nearest(name, names.data(), names.size());
  throw usage_error("no device format is called '" + name + "'",
                    close.empty() ? "there are " + listed : "did you mean '" + close + "'?");
}

std::vector<ttrt::Shape> shapes() {
  std::vector<ttrt::Shape> out;
  for (const std::string& flag : flags.shapes)
    for (std::size_t at = 0; at <= flag.size();) {
      const std::size_t comma = std::min(flag.find(',', at), flag.size());
      ttrt::Shape shape;
      for (std::size_t i = at; i <= comma;) {
        const std::size_t end = std::min(flag.find('x', i), comma);
        std::int64_t n = 0;
        const auto [rest, error] = std::from_chars(flag.data() + i, flag.data() + end, n);
        if (error != std::errc() || rest != flag.data() + end || n < 0 || n > (std::int64_t{1} << 40))
          throw usage_error("--shape takes sizes like 8x128, got '" + flag + "'");
        shape.push_back(n);
        i = end + 1;
      }
      out.push_back(std::move(shape));
      at = comma + 1;
    }
  return out;
}

// None, true, 3, 0.5, [1,2] or a text.
ttrt::RtValue literal_of(const std::string& text) {
  if (text == "None" || text == "none") return {};
  if (text == "true" || text == "True") return true;
  if (text == "false" || text == "False") return false;
  const auto json = nlohmann::json::parse(text, nullptr, false);
  const auto number = [](const nlohmann::json& value) -> ttrt::RtValue {
    if (value.is_number_integer()) return value.get<std::int64_t>();
    return value.get<double>();
  };
  if (json.is_number()) return number(json);
  if (!json.is_array() || !std::all_of(json.begin(), json.end(), [](const auto& v) { return v.is_number(); }))
    return text;
  ttrt::RtValue::List list;
  for (const auto& item : json) list.push_back(number(item));
  return list;
}

const std::string* given(const std::string& name) {
  static std::string value;
  for (const std::string& arg : flags.args)
    if (arg.starts_with(name + "=")) return &(value = arg.substr(name.size() + 1));
  return nullptr;
}

void check_args(const ir::OpSchema& schema, const ttrt::OpRecord& record) {
  std::vector<std::string> names;
  for (const ir::SchemaArg& arg : schema.args) names.push_back(arg.name);
  std::set<std::string> seen;
  for (const std::string& text : flags.args) {
    const std::string name = split_assignment(text, "--arg").first;
    const std::string close = nearest(name, names.data(), names.size());
    if (std::ranges::find(names, name) == names.end())
      throw usage_error(
          "--arg " + text + ": there is no '" + name + "' in " + std::string(record.name) + std::string(record.schema),
          close.empty() ? "" : "did you mean '" + close + "'?");
    if (!seen.insert(name).second) throw usage_error("--arg gives '" + name + "' twice");
  }
}

// Tensors in order from --shape, literals from --arg or the schema.
ttrt::OpCall make_call(const ttrt::OpRecord& record) {
  const ir::OpSchema& schema = ttrt::schema_of(record);
  const std::vector<ttrt::Shape> sizes = shapes();
  if (sizes.empty())
    throw usage_error("--shape gives the shapes of the tensors of " + std::string(record.name) +
                      std::string(record.schema));
  check_args(schema, record);
  std::vector<ttrt::RtValue> args;
  std::vector<ttrt::TensorSpec> specs;
  const auto tensor = [&]() -> ttrt::RtValue {
    const std::string& dtype = specs.size() == 1 && !flags.weight_dtype.empty() ? flags.weight_dtype : flags.dtype;
    specs.push_back(
        {.logical = sizes[specs.size()], .dtype = format_of(dtype), .layout = ttrt::Layout::tile, .memory = {}});
    return ttrt::DeviceTensor{.spec = specs.back(), .buffer = nullptr};
  };
  for (const ir::SchemaArg& arg : schema.args) {
    if (const std::string* text = given(arg.name)) {
      args.push_back(literal_of(*text));
    } else if (arg.type == "Tensor" && specs.size() >= sizes.size()) {
      throw usage_error("--shape of '" + arg.name + "' is missing: " + std::string(record.name) +
                        std::string(record.schema));
    } else if (arg.type == "Tensor" || (arg.type == "Tensor?" && specs.size() < sizes.size())) {
      args.push_back(tensor());
    } else if (arg.type.starts_with("Tensor[")) {
      ttrt::RtValue::List list;
      while (specs.size() < sizes.size()) list.push_back(tensor());
      args.emplace_back(std::move(list));
    } else if (arg.name == "weight_shape" && specs.size() > 1) {
      args.emplace_back(ttrt::RtValue::List(specs[1].logical.begin(), specs[1].logical.end()));
    } else if (arg.name == "weight_format" && specs.size() > 1) {
      args.emplace_back(std::string(to_string(specs[1].dtype)));
    } else if (!arg.default_value && arg.name == "dim") {
      args.emplace_back(std::int64_t{-1});
    } else if (!arg.default_value && (arg.type == "int" || arg.type == "SymInt")) {
      const std::int64_t likely = sizes[0].empty() ? 1 : sizes[0].back();
      throw usage_error(std::string(record.name) + std::string(record.schema) + " needs " + arg.name,
                        "as in --arg " + arg.name + "=" + std::to_string(likely));
    } else {
      args.push_back(arg.default_value ? ttrt::literal_value(*arg.default_value) : ttrt::RtValue());
    }
  }
  if (specs.size() < sizes.size())
    throw usage_error(std::to_string(sizes.size()) + " shapes, but " + std::string(record.name) + " takes " +
                      std::to_string(specs.size()) + " tensors");
  auto bound = ttrt::bind_call(record, args);
  if (const auto* reason = std::get_if<Reason>(&bound)) throw usage_error(reason->detail);
  return std::get<ttrt::BoundCall>(std::move(bound)).call;
}

// ---- the answer ----------------------------------------------------------------------------------------------------

std::string shape_text(const ttrt::Shape& shape) {
  std::string out;
  for (const std::int64_t n : shape) out += (out.empty() ? "" : "x") + std::to_string(n);
  return out.empty() ? "scalar" : out;
}

// The slot of the same call in LibTorch.
ttrt::dispatch::TableKey host_key(const ttrt::OpCall& call) {
  const ttrt::DataType format = call.tensors.at(0).dtype;
  return {.dtype = ttrt::torch_dtype(format), .quantized = ttrt::is_block_format(format)};
}

OrderedJson explain_record(const ttrt::OpRecord& record, const ttrt::OpCall& call) {
  OrderedJson out{{"name", record.name}, {"summary", record.summary}, {"operands", OrderedJson::array()}};
  for (const ttrt::TensorSpec& spec : call.tensors)
    out["operands"].push_back(std::string(to_string(spec.dtype)) + "[" + shape_text(spec.logical) + "]");
  OrderedJson results = OrderedJson::array();
  for (const ttrt::TensorSpec& spec : record.infer(call))
    results.push_back(std::string(to_string(spec.dtype)) + "[" + shape_text(spec.logical) + "]");
  out["results"] = results;
  const Refusal refused = record.supports != nullptr ? record.supports(call) : std::nullopt;
  out["refusal"] = refused ? OrderedJson(refused->text()) : OrderedJson(nullptr);
  if (flags.numerics == "exact" && !refused && !record.no_exact_kernel.empty() &&
      !record.prepare(call, {.numerics = ttrt::Numerics::exact, .constants = {}}))
    out["no_exact_kernel"] = record.no_exact_kernel;
  return out;
}

// The kernel in the end: the configuration's choice where it can serve the call, else selection's, else the host.
OrderedJson choose(const OrderedJson& answer, const ttrt::dispatch::SelectionContext& context) {
  if (!answer["record"]["refusal"].is_null())
    return {{"kernel", std::string(context.operation.text()) + ".host"},
            {"by", "record"},
            {"why", "the op's own limits refuse the call: it runs in LibTorch"}};
  const auto& dispatch = answer["dispatcher"];
  const bool fixed = dispatch.contains("static");
  if (fixed || (dispatch.contains("config") && !dispatch["config"]["selected_kernel"].is_null())) {
    const std::string kernel = fixed ? dispatch["static"] : dispatch["config"]["selected_kernel"];
    const auto* spec = ttrt::dispatch::global_kernels().find(ttrt::dispatch::Symbol(kernel));
    if (spec != nullptr && spec->accepts(context))
      return {{"kernel", kernel},
              {"by", fixed ? "static" : "config"},
              {"why", fixed ? OrderedJson("the static map") : dispatch["config"]["reason"]}};
    if (spec != nullptr)
      return {{"kernel", dispatch["selection"]["selected_kernel"]},
              {"by", "selection"},
              {"why", std::string(fixed ? "the static map's " : "the configuration's ") + kernel +
                          " cannot serve the call: " + ttrt::dispatch::join(spec->check(context))}};
  }
  return {{"kernel", dispatch["selection"]["selected_kernel"]},
          {"by", "selection"},
          {"why", "the best of what can serve the call"}};
}

void print_config(const OrderedJson& config) {
  std::cout << "4. configuration " << config["config_hash"].get<std::string>() << ": "
            << config["reason"].get<std::string>() << '\n';
  for (const auto& item : config["selection_path"]) {
    std::cout << "   ";
    if (item.contains("line")) std::cout << "line " << item["line"].get<int>() << ": ";
    std::cout << item["step"].get<std::string>();
    if (item.contains("operation_pattern")) std::cout << ' ' << item["operation_pattern"].get<std::string>();
    if (item.contains("pattern")) std::cout << ' ' << item["pattern"].get<std::string>();
    std::cout
        << " -> " << item["kernel"].get<std::string>() << ": "
        << (item.contains("error") ? item["error"] : item.value("result", OrderedJson("selected"))).get<std::string>()
        << '\n';
    if (item.contains("failed_conditions"))
      for (const auto& failed : item["failed_conditions"])
        std::cout << "      " << failed["field"].get<std::string>() << ' ' << failed["operator"].get<std::string>()
                  << ' ' << failed["expected"].dump() << ", is " << failed["actual"].dump() << '\n';
  }
}

void print_text(const OrderedJson& answer) {
  const auto& record = answer["record"];
  std::cout << "1. " << record["name"].get<std::string>() << ": " << record["summary"].get<std::string>() << '\n';
  for (const auto& operand : record["operands"]) std::cout << "   operand " << operand.get<std::string>() << '\n';
  for (const auto& result : record["results"]) std::cout << "   result  " << result.get<std::string>() << '\n';
  std::cout << "   "
            << (record["refusal"].is_null() ? "its limits allow the call"
                                            : "refused: " + record["refusal"].get<std::string>())
            << '\n';
  if (record.contains("no_exact_kernel"))
    std::cout << "   no kernel for exact numerics: " << record["no_exact_kernel"].get<std::string>() << '\n';
  const auto& table = answer["table"];
  std::cout << "2. table slot " << table["key"].get<std::string>() << ": "
            << (table["kernel"].is_null() ? "nothing" : table["kernel"].get<std::string>()) << ", filled by step '"
            << table["step"].get<std::string>() << "'; in order:";
  for (const auto& kernel : table["kernels"]) std::cout << ' ' << kernel.get<std::string>();
  std::cout << '\n';
  const auto& dispatch = answer["dispatcher"];
  std::cout << "3. dispatcher " << dispatch["dispatcher"].get<std::string>() << ", mode "
            << dispatch["mode"].get<std::string>() << '\n';
  for (const auto& candidate : dispatch["selection"]["candidates"]) {
    std::cout << "   " << candidate["kernel"].get<std::string>() << ": " << candidate["result"].get<std::string>()
              << '\n';
    for (const auto& reason : candidate["reasons"]) std::cout << "      " << reason.get<std::string>() << '\n';
  }
  if (dispatch.contains("config")) print_config(dispatch["config"]);
  const auto& chosen = answer["chosen"];
  std::cout << "kernel: " << (chosen["kernel"].is_null() ? "none" : chosen["kernel"].get<std::string>()) << " ("
            << chosen["why"].get<std::string>() << ")\n";
  const auto& torch = answer["torch"];
  if (torch.is_null() || !torch.contains("keys")) return;
  std::cout << "last resort: LibTorch's " << answer["aten"].get<std::string>() << ", keys";
  for (const auto& key : torch["keys"])
    std::cout << ' ' << key["key"].get<std::string>() << " (" << key["kernel"].get<std::string>() << ')';
  std::cout << '\n';
}

int run(const Globals& globals) {
  ttrt::install_torch_schemas();
  ttrt::install_torch_last_resort();
  std::string aten;
  const ttrt::OpRecord& record = record_of(flags.op, aten);
  if (was_given("--config") && was_given("--dispatch-config"))
    throw usage_error("--config and --dispatch-config are one flag", "give the file once");
  ttrt::KernelChooser chooser(kernel_choice(globals, flags.dispatch));
  const ttrt::OpCall call = make_call(record);
  if (call.tensors.size() < 2) warn_of_idle(globals, {"--weight-dtype"}, "there is no second tensor");
  const ttrt::ArchProfile profile = ttrt::profile_from_argument(flags.arch);
  OrderedJson answer{
      {"op", record.name}, {"aten", aten}, {"arch", profile.name}, {"record", explain_record(record, call)}};
  const bool second = call.tensors.size() > 1 && !record.packed.empty();
  const auto context = ttrt::dispatch::context_of_call(
      call, {.profile = profile,
             .numerics = flags.numerics == "exact" ? ttrt::Numerics::exact : ttrt::Numerics::fast,
             .constant_b = second});
  answer["dispatcher"] = chooser.explain(context);
  answer["table"] = answer["dispatcher"]["selection"]["table"];
  answer["dispatcher"]["selection"].erase("table");
  answer["chosen"] = choose(answer, context);
  answer["torch"] = aten.empty() ? OrderedJson() : ttrt::dispatch::last_resort_keys(aten, host_key(call));
  globals.json ? print_json(answer) : print_text(answer);
  return 0;
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_COMMAND({"explain", "Which kernel dispatch would choose, and every step that leads there", ttc::options,
                      ttc::run, "ttc explain tt.linear --shape 32x64,64x64"})
