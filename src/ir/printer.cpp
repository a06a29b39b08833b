// The text form of models, graphs and nodes; parser.cpp reads it back.
#include <algorithm>
#include <map>
#include <set>

#include "ir/arg_text.h"
#include "ir/model.h"
#include "ir/text.h"
#include "ir/whole_text.h"

namespace ttc::ir {
namespace {

using text::float_text;
using text::quoted;
using text::word_or_quoted;

std::string int_list(const std::vector<std::int64_t>& values) {
  std::string out;
  for (const std::int64_t v : values) out += (out.empty() ? "" : ", ") + std::to_string(v);
  return out;
}

std::string value_text(const Value* value) {
  if (value == nullptr) return "%\"?\"";
  return (is_weight(value) ? "$" : "%") + word_or_quoted(value->name);
}

std::string type_text(const Type& type) {
  std::string out = type.str();
  if (!type.is_tensor() || type.has_contiguous_strides()) return out;
  std::string strides;
  for (const SymExpr& stride : type.strides) strides += (strides.empty() ? "" : ", ") + stride.str();
  return out + " strides(" + strides + ")";
}

std::string memory_format_text(int code) {
  static constexpr const char* names[] = {"", "contiguous_format", "channels_last", "channels_last_3d",
                                          "preserve_format"};
  return code >= 1 && code <= 4 ? names[code] : "memory_format(" + std::to_string(code) + ")";
}

struct ArgText {
  std::string operator()(std::monostate) const { return "none"; }
  std::string operator()(const Value* value) const { return value_text(value); }
  std::string operator()(std::int64_t i) const { return std::to_string(i); }
  std::string operator()(double d) const { return float_text(d); }
  std::string operator()(bool b) const { return b ? "true" : "false"; }
  std::string operator()(const std::string& s) const { return quoted(s); }
  std::string operator()(DType dtype) const { return std::string(to_string(dtype)); }
  std::string operator()(MemoryFormatArg f) const { return memory_format_text(f.code); }
  std::string operator()(LayoutArg l) const {
    return l.code == 7 ? "strided" : "layout(" + std::to_string(l.code) + ")";
  }
  std::string operator()(const DeviceArg& d) const {
    return "device(" + quoted(d.type) + (d.index ? ", " + std::to_string(*d.index) : "") + ")";
  }
  std::string operator()(std::complex<double> c) const {
    return "complex(" + float_text(c.real()) + ", " + float_text(c.imag()) + ")";
  }
  std::string operator()(RegionArg r) const { return "region(" + std::to_string(r.index) + ")"; }
  std::string operator()(const Arg::List& list) const {
    std::string out;
    for (const Arg& item : list) out += (out.empty() ? "" : ", ") + std::visit(*this, item.v);
    return "[" + out + "]";
  }
};

}  // namespace

std::string arg_text(const Arg& arg) { return std::visit(ArgText{}, arg.v); }

namespace {

std::string args_text(const Node& node) {
  const OpSchema* schema = node.schema();
  const bool named = schema != nullptr && !schema->varargs && node.args().size() <= schema->args.size();
  bool positional = true;  // so far nothing was left out or named
  std::string out;
  for (std::size_t i = 0; i < node.args().size(); ++i) {
    const Arg& arg = node.args()[i];
    std::string name;
    if (named) {
      const SchemaArg& expected = schema->args[i];
      const bool literal = !arg.has_values();
      if (literal && expected.default_value && arg == *expected.default_value) {
        positional = false;
        continue;
      }
      if (literal) positional = false;
      if (!positional) name = expected.name;
    } else if (i < node.arg_names.size()) {
      name = node.arg_names[i];
    }
    if (!out.empty()) out += ", ";
    if (!name.empty()) out += (text::is_identifier(name) ? name : quoted(name)) + "=";
    out += arg_text(arg);
  }
  return out;
}

std::string module_text(const std::string& path, const std::string& klass) {
  return word_or_quoted(path) + (klass.empty() ? "" : " : " + word_or_quoted(klass));
}

// `whole`: with the modules that it is in, from the root inwards.
std::string provenance_text(const Provenance& p, bool whole) {
  std::string out;
  if (!p.module_path.empty() || !p.module_class.empty() || (whole && !p.stack.empty()))
    out += "  @" + module_text(p.module_path, p.module_class);
  for (std::size_t i = 0; whole && i + 1 < p.stack.size(); ++i)
    out += (i == 0 ? " in " : ", ") + module_text(p.stack[i].first, p.stack[i].second);
  if (p.source.empty()) return out;
  const bool plain =
      std::all_of(p.source.begin(), p.source.end(), text::is_source_char) && p.source.find("//") == std::string::npos;
  return out + "  at " + (plain ? p.source : quoted(p.source));
}

class Printer {
 public:
  explicit Printer(const Model* model, const std::vector<std::string>* whole = nullptr) : model_(model), whole_(whole) {
    if (model_ == nullptr) return;
    std::map<const Storage*, int> uses;
    for (const auto& [name, weight] : model_->weights) ++uses[weight.storage.get()];
    for (const auto& [name, weight] : model_->weights)
      if (uses[weight.storage.get()] > 1) shared_.emplace(weight.storage.get(), static_cast<int>(shared_.size()));
    for (const auto& [name, weight] : model_->weights)
      if (weight.numel() > text::printed_elements && whole_ == nullptr) too_big_.insert(weight.storage.get());
  }

