// The file of recorded cases and the table of those that are dropped: reading JSON is compiled here, once.
#include "tests/dispatch/cases.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/catch.h"

namespace dispatch_test {
namespace {

nlohmann::json rows_of(const std::string& path) {
  std::ifstream in(path);
  return nlohmann::json::parse(in);
}

// The rows that are not run at all. Each says why, and what a user does instead.
std::set<std::string> dropped_rows() {
  std::set<std::string> all, dropped;
  for (const auto& row : rows_of(TTC_TEST_DATA "/dispatch-cases.json")) all.insert(row.at("id").get<std::string>());
  for (const auto& row : rows_of(TTC_TEST_DATA "/../dispatch/rows.json")) {
    const std::string id = row.at("id");
    INFO(id);
    REQUIRE(all.contains(id));
    REQUIRE_FALSE(row.at("why").get<std::string>().empty());
    REQUIRE_FALSE(row.at("instead").get<std::string>().empty());
    if (row.at("part") == "all") dropped.insert(id);
  }
  return dropped;
}

}  // namespace

void run_cases(const std::string& prefix, const CaseTable& table) {
  static const std::set<std::string> known{"TYP-", "STA-", "DYN-", "CBM-", "CBS-",
                                           "MVC-", "CFG-", "HOT-", "AUT-", "ORC-"};
  REQUIRE(known.contains(prefix));
  const std::set<std::string> dropped = dropped_rows();
  std::size_t found = 0;
  for (const auto& one : rows_of(TTC_TEST_DATA "/dispatch-cases.json")) {
    const std::string id = one.at("id");
    REQUIRE(known.contains(id.substr(0, 4)));
    if (!id.starts_with(prefix)) continue;
    if (dropped.contains(id)) {
      REQUIRE_FALSE(table.contains(id));
      continue;
    }
    ++found;
    DYNAMIC_SECTION(id << " " << one.at("given").get<std::string>() << ", " << one.at("when").get<std::string>()) {
      INFO(one.at("then").get<std::string>());
      const auto test = table.find(id);
      REQUIRE(test != table.end());
      test->second();
    }
  }
  REQUIRE(found == table.size());
}

std::string text_at(const ttrt::dispatch::Json& json, const std::string& pointer) {
  const ttrt::dispatch::Json::json_pointer place(pointer);
  if (!json.contains(place)) return "missing";
  const ttrt::dispatch::Json& value = json.at(place);
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace dispatch_test
