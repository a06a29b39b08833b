// ttc passes, ttc ops, ttc modules, ttc archs: what there is, from the records themselves.
#include <algorithm>
#include <iostream>

#include "command.h"
#include "device/arch.h"
#include "json_out.h"
#include "modules/module.h"
#include "ops/emit.h"
#include "ops/op.h"
#include "pass/pass.h"
#include "table.h"

namespace ttc {
namespace {

bool markdown = false;

void options(FlagSet& app) { app.add_flag("--md", markdown, "As a Markdown table").of_text(); }

void print(const Table& table) { std::cout << (markdown ? table.markdown() : table.text()); }

int list_passes(const Globals& globals) {
  const auto& order = default_pipeline();
  OrderedJson json = OrderedJson::array();
  Table table({"pass", ">default order", "does"});
  for (const PassInfo* pass : all_passes()) {
    std::string positions;
    OrderedJson numbers = OrderedJson::array();
    for (std::size_t i = 0; i < order.size(); ++i)
      if (order[i].pass.substr(0, order[i].pass.find(':')) == pass->name)
        positions += (positions.empty() ? "" : ", ") + std::to_string(i + 1), numbers.push_back(i + 1);
    table.row({std::string(pass->name), positions, std::string(pass->summary)});
    json.push_back({{"name", pass->name}, {"summary", pass->summary}, {"default_order", numbers}});
  }
  OrderedJson steps = OrderedJson::array();
  Table pipeline({">step", "default order", "why there"});
  for (std::size_t i = 0; i < order.size(); ++i) {
    pipeline.row({std::to_string(i + 1), std::string(order[i].pass), std::string(order[i].why)});
    steps.push_back({{"pass", order[i].pass}, {"why", order[i].why}});
  }
  if (globals.json) {
    print_json({{"passes", json}, {"pipeline", steps}});
  } else {
    print(table);
    std::cout << '\n';
    print(pipeline);
  }
  return 0;
}

std::string lowered(const ttrt::OpRecord& op) {
  std::string out;
  for (const auto& lowering : op.lowers) out += (out.empty() ? "" : ", ") + std::string(lowering.aten);
  return out;
}

int list_ops(const Globals& globals) {
  OrderedJson json = OrderedJson::array();
  Table table({"op", "does", ">cases", "no exact kernel", "emitted", "serves"});
  for (const ttrt::OpRecord* op : ttrt::all_ops()) {
    table.row({std::string(op->name), std::string(op->summary), std::to_string(op->cases.size()),
               std::string(op->no_exact_kernel), op->emit != nullptr ? "yes" : std::string(ttrt::not_emitted(op->name)),
               lowered(*op)});
    OrderedJson aten = OrderedJson::array();
    for (const auto& lowering : op->lowers) aten.push_back(lowering.aten);
    json.push_back({{"name", op->name},
                    {"summary", op->summary},
                    {"schema", op->schema},
                    {"serves", aten},
                    {"cases", op->cases.size()},
                    {"no_exact_kernel", op->no_exact_kernel},
                    {"emitted", op->emit != nullptr},
                    {"not_emitted", ttrt::not_emitted(op->name)},
                    {"special_values", op->special_values},
                    {"tolerance", {{"pcc", op->tolerance.pcc}, {"max_rel", op->tolerance.max_rel}}}});
  }
  globals.json ? print_json({{"ops", json}}) : print(table);
  return 0;
}

std::string preset_of(const ttrt::ModuleConfig& config) {
  std::string out;
  const auto add = [&](bool given, const auto& text) {
    if (given) out += (out.empty() ? "" : ", ") + std::string(text());
  };
  add(config.weight.has_value(), [&] { return to_string(*config.weight); });
  add(config.activation.has_value(), [&] { return std::string(to_string(*config.activation)) + " activations"; });
  add(config.fidelity.has_value(), [&] { return to_string(*config.fidelity); });
  add(config.fp32_acc.has_value(), [&] { return *config.fp32_acc ? "fp32_acc" : "no fp32_acc"; });
  add(config.fallback == false, [] { return "no fallback"; });
  return out;
}

int list_modules(const Globals& globals) {
  OrderedJson json = OrderedJson::array();
  Table table({"module", "does", "stands for", "accepts", "preset"});
  for (const ttrt::ModuleRecord* module : ttrt::all_modules()) {
    std::string classes;
    OrderedJson names = OrderedJson::array();
    for (const std::string_view name : module->classes) {
      classes += (classes.empty() ? "" : ", ") + std::string(name);
      names.push_back(name);
    }
    table.row({std::string(module->name), std::string(module->summary), classes, module->accepts(),
               preset_of(module->preset)});
    json.push_back({{"name", module->name},
                    {"summary", module->summary},
                    {"classes", names},
                    {"computes", module->computes},
                    {"whole", module->whole},
                    {"accepts", module->accepts()},
                    {"preset", preset_of(module->preset)}});
  }
  globals.json ? print_json({{"modules", json}}) : print(table);
  return 0;
}

int list_archs(const Globals& globals) {
  OrderedJson json = OrderedJson::array();
  Table table(
      {"profile", "arch", ">chips", ">grid", ">clock MHz", ">L1/core", ">DRAM", ">DRAM GB/s", ">peak TFLOPS LoFi"});
  for (const ttrt::ArchProfile& p : ttrt::arch_profiles()) {
    const std::int64_t dram = p.dram_banks * p.dram_bank_bytes;
    table.row({p.name, std::string(to_string(p.arch)), std::to_string(p.chips),
               std::to_string(p.grid_x) + "x" + std::to_string(p.grid_y), number_text(p.clock_mhz),
               std::to_string(p.l1_bytes >> 10) + " KiB", number_text(static_cast<double>(dram) / (1 << 30)) + " GiB",
               number_text(p.dram_gb_s), number_text(p.peak_tflops(ttrt::MathFidelity::LoFi))});
    json.push_back(OrderedJson::parse(ttrt::to_json(p)));
  }
  globals.json ? print_json({{"archs", json}}) : print(table);
  return 0;
}

const Command passes{"passes", "List the passes", options, list_passes};
const Command ops{"ops", "List the device ops", options, list_ops};
const Command modules{"modules", "List the TT modules that --replace takes", options, list_modules};
const Command archs{"archs", "List the architecture profiles", options, list_archs};
const bool registered =
    (register_command(passes), register_command(ops), register_command(modules), register_command(archs), true);

}  // namespace
}  // namespace ttc