  std::string header() const {
    std::string body;
    const ModelInfo& info = model_->info;
    const auto bound = [](const std::optional<std::int64_t>& v, const char* none) {
      return v ? std::to_string(*v) : none;
    };
    if (!info.torch_version.empty()) body += "  torch " + quoted(info.torch_version) + "\n";
    if (!info.dialect.empty()) body += "  dialect " + quoted(info.dialect) + "\n";
    for (const auto& [name, range] : model_->ranges)
      body += "  range " + word_or_quoted(name) + " in [" + bound(range.min, "-inf") + ", " + bound(range.max, "inf") +
              "]\n";
    for (const auto& [name, value] : info.hints)
      body += "  hint " + word_or_quoted(name) + " = " + std::to_string(value) + "\n";
    for (const std::string& guard : info.guards) body += "  guard " + quoted(guard) + "\n";
    for (const std::string& name : info.user_input_names) body += "  input_name " + quoted(name) + "\n";
    if (whole_ != nullptr)
      for (const std::string& name : *whole_)
        if (const auto file = model_->extra.find(name); file != model_->extra.end())
          body += "  extra " + quoted(name) + " " + quoted(file->second.str()) + "\n";
    return body.empty() ? "" : "model {\n" + body + "}\n";
  }

  std::string graph(const Graph& g, int indent) {
    std::string head = "graph " + word_or_quoted(g.name) + "(";
    std::vector<std::string> inputs;
    std::size_t length = head.size();
    for (const GraphInput& input : g.inputs()) {
      inputs.push_back(input_text(input, true));
      length += inputs.back().size();
    }
    const std::string separator = length > 100 ? ",\n" + std::string(static_cast<std::size_t>(indent) + 4, ' ') : ", ";
    if (length > 100) head += separator.substr(1);
    for (std::size_t i = 0; i < inputs.size(); ++i) head += (i > 0 ? separator : "") + inputs[i];
    return head + ") {\n" + body(g, indent + 2) + "}\n";
  }

  std::string node(const Node& n, int indent) {
    std::string out;
    for (const auto& result : n.results())
      out += (out.empty() ? "" : ", ") + value_text(result.get()) + ": " + type_text(result->type);
    if (!out.empty()) out += " = ";
    out += (text::is_identifier(n.op()) && n.op().find('.') != std::string::npos ? n.op() : quoted(n.op())) + "(" +
           args_text(n) + ")";
    for (const auto& region : n.regions()) out += " " + region_text(*region, indent);
    if (!n.place.empty()) out += " place=" + quoted(n.place);
    if (!n.origins.empty()) out += " origins=[" + int_list({n.origins.begin(), n.origins.end()}) + "]";
    return out + provenance_text(*n.provenance, whole_ != nullptr);
  }

 private:
  std::string body(const Graph& g, int indent) {
    const std::string pad(static_cast<std::size_t>(indent), ' ');
    std::string out;
    for (const auto& n : g.nodes()) out += pad + node(*n, indent) + "\n";
    std::string outputs;
    for (const GraphOutput& output : g.outputs()) outputs += (outputs.empty() ? " " : ", ") + output_text(output);
    return out + pad + (g.returns_single ? "return single" : "return") + outputs + "\n";
  }

  std::string region_text(const Graph& g, int indent) {
    std::string head = "{";
    if (!g.name.empty() || !g.inputs().empty()) {
      std::string inputs;
      for (const GraphInput& input : g.inputs()) inputs += (inputs.empty() ? "" : ", ") + input_text(input, false);
      head += " ^" + (g.name.empty() ? "" : word_or_quoted(g.name)) + "(" + inputs + "):";
    }
    return head + "\n" + body(g, indent + 2) + std::string(static_cast<std::size_t>(indent), ' ') + "}";
  }

