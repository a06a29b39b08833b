// Names are checked before CLI11 parses, so that a misspelt flag is what the user hears of first.
#include "command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>

#include "support/error.h"
#include "support/mapped_file.h"
#include "terminal.h"

namespace ttc {
namespace {

const CLI::App* find_subcommand(const CLI::App& app, const std::string& name) {
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    if (sub->get_name() == name) return sub;
  return nullptr;
}

std::vector<std::string> names_of_subcommands(const CLI::App& app) {
  std::vector<std::string> out;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) out.push_back(sub->get_name());
  return out;
}

std::vector<std::string> names_of_flags(const CLI::App& app) {
  std::vector<std::string> out;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) out.push_back("--" + name);
  return out;
}

std::string did_you_mean(const std::string& name, const std::vector<std::string>& known, const std::string& otherwise) {
  const std::string close = nearest(name, known.data(), known.size());
  return close.empty() ? otherwise : "did you mean '" + close + "'?";
}

std::string title(const CLI::App& sub) { return "ttc " + sub.get_name(); }

void check_flag(const CLI::App& sub, const std::string& flag, const std::string& file) {
  const std::vector<std::string> known = names_of_flags(sub);
  if (std::find(known.begin(), known.end(), flag) != known.end()) return;
  throw Error(Exit::usage, file, title(sub) + " has no flag '" + flag + "'",
              did_you_mean(flag, known, title(sub) + " --help lists them"));
}

// "--name" of "--name=value"; "" where it is no long flag.
std::string flag_of(const std::string& arg) {
  return arg.size() > 2 && arg.starts_with("--") ? arg.substr(0, arg.find('=')) : std::string();
}

// Of a subcommand, whichever it is: files serve several.
void check_section(const CLI::App& app, const CLI::ConfigItem& item, const std::string& file) {
  if (item.parents.empty() || (item.parents.size() == 1 && find_subcommand(app, item.parents[0]) != nullptr)) return;
  const std::vector<std::string> names = names_of_subcommands(app);
  std::string section;
  for (const std::string& parent : item.parents) section += (section.empty() ? "" : ".") + parent;
  throw Error(Exit::usage, file, "no subcommand is called '" + section + "'",
              did_you_mean(item.parents[0], names, "[SUBCOMMAND] begins the flags of one"));
}

std::vector<CLI::ConfigItem> read_options(const std::string& path) {
  const auto file = MappedFile::open(path);
  std::istringstream text({reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()});
  try {
    return CLI::ConfigTOML().from_config(text);
  } catch (const CLI::Error& error) {
    throw bad_file(path, error.what());
  }
}

}  // namespace

Arguments with_options_file(const CLI::App& app, Arguments args) {
  const CLI::App* sub = args.empty() ? nullptr : find_subcommand(app, args[0]);
  if (sub == nullptr) return args;
  std::string path;
  for (std::size_t i = 1; i < args.size() && args[i] != "--"; ++i) {
    if (flag_of(args[i]) != "--options") continue;
    if (args[i].size() > 10)
      path = args[i].substr(10);
    else if (i + 1 < args.size())
      path = args[i + 1];
  }
  if (path.empty()) return args;
  Arguments added;
  for (const CLI::ConfigItem& item : read_options(path)) {
    check_section(app, item, path);
    if (item.name == "++" || item.name == "--") continue;  // a section begins or ends
    if (!item.parents.empty() && item.parents[0] != sub->get_name()) continue;
    const std::string flag = "--" + item.name;
    check_flag(*sub, flag, path);
    if (flag == "--options" || flag == "--plugin")
      throw Error(Exit::usage, path, "a file of options has no " + flag, "the command line takes it");
    if (std::any_of(args.begin(), args.end(), [&](const std::string& arg) { return flag_of(arg) == flag; })) continue;
    for (const std::string& value : item.inputs) added.push_back(flag + "=" + value);
  }
  args.insert(args.begin() + 1, added.begin(), added.end());
  return args;
}

void check_names(const CLI::App& app, const Arguments& args) {
  if (args.empty()) return;
  const std::vector<std::string> names = names_of_subcommands(app);
  if (!args[0].starts_with("-") && std::find(names.begin(), names.end(), args[0]) == names.end())
    throw usage_error("no subcommand is called '" + args[0] + "'",
                      did_you_mean(args[0], names, "ttc --help lists them"));
  const CLI::App* sub = find_subcommand(app, args[0]);
  for (std::size_t i = 1; sub != nullptr && i < args.size() && args[i] != "--"; ++i)
    if (const std::string flag = flag_of(args[i]); !flag.empty()) check_flag(*sub, flag, "");
}

