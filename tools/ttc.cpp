// The ttc tool: builds the command line from the subcommands' records, runs one, turns errors into exit codes.
#include <dlfcn.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "command.h"
#include "torch/cpu_op.h"
#include "support/error.h"
#include "support/printable.h"

namespace ttc {
namespace {

void add_globals(FlagSet& app, Globals& globals) {
  app.add_flag("--json", globals.json, "One JSON object on standard output");
  app.add_flag("-v,--verbose", globals.verbose, "Say more on standard error; repeatable");
  app.add_flag("-q,--quiet", globals.quiet, "Say nothing but results and errors");
  app.add_option("--threads", globals.threads, "Threads of LibTorch and the device").range(1, 4096);
  app.add_option("--plugin", globals.plugins,
                 "A shared library that brings operators, passes, dispatchers or subcommands; repeatable")
      .repeatable();
}

// Before the command line is made, for a library may bring subcommands. What it registers while it is loaded stays:
// operators, passes, dispatchers, commands.
void load_plugins(int argc, char** argv) {
  constexpr std::string_view flag = "--plugin";
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    const std::string_view arg = argv[i];
    std::string path;
    if (arg.starts_with(flag) && arg.substr(flag.size()).starts_with("="))
      path = arg.substr(flag.size() + 1);
    else if (arg == flag && i + 1 < argc)
      path = argv[++i];
    else
      continue;
    if (dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) continue;
    const char* reason = dlerror();
    throw usage_error("--plugin " + path + ": " + (reason != nullptr ? reason : "cannot be loaded"));
  }
}

int run(int argc, char** argv) {
  load_plugins(argc, argv);
  CLI::App app("Takes exported PyTorch models, rewrites them for Tenstorrent devices, runs them on an emulated device.",
               "ttc");
  app.set_version_flag("--version", "ttc " TTC_VERSION);
  app.require_subcommand(1);
  Globals globals;
  const Command* chosen = nullptr;
  for (const Command* command : all_commands()) {
    CLI::App* sub = app.add_subcommand(std::string(command->name), std::string(command->summary));
    FlagSet flags(*sub);
    command->options(flags);
    add_globals(flags, globals);
    sub->callback([command, &chosen] { chosen = command; });
  }
  std::vector<std::string> names;
  for (const Command* command : all_commands()) names.emplace_back(command->name);
  if (argc > 1 && argv[1][0] != '-' && std::find(names.begin(), names.end(), argv[1]) == names.end()) {
    const std::string close = nearest(argv[1], names.data(), names.size());
    throw usage_error("no subcommand is called '" + std::string(argv[1]) + "'",
                      close.empty() ? "ttc --help lists them" : "did you mean '" + close + "'?");
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    throw usage_error(error.what(), "ttc --help lists the subcommands, ttc SUBCOMMAND --help its flags");
  }
  if (globals.threads > 0) ttrt::set_threads(globals.threads);
  if (globals.json) keep_output_for_json();
  return chosen->run(globals);
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

}  // namespace

}  // namespace ttc

int main(int argc, char** argv) {
  const ttc::PrintableStream out(std::cout), err(std::cerr);
  try {
    return ttc::run(argc, argv);
  } catch (const ttc::Error& error) {
    std::cerr << error.message();
    return static_cast<int>(error.code());
  } catch (const std::bad_alloc&) {
    std::cerr << "error: out of memory\n";
    return static_cast<int>(ttc::Exit::check_failed);
  } catch (const std::exception& error) {
    std::cerr << "error: unexpected: " << error.what()
              << "\nhint: this is a bug of ttc; please report it with the command line\n";
    return static_cast<int>(ttc::Exit::bug);
  }
}