  std::string output_text(const GraphOutput& output) {
    const std::string target = quoted(output.target) + " = " + arg_text(output.arg);
    switch (output.kind) {
      case OutputKind::user:
        return arg_text(output.arg);
      case OutputKind::buffer_mutation:
        return "mutation buffer " + target;
      case OutputKind::user_input_mutation:
        return "mutation input " + target;
      case OutputKind::parameter_mutation:
        return "mutation parameter " + target;
      case OutputKind::token:
        return "token " + arg_text(output.arg);
      case OutputKind::other:
        return "other " + target;
    }
    return {};
  }

  std::string input_text(const GraphInput& input, bool outermost) {
    static constexpr const char* kinds[] = {"user", "parameter", "buffer", "constant", "custom_obj", "token"};
    std::string out = value_text(input.value.get()) + ": " + type_text(input.value->type);
    if (outermost || input.kind != InputKind::user) out += std::string(" ") + kinds[static_cast<int>(input.kind)];
    if (!input.target.empty()) out += " " + quoted(input.target);
    if (!input.persistent) out += " nonpersistent";
    if (const Weight* weight = model_ != nullptr ? model_->weight_of(input.value.get()) : nullptr)
      return out + weight_text(*weight);
    return input.literal ? out + " = " + arg_text(*input.literal) : out;
  }

  std::string weight_text(const Weight& weight) {
    std::string out = weight.requires_grad ? " grad" : "";
    if (!weight.storage) return out;
    const auto shared = shared_.find(weight.storage.get());
    const bool view = !weight.is_contiguous() || weight.storage_offset != 0 || weight.storage->bytes != weight.nbytes();
    if (shared != shared_.end() || view) {
      out += " storage(" + (shared != shared_.end() ? std::to_string(shared->second) : "new") + ", " +
             std::to_string(weight.storage->bytes) + ")";
      out += " strides(" + int_list(weight.strides) + ")";
      if (weight.storage_offset != 0) out += " offset(" + std::to_string(weight.storage_offset) + ")";
    }
    if (too_big_.contains(weight.storage.get()) || weight.numel() == 0 || weight.storage->absent() ||
        !weight.fits_storage())
      return out;
    const auto [owner, data] = weight.storage->load();
    return out + " = " + elements_text(weight, data + weight.storage_offset * size_of(weight.dtype));
  }

  static std::string elements_text(const Weight& weight, const std::byte* first) {
    const int size = size_of(weight.dtype);
    // Of many elements digits are shorter, and quick.
    const bool decimal = text::has_decimal_text(weight.dtype) && weight.numel() <= text::printed_elements;
    std::string out;
    std::vector<std::int64_t> index(weight.sizes.size(), 0);
    for (std::int64_t i = 0; i < weight.numel(); ++i) {
      std::int64_t offset = 0;
      for (std::size_t d = 0; d < index.size(); ++d) offset += index[d] * weight.strides[d];
      const std::byte* element = first + offset * size;
      if (decimal) {
        out += (out.empty() ? "" : ", ") + text::element_text(weight.dtype, element);
      } else {
        static const char* hex = "0123456789abcdef";
        for (int b = 0; b < size; ++b) {
          out += hex[std::to_integer<int>(element[b]) >> 4];
          out += hex[std::to_integer<int>(element[b]) & 15];
        }
      }
      for (std::size_t d = index.size(); d-- > 0;) {
        if (++index[d] < weight.sizes[d]) break;
        index[d] = 0;
      }
    }
    return decimal ? "[" + out + "]" : "bytes(\"" + out + "\")";
  }

  const Model* model_;
  const std::vector<std::string>* whole_;  // extra files of a whole text; nullptr: none is one
  std::set<const Storage*> too_big_;       // storages with a view of more elements than are printed
  std::map<const Storage*, int> shared_;   // storages with several views, numbered in order of the weights' names
};

}  // namespace

std::string print(const Model& model) {
  Printer printer(&model);
  return printer.header() + printer.graph(*model.graph, 0);
}

std::string print_whole(const Model& model, const std::vector<std::string>& extra) {
  Printer printer(&model, &extra);
  return printer.header() + printer.graph(*model.graph, 0);
}

std::string print(const Graph& graph) { return Printer(nullptr).graph(graph, 0); }
std::string print(const Node& node) { return Printer(nullptr).node(node, 0); }

}  // namespace ttc::ir
