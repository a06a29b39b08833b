// ttc dispatchers: the named dispatchers there are, and which one is active.
#include <iostream>

#include "command.h"
#include "dispatch/dispatchers.h"
#include "json_out.h"
#include "table.h"

namespace ttc {
namespace {

bool markdown = false;
std::vector<std::string> libraries;

void options(FlagSet& app) {
  app.add_flag("--md", markdown, "As a Markdown table").of_text();
  app.add_option("--load", libraries, "Also this library of a dispatcher; repeatable").type_name("LIB.so");
}

int run(const Globals& globals) {
  for (const std::string& path : libraries) ttrt::dispatch::load_dispatcher_plugin(path);
  OrderedJson json = OrderedJson::array();
  Table table({"dispatcher", "active", "from", "does"});
  for (const auto& info : ttrt::dispatch::dispatcher_infos()) {
    table.row({info.name, info.active ? "yes" : "", info.origin, info.summary});
    json.push_back({{"name", info.name}, {"active", info.active}, {"from", info.origin}, {"summary", info.summary}});
  }
  if (globals.json)
    print_json({{"dispatchers", json},
                {"active", ttrt::dispatch::active_dispatcher_name()},
                {"variable", ttrt::dispatch::dispatcher_variable}});
  else
    std::cout << (markdown ? table.markdown() : table.text());
  return 0;
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_COMMAND({"dispatchers", "List the dispatchers", ttc::options, ttc::run})
