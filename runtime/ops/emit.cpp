// Python's texts of values and calls.
#include "ops/emit.h"

#include <cctype>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <ranges>

#include "ir/op_schema.h"
#include "support/error.h"

namespace ttrt {

Python& Python::arg(std::string value) {
  args_.push_back(std::move(value));
  return *this;
}

Python& Python::key(std::string_view name, const std::string& value) {
  if (!value.empty()) args_.push_back(std::string(name) + "=" + value);
  return *this;
}

std::string Python::str() const {
  std::string out = function_ + "(";
  for (std::size_t i = 0; i < args_.size(); ++i) out += (i == 0 ? "" : ", ") + args_[i];
  return out + ")";
}

std::string python_bool(bool value) { return value ? "True" : "False"; }

std::string python_number(double value) {
  if (std::isnan(value)) return "float(\"nan\")";
  if (std::isinf(value)) return value > 0 ? "float(\"inf\")" : "float(\"-inf\")";
  return nlohmann::json(value).dump();  // the shortest text that reads back as the same number
}

std::string python_text(std::string_view text) { return nlohmann::json(text).dump(); }

std::string python_dtype(DataType format) { return "ttnn." + std::string(to_string(format)); }

std::string python_list(const std::vector<std::string>& items) {
  std::string out = "[";
  for (std::size_t i = 0; i < items.size(); ++i) out += (i == 0 ? "" : ", ") + items[i];
  return out + "]";
}

std::string python_product(const std::vector<std::string>& sizes) {
  std::int64_t number = 1;
  std::string symbols;
  for (const std::string& size : sizes) {
    if (size.find_first_not_of("0123456789") == std::string::npos)
      number *= std::stoll(size);
    else
      symbols += (symbols.empty() ? "" : " * ") + size;
  }
  if (symbols.empty()) return std::to_string(number);
  return number == 1 ? symbols : symbols + " * " + std::to_string(number);
}

std::string PythonCall::operand(std::string_view name) const {
  const int at = call.tensor_index(name);
  return at < 0 ? "" : scope_.tensor(static_cast<std::size_t>(at));
}

std::vector<std::string> PythonCall::operands(std::string_view name) const {
  std::vector<std::string> out;
  if (const auto* list = std::get_if<std::vector<TensorRef>>(&call.arg(name)))
    for (const TensorRef& one : *list) out.push_back(scope_.tensor(static_cast<std::size_t>(one.index)));
  return out;
}

std::string PythonCall::let(std::string_view stem, const Python& value) {
  std::string name = scope_.fresh(stem);
  statements.push_back({.targets = {name}, .call = value});
  return name;
}

std::string PythonCall::let_first(std::string_view stem, const std::string& others, const Python& value) {
  std::string name = scope_.fresh(stem);
  statements.push_back({.targets = {name, others}, .call = value});
  return name;
}

std::vector<std::string> PythonCall::let_all(const std::vector<std::string_view>& stems, const Python& value) {
  std::vector<std::string> made;
  for (const std::string_view stem : stems) made.push_back(scope_.fresh(stem));
  statements.push_back({.targets = made, .call = value});
  return made;
}

void PythonCall::result(const Python& value) {
  TTC_CHECK(!done_, "a call's results are written once");
  statements.push_back({.targets = {}, .call = value});
  done_ = true;
}

void PythonCall::result_is(const std::string& variable) {
  named_results.push_back(variable);
  done_ = true;
}

std::string PythonCall::memory_config(int result) const {
  const MemoryConfig& memory = results.at(static_cast<std::size_t>(result)).memory;
  return memory.buffer_type == BufferType::dram ? "ttnn.DRAM_MEMORY_CONFIG" : "ttnn.L1_MEMORY_CONFIG";
}

std::string PythonCall::compute_kernel_config() const {
  const ComputeConfig config = call.compute_config();
  const std::string fidelity(to_string(config.math_fidelity));
  std::string name;
  for (const char c : fidelity) name += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (!config.math_approx_mode) name += "_ACCURATE";
  if (config.fp32_dest_acc_en) name += "_FP32";
  if (config.packer_l1_acc) name += "_L1_ACC";
  const bool blackhole = arch.arch == Arch::blackhole;
  scope_.constant(name, Python(blackhole ? "ttnn.BlackholeComputeKernelConfig" : "ttnn.WormholeComputeKernelConfig")
                            .key("math_fidelity", "ttnn.MathFidelity." + fidelity)
                            .key("math_approx_mode", python_bool(config.math_approx_mode))
                            .key("fp32_dest_acc_en", python_bool(config.fp32_dest_acc_en))
                            .key("packer_l1_acc", python_bool(config.packer_l1_acc))
                            .str());
  return name;
}

std::string PythonCall::weight(std::string_view name, const WeightForm& form) const {
  return call.tensor_index(name) < 0 ? "" : scope_.weight(name, form);
}

std::string PythonCall::row_major_ids(std::string_view name) {
  if (std::string made = scope_.row_ids(name); !made.empty()) return made;
  const std::string ids = let("ids", Python("ttnn.typecast").arg(operand(name)).arg("ttnn.uint32"));
  return let("ids", Python("ttnn.to_layout").arg(ids).arg("ttnn.ROW_MAJOR_LAYOUT"));
}

std::string PythonCall::row_major_weight(std::string_view name) {
  const WeightForm rows{.shape = call.tensor(name)->logical, .layout = Layout::row_major};
  if (std::string made = weight(name, rows); !made.empty()) return made;
  return let("table", Python("ttnn.to_layout").arg(operand(name)).arg("ttnn.ROW_MAJOR_LAYOUT"));
}

ttc::Refusal emit_plain(PythonCall& to) {
  Python made("ttnn." + std::string(to.call.op->name.substr(3)));
  for (const ttc::ir::SchemaArg& arg : schema_of(*to.call.op).args) {
    if (!arg.type.starts_with("Tensor"))
      made.key(arg.name, to.literal(arg.name));
    else if (std::string text = to.operand(arg.name); !text.empty())
      made.arg(std::move(text));
  }
  to.result(made.key("memory_config", to.memory_config()));
  return std::nullopt;
}

namespace {

using Runs = std::vector<std::pair<std::int64_t, std::int64_t>>;  // first, behind the last

Runs runs_of(const std::vector<std::int64_t>& positions) {
  Runs runs;
  for (const std::int64_t at : positions) {
    if (runs.empty() || runs.back().second != at) runs.emplace_back(at, at);
    ++runs.back().second;
  }
  return runs;
}

// Each run as a pair; single positions one below the other as a range.
std::vector<std::string> python_runs(const Runs& runs) {
  std::vector<std::string> out;
  const auto single = [&](std::size_t i) { return runs[i].second == runs[i].first + 1; };
  for (std::size_t i = 0, end = 0; i < runs.size(); i = end) {
    end = i + 1;
    while (single(i) && end < runs.size() && single(end) && runs[end].first + 1 == runs[end - 1].first) ++end;
    if (end - i > 2) {
      out.push_back("*((i, i + 1) for i in range(" + std::to_string(runs[i].first) + ", " +
                    std::to_string(runs[end - 1].first - 1) + ", -1))");
      continue;
    }
    end = i + 1;
    out.push_back("(" + std::to_string(runs[i].first) + ", " + std::to_string(runs[i].second) + ")");
  }
  return out;
}

}  // namespace

Python python_parts(PythonCall& to, const std::string& x, const std::vector<std::string>& stretches, std::size_t dim) {
  to.needs("parts");
  Python made("parts");
  made.arg(x).arg(python_list(stretches));
  return made.key("dim", std::to_string(dim)).key("memory_config", to.memory_config());
}

std::optional<Python> python_taken(PythonCall& to, const std::string& x, const std::vector<std::string>& sizes,
                                   std::size_t dim, const std::vector<std::int64_t>& positions) {
  constexpr std::size_t few = 4, readable = 64;
  const Runs runs = runs_of(positions);
  if (runs.empty()) return std::nullopt;
  if (runs.size() > few) {
    const std::vector<std::string> texts = python_runs(runs);
    if (texts.size() > readable) return std::nullopt;
    return python_parts(to, x, texts, dim);
  }
  std::vector<std::string> parts;
  for (const auto& [first, end] : runs) {
    std::vector<std::string> starts(sizes.size(), "0"), ends = sizes;
    starts[dim] = std::to_string(first), ends[dim] = std::to_string(end);
    parts.push_back(to.let("part", Python("ttnn.slice").arg(x).arg(python_list(starts)).arg(python_list(ends))));
  }
  Python made("ttnn.concat");
  return made.arg(python_list(parts)).key("dim", std::to_string(dim)).key("memory_config", to.memory_config());
}

namespace {

// Leaked: ops register while other libraries' variables are made.
std::map<std::string, std::string_view, std::less<>>& reasons() {
  static auto* all = new std::map<std::string, std::string_view, std::less<>>;
  return *all;
}

}  // namespace

std::string_view not_emitted(std::string_view record) {
  const auto at = reasons().find(record);
  return at == reasons().end() ? std::string_view() : at->second;
}

void register_not_emitted(std::string_view records, std::string_view reason) {
  for (const auto name : std::views::split(records, ' '))
    reasons().insert_or_assign(std::string(name.begin(), name.end()), reason);
}

}  // namespace ttrt
