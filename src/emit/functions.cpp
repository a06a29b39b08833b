// Blocks become functions; blocks of the same text share one.
#include "emit/functions.h"

#include <algorithm>

#include "emit/helpers.h"
#include "emit/python_text.h"

namespace ttc::emit {

Functions::Functions(const ir::Model& model, const ttrt::ArchProfile& arch, ir::SymBinding sizes)
    : model(model),
      arch(arch),
      sizes(std::move(sizes)),
      chooser({.report = [](const std::string&, std::string_view) {}}),
      names_{"forward", "device", "parameters"} {
  for (const std::string_view helper : helper_names()) names_.emplace(helper);
  find_device_values(*model.graph);
}

Callee Functions::write(const Block& block) {
  BlockWriter writer(*this, block);
  writer.write();
  Function made;
  made.class_name = block.class_name;
  return written(writer, std::move(made), snake_case(block.class_name.empty() ? "module" : block.class_name),
                 block.path);
}

Callee Functions::written(BlockWriter& writer, Function made, const std::string& stem, const std::string& path) {
  made.symbols = writer.symbols, made.weights = writer.weights, made.device = writer.device;
  for (const Argument& argument : writer.arguments) made.parameters.push_back(writer.argument_name(argument));
  const std::size_t keywords = writer.symbols.size() + (writer.weights ? 1 : 0) + (writer.device ? 1 : 0);
  if (keywords > 0) made.parameters.emplace_back("*");
  if (writer.weights) made.parameters.emplace_back("parameters");
  if (writer.device) made.parameters.emplace_back("device");
  made.parameters.insert(made.parameters.end(), writer.symbols.begin(), writer.symbols.end());
  made.shared = writer.shared();
  made.body = writer.scope.text(4);
  for (std::size_t i = 0; i < writer.returned.size(); ++i)
    made.body += (i == 0 ? "    return " : ", ") + writer.returned[i];
  if (!writer.returned.empty()) made.body += "\n";

  std::string key = made.class_name + made.summary + "(";
  for (const std::string& parameter : made.parameters) key += parameter + ", ";
  key += ")\n" + made.body;
  const auto known = by_text_.find(key);
  if (known != by_text_.end()) {
    known->second->paths.push_back(path);
    return {known->second, std::move(writer.arguments), std::move(writer.results)};
  }
  made.name = stem;
  for (int n = 2; !names_.insert(made.name).second; ++n) made.name = stem + "_" + std::to_string(n);
  made.paths = {path};
  all.push_back(std::make_unique<Function>(std::move(made)));
  by_text_.emplace(key, all.back().get());
  return {all.back().get(), std::move(writer.arguments), std::move(writer.results)};
}

}  // namespace ttc::emit
