// ttc undo: the file that a rewritten one was made from, where it is kept; else what is missing.
#include <iostream>

#include "command.h"
#include "formats/file_format.h"
#include "ir/manifest_name.h"
#include "json_out.h"
#include "session/kept.h"
#include "support/atomic_file.h"
#include "support/error.h"
#include "support/json_util.h"
#include "support/sha256.h"
#include "table.h"

namespace ttc {
namespace {

struct Flags {
  std::string model, output;
} flags;

void options(FlagSet& app) {
  app.add_option("model", flags.model, "A rewritten .pt2 or TorchScript file").required();
  app.add_option("-o,--output", flags.output, "Where the original goes").required();
}

// What a file without its original has lost: the weights in other formats, the graph.
Error missing(const ir::Model& model, const Json& manifest) {
  std::map<std::string, std::size_t> formats;
  for (const Json& entry : as_array(member(manifest, "precision")))
    if (const Json* format = find_member(entry, "weight_format")) ++formats[as_string(*format)];
  std::string weights;
  for (const auto& [format, count] : formats)
    weights += (weights.empty() ? "" : ", ") + std::to_string(count) + " in " + format;
  std::size_t rewrites = as_array(member(manifest, "journal")).size();
  if (const Json* earlier = find_member(manifest, "earlier"))
    for (const Json& one : as_array(*earlier)) rewrites += as_array(member(one, "journal")).size();
  const Json& input = *input_of(manifest, "");
  Json report{{"original", false}, {"input", input}, {"rewrites", rewrites}, {"packed", Json::object()}};
  for (const auto& [format, count] : formats) report["packed"][format] = count;
  return Error(Exit::check_failed, model.info.path,
               "the original is not kept: " + std::to_string(rewrites) + " rewrites cannot be taken back, weights of " +
                   (weights.empty() ? "no node" : weights) + " are packed; its SHA-256 was " +
                   as_string(member(input, "sha256")),
               "compile --keep-original keeps it")
      .with_report(report.dump());
}

int run(const Globals& globals) {
  const ModelSource source(flags.model);
  const std::unique_ptr<ir::Model> model = source.read(false);
  const auto manifest = model->extra.find(manifest_name);
  if (manifest == model->extra.end())
    throw bad_file(flags.model, "there is nothing to undo: it carries no manifest", "only rewritten files have one");
  const Json root = parse_json(manifest->second);
  const auto original = original_of(*model);
  if (!original) throw missing(*model, root);
  const Json* const found = input_of(root, sha256_hex(*original));
  if (found == nullptr)
    throw bad_file(flags.model, "the original that it keeps is damaged: its hash is not the one of the manifest");
  const Json& input = *found;
  const FileFormat* format = format_of_name(flags.output);
  if (format == nullptr || format->name != as_string(member(input, "format")))
    warn(globals,
         flags.output + " is not named as the original was: it is a " + as_string(member(input, "format")) + " file");
  check_warnings(globals);
  write_file(flags.output, {reinterpret_cast<const char*>(original->data()), original->size()});
  if (globals.json)
    print_json({{"original", true},
                {"output", flags.output},
                {"bytes", original->size()},
                {"sha256", as_string(member(input, "sha256"))}});
  else
    note(globals, "wrote " + flags.output + ", " + bytes_text(static_cast<double>(original->size())) +
                      ", the file that was compiled");
  return 0;
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_COMMAND({"undo", "Give back the model that a rewritten file was made from", ttc::options, ttc::run,
                      "ttc undo bert.pt2 -o original.pt2"})
