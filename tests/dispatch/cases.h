// The recorded behaviours of tests/data/dispatch-cases.json as tests: one function per case id.
//
//   const CaseTable table{{"CFG-01", [] { ...REQUIRE(...); }}, ...};
//   TEST_CASE("CONFIG cases") { run_cases("CFG-", table); }
//
// Every id of the file with the prefix must be in the table, or dropped in rows.json, and the other way round; each
// runs in a section named after it. Cases with a note are defects of the reference: the test asserts what the facts
// advise instead.
#pragma once

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/catch.h"

namespace dispatch_test {

using CaseTable = std::map<std::string, void (*)()>;

inline nlohmann::json rows_of(const std::string& path) {
  std::ifstream in(path);
  return nlohmann::json::parse(in);
}

// The rows that are not run at all. Each says why, and what a user does instead.
inline std::set<std::string> dropped_rows() {
  std::set<std::string> all, dropped;
  for (const auto& row : rows_of(TTC_TEST_DATA "/dispatch-cases.json")) all.insert(row.at("id"));
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

inline void run_cases(const std::string& prefix, const CaseTable& table) {
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

}  // namespace dispatch_test
