// The ttc tool: builds the command line from the subcommands' records, runs one, turns errors into exit codes.
#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "command.h"
#include "command_line.h"
#include "json_out.h"
#include "ops/plugin.h"
#include "program.h"
#include "support/atomic_file.h"
#include "support/error.h"
#include "support/json_util.h"
#include "support/mapped_file.h"
#include "support/printable.h"
#include "support/progress.h"
#include "terminal.h"
#include "torch/cpu_op.h"

namespace ttc {
namespace {

void add_globals(FlagSet& app, Globals& globals) {
  app.group("Every command");
  app.add_flag("--json", globals.json, "One JSON object on standard output");
  app.add_flag("-v,--verbose", globals.verbose, "Say more on standard error: phases, passes, shapes");
  app.add_flag("-q,--quiet", globals.quiet,
               "Say nothing but results and errors: no notes, hints, progress; warnings only under --strict");
  app.add_flag("--strict", globals.strict, "Fail (exit code 1) where there is a warning");
  app.add_flag("--force", globals.force, "Let a result take the place of a file that the command reads");
  app.add_option("--color", globals.color, "Colours: auto is for terminals, unless NO_COLOR is set")
      .one_of({"auto", "always", "never"});
  app.add_option("--threads", globals.threads,
                 "Threads of LibTorch and the device; as many as there are cores otherwise")
      .range(1, 4096);
  app.add_option("--options", globals.options_file,
                 "More flags from a file: lines NAME = VALUE, under [SUBCOMMAND] those of one");
  app.add_option("--plugin", globals.plugins,
                 "A shared library that brings operators, passes, dispatchers or subcommands; repeatable")
      .repeatable();
}

// Before the command line is made, for a library may bring subcommands. What it registers while it is loaded stays:
// operators, passes, dispatchers, commands.
void load_plugins(const Arguments& args) {
  constexpr std::string_view flag = "--plugin";
  for (std::size_t i = 0; i < args.size() && args[i] != "--"; ++i) {
    std::string path;
    if (args[i].starts_with(flag) && args[i].substr(flag.size()).starts_with("="))
      path = args[i].substr(flag.size() + 1);
    else if (args[i] == flag && i + 1 < args.size())
      path = args[++i];
    else
      continue;
    if (const std::string why = ttrt::open_plugin(path); !why.empty())
      throw usage_error("--plugin " + path + ": " + why);
  }
}

int run(Arguments args, Globals& globals) {
  load_plugins(args);
  CLI::App app("Takes exported PyTorch models, rewrites them for Tenstorrent devices, runs them on an emulated device.",
               "ttc");
  app.set_version_flag("--version", "ttc " TTC_VERSION);
  app.require_subcommand(1);
  app.footer("ttc SUBCOMMAND --help explains one.");
  const Command* chosen = nullptr;
  for (const Command* command : all_commands()) {
    CLI::App* sub = app.add_subcommand(std::string(command->name), std::string(command->summary));
    FlagSet flags(*sub);
    command->options(flags);
    add_globals(flags, globals);
    if (!command->example.empty()) sub->footer("Example:\n  " + std::string(command->example));
    sub->callback([command, &chosen] { chosen = command; });
  }
  format_help(app);
  set_command_line(app);
  check_names(app, args);
  args = with_options_file(app, std::move(args));
  try {
    app.parse(Arguments(args.rbegin(), args.rend()));
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    throw_usage(app, error);
  }
  for (const CLI::App* sub : app.get_subcommands()) check_results_apart(*sub);
  set_color(globals.color);
  if (globals.threads > 0) ttrt::set_threads(globals.threads);
  if (!globals.force) remember_opened_files();
  remove_unfinished_files_on_signals();
  if (globals.json) {
    keep_output_for_json();
    for (const CLI::App* sub : app.get_subcommands()) warn_of_text_flags(*sub, globals);
  }
  ttrt::on_torch_warning([&globals](const std::string& text) { note(globals, "note: LibTorch: " + text); });
  const ProgressLine progress(!globals.quiet);
  const Phase phase("ttc " + std::string(chosen->name));
  const int code = chosen->run(globals);
  if (code == 0) check_warnings(globals);
  return code;
}

int fail(const Globals& globals, const Error& error) {
  const std::string text = error.message();
  constexpr std::string_view word = "error:";
  std::cerr << painted(word, Style::error, Stream::error) << text.substr(word.size());
  if (globals.json) {
    OrderedJson out{{"error", error.what()},
                    {"hint", error.hint()},
                    {"file", error.file()},
                    {"exit", static_cast<int>(error.code())}};
    if (!error.report().empty()) out.update(OrderedJson::parse(error.report()));
    print_json(std::move(out));
  }
  return static_cast<int>(error.code());
}

int run_reporting(const Arguments& args, Globals& globals) {
  try {
    return run(args, globals);
  } catch (const Error& error) {
    return fail(globals, error);
  } catch (const std::bad_alloc&) {
    return fail(globals, Error(Exit::check_failed, "", "out of memory"));
  } catch (const std::exception& error) {
    return fail(globals, Error(Exit::bug, "", std::string("unexpected: ") + error.what(),
                               "this is a bug of ttc; please report it with the command line"));
  }
}

// Whatever reaches a standard stream is valid UTF-8.
class PrintableStream {
 public:
  explicit PrintableStream(std::ostream& stream) : stream_(stream), own_(stream.rdbuf()), buffer_(own_) {
    stream_.rdbuf(&buffer_);
  }
  ~PrintableStream() { stream_.rdbuf(own_); }

 private:
  std::ostream& stream_;
  std::streambuf* own_;
  PrintableBuffer buffer_;
};

// What was printed, to where it goes; a result that does not get there is an error.
int finished(int code) {
  std::cout.flush();
  const bool failed = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  if (!failed) return code;
  std::cerr << Error(Exit::usage, "", std::string("cannot write standard output: ") + std::strerror(errno)).message();
  return code != 0 ? code : static_cast<int>(Exit::usage);
}

}  // namespace
}  // namespace ttc

void ttc::run_program(int argc, char** argv) {
  const Arguments args(argv + 1, argv + argc);
  Globals globals;
  // Errors in the command line itself are to be JSON too.
  globals.json = std::find(args.begin(), std::find(args.begin(), args.end(), "--"), "--json") !=
                 std::find(args.begin(), args.end(), "--");
  const int code = [&] {
    const PrintableStream out(std::cout), err(std::cerr);
    return run_reporting(args, globals);
  }();
  const int last = finished(code);
  std::fflush(nullptr);
  std::_Exit(last);  // what nobody would read again is not taken apart: LibTorch's registry takes a tenth of a second
}
