// ttc undo: the file that a rewritten one was made from, where it is kept; else what is missing.
#include <iostream>

#include "command.h"
#include "formats/file_format.h"
#include "json_out.h"
#include "session/kept.h"
#include "support/atomic_file.h"
#include "table.h"

namespace ttc {
namespace {

struct Flags {
  std::string model, output;
} flags;

void options(FlagSet& app) {
  app.add_option("model", flags.model, "A rewritten .pt2 or TorchScript file").required();
  app.add_option("-o,--output", flags.output, "Where the original goes").result().required();
}

int run(const Globals& globals) {
  const ModelSource source(flags.model);
  const std::unique_ptr<ir::Model> model = source.read(false);
  const Original original = undo(*model);
  const FileFormat* format = format_of_name(flags.output);
  if (format == nullptr || format->name != original.format)
    warn(globals, flags.output + " is not named as the original was: it is a " + original.format + " file");
  check_warnings(globals);
  write_file(flags.output, {reinterpret_cast<const char*>(original.bytes.data()), original.bytes.size()});
  if (globals.json)
    print_json({{"original", true},
                {"output", flags.output},
                {"bytes", original.bytes.size()},
                {"sha256", original.sha256}});
  else
    note(globals, "wrote " + flags.output + ", " + bytes_text(static_cast<double>(original.bytes.size())) +
                      ", the file that was compiled");
  return 0;
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_COMMAND({"undo", "Give back the model that a rewritten file was made from", ttc::options, ttc::run,
                      "ttc undo bert.pt2 -o original.pt2"})
