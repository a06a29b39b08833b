// ttc completion SHELL: a script that completes subcommands, flags and their values, made from the same records as
// --help.
#include <CLI/CLI.hpp>
#include <iostream>

#include "command_line.h"
#include "flags.h"
#include "json_out.h"

namespace ttc {
namespace {

std::string shell;

void options(FlagSet& app) {
  app.add_option("shell", shell, "Which shell's").one_of({"bash", "zsh", "fish"}).required();
}

struct CompletedFlag {
  std::vector<std::string> names;  // "-v", "--verbose"
  std::string help;
  bool takes_value = false;
  std::vector<std::string> values;
};

std::vector<CompletedFlag> flags_of(const CLI::App& sub) {
  std::vector<CompletedFlag> out;
  for (const CLI::Option* option : sub.get_options()) {
    CompletedFlag flag{.names = {},
                       .help = option->get_description(),
                       .takes_value = option->get_type_size() != 0,
                       .values = choices_of(option)};
    flag.help = flag.help.substr(0, flag.help.find_first_of(".;:"));
    for (const std::string& name : option->get_snames()) flag.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) flag.names.push_back("--" + name);
    if (!flag.names.empty()) out.push_back(std::move(flag));
  }
  return out;
}

std::vector<const CLI::App*> subcommands() {
  return command_line().get_subcommands([](const CLI::App*) { return true; });
}

// Of positional arguments that take one of a few words.
std::string positional_values(const CLI::App& sub) {
  std::string out;
  for (const CLI::Option* option : sub.get_options())
    if (option->get_positional())
      for (const std::string& value : choices_of(option)) out += (out.empty() ? "" : " ") + value;
  return out;
}

std::string joined(const std::vector<std::string>& words, const char* between = " ") {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : between) + word;
  return out;
}

// For single quotes of every shell here.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// Files where the flag takes a value that may be anything, else the values, else flags.
void print_bash(std::ostream& out) {
  std::vector<std::string> names;
  for (const CLI::App* sub : subcommands()) names.push_back(sub->get_name());
  out << "# Completion of ttc for bash: source this file, or put it into the folder of bash-completion.\n"
         "_ttc() {\n  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} flags values\n"
         "  COMPREPLY=()\n  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    COMPREPLY=($(compgen -W "
      << quoted(joined(names) + " --help --version")
      << " -- \"$word\"))\n    return\n  fi\n  case ${COMP_WORDS[1]} in\n";
  for (const CLI::App* sub : subcommands()) {
    std::vector<std::string> flags;
    out << "    " << sub->get_name() << ")\n      values=" << quoted(positional_values(*sub))
        << "\n      case $before in\n";
    for (const CompletedFlag& flag : flags_of(*sub)) {
      flags.insert(flags.end(), flag.names.begin(), flag.names.end());
      if (flag.takes_value)
        out << "        " << joined(flag.names, "|") << ")\n          COMPREPLY=($(compgen "
            << (flag.values.empty() ? "-f" : "-W " + quoted(joined(flag.values))) << " -- \"$word\")); return ;;\n";
    }
    out << "      esac\n      flags=" << quoted(joined(flags)) << " ;;\n";
  }
  out << "  esac\n  case $word in\n    -*) COMPREPLY=($(compgen -W \"$flags\" -- \"$word\")) ;;\n"
         "    *) COMPREPLY=($(compgen -W \"$values\" -- \"$word\") $(compgen -f -- \"$word\")) ;;\n  esac\n}\n"
         "complete -o filenames -F _ttc ttc\n";
}

// Text within the brackets of _arguments.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += c == '[' || c == ']' || c == ':' || c == '\\' ? "\\" + std::string(1, c) : std::string(1, c);
  return out;
}

void print_zsh(std::ostream& out) {
  out << "#compdef ttc\n# Completion of ttc for zsh: a file called _ttc in a folder of $fpath.\n_ttc() {\n"
         "  if (( CURRENT == 2 )); then\n    local -a commands=(\n";
  for (const CLI::App* sub : subcommands())
    out << "      " << quoted(sub->get_name() + ":" + zsh_text(sub->get_description())) << '\n';
  out << "    )\n    _describe command commands\n    return\n  fi\n  local command=${words[2]}\n  shift words\n"
         "  (( CURRENT-- ))\n  case $command in\n";
  for (const CLI::App* sub : subcommands()) {
    out << "    " << sub->get_name() << ") _arguments";
    for (const CompletedFlag& flag : flags_of(*sub))
      for (const std::string& name : flag.names)
        out << " \\\n      "
            << quoted("*" + name + "[" + zsh_text(flag.help) + "]" +
                      (!flag.takes_value     ? ""
                       : flag.values.empty() ? ":value:_files"
                                             : ":value:(" + joined(flag.values) + ")"));
    const std::string values = positional_values(*sub);
    out << " \\\n      " << quoted(values.empty() ? "*:file:_files" : "*:value:(" + values + ")") << " ;;\n";
  }
  out << "  esac\n}\ncompdef _ttc ttc\n";
}

void print_fish(std::ostream& out) {
  out << "# Completion of ttc for fish: a file called ttc.fish in ~/.config/fish/completions.\n";
  for (const CLI::App* sub : subcommands()) {
    out << "complete -c ttc -n __fish_use_subcommand -f -a " << sub->get_name() << " -d "
        << quoted(sub->get_description()) << '\n';
    const std::string where = "complete -c ttc -n '__fish_seen_subcommand_from " + sub->get_name() + "'";
    if (const std::string values = positional_values(*sub); !values.empty())
      out << where << " -f -a " << quoted(values) << '\n';
    for (const CompletedFlag& flag : flags_of(*sub)) {
      out << where;
      for (const std::string& name : flag.names)
        out << (name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1));
      if (flag.takes_value) out << " -r";
      if (!flag.values.empty()) out << " -f -a " << quoted(joined(flag.values));
      out << " -d " << quoted(flag.help) << '\n';
    }
  }
}

int run(const Globals& globals) {
  std::ostringstream text;
  shell == "bash" ? print_bash(text) : shell == "zsh" ? print_zsh(text) : print_fish(text);
  if (globals.json)
    print_json({{"shell", shell}, {"script", text.str()}});
  else
    std::cout << text.str();
  return 0;
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_COMMAND({"completion", "A script that completes command lines in a shell", ttc::options, ttc::run,
                      "source <(ttc completion bash)"})