void throw_usage(const CLI::App& app, const CLI::ParseError& error) {
  const auto chosen = app.get_subcommands();
  const std::string help = chosen.empty() ? "ttc --help lists the subcommands" : title(*chosen[0]) + " --help explains";
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !chosen.empty())
    throw usage_error(title(*chosen[0]) + " takes no argument '" + chosen[0]->remaining().front() + "'", help);
  const std::string what = error.what();
  const std::size_t hint = what.find('\n');
  throw usage_error(what.substr(0, hint), hint == std::string::npos ? help : what.substr(hint + 1));
}

// ---- help ----------------------------------------------------------------------------------------------------------

namespace {

class HelpFormat : public CLI::Formatter {
 public:
  HelpFormat() { column_width(30); }

  std::string make_option_opts(const CLI::Option* option) const override {
    std::string out;
    if (option->get_type_size() != 0 && !option->get_type_name().empty()) out = " " + option->get_type_name();
    return out + (option->get_required() ? ", required" : "");
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    std::string text = option->get_description();
    if (!option->get_default_str().empty()) text += " [" + option->get_default_str() + "]";
    return fitted(text);
  }
  std::string make_subcommand(const CLI::App* sub) const override {
    std::ostringstream out;
    CLI::detail::format_help(out, sub->get_name(), fitted(sub->get_description()), get_column_width());
    return out.str();
  }

 private:
  // format_help indents what follows a line's end.
  std::string fitted(const std::string& text) const {
    const std::size_t terminal = terminal_width(Stream::out),
                      width = terminal > 0 ? std::min<std::size_t>(terminal, 120) : 100;
    return wrapped(text, width > get_column_width() + 20 ? width - get_column_width() : 20);
  }
};

const CLI::App* made = nullptr;

}  // namespace

void format_help(CLI::App& app) {
  const auto format = std::make_shared<HelpFormat>();
  app.formatter(format);
  for (CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) sub->formatter(format);
}

void check_results_apart(const CLI::App& sub) {
  std::map<std::string, std::string> flags;  // by the file
  for (const CLI::Option* option : sub.get_options()) {
    if (!is_result(option) || option->count() == 0) continue;
    const std::string path = option->results().back(), flag = option->get_name();
    std::error_code error;  // a link to itself has no canonical path: who writes there says so
    const auto whole = std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
    const auto [first, alone] = flags.emplace(error ? path : whole.string(), flag);
    if (!alone) throw usage_error(first->second + " and " + flag + " name the same file, " + path);
  }
}

void warn_of_text_flags(const CLI::App& sub, const Globals& globals) {
  for (const CLI::Option* option : sub.get_options())
    if (is_of_text(option) && option->count() > 0)
      warn(globals, option->get_name() + " has no effect: --json holds all of it, as JSON");
}

namespace {

// "--loops, --warmup have no effect"; "" where none of them was given.
std::string said_of_given(std::initializer_list<std::string_view> flags, const char* one, const char* several) {
  std::string out;
  int count = 0;
  for (const std::string_view flag : flags)
    if (was_given(flag)) out += (count++ == 0 ? "" : ", ") + std::string(flag);
  return count == 0 ? out : out + (count == 1 ? one : several);
}

}  // namespace

bool was_given(std::string_view flag) {
  for (const CLI::App* sub : command_line().get_subcommands())
    if (const auto* option = sub->get_option_no_throw(std::string(flag)); option != nullptr && option->count() > 0)
      return true;
  return false;
}

void warn_of_idle(const Globals& globals, std::initializer_list<std::string_view> flags, const std::string& why) {
  if (const std::string said = said_of_given(flags, " has no effect", " have no effect"); !said.empty())
    warn(globals, said + ": " + why);
}

void refuse_unchecked(std::initializer_list<std::string_view> flags, const std::string& why) {
  if (const std::string said = said_of_given(flags, " checks nothing", " check nothing"); !said.empty())
    throw usage_error(said + ": " + why);
}

const CLI::App& command_line() {
  TTC_CHECK(made != nullptr, "the command line is not made yet");
  return *made;
}
void set_command_line(const CLI::App& app) { made = &app; }

}  // namespace ttc
