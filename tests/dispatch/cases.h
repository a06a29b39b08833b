// The recorded behaviours of tests/data/dispatch-cases.json as tests: one function per case id.
//
//   const CaseTable table{{"CFG-01", [] { ...REQUIRE(...); }}, ...};
//   TEST_CASE("CONFIG cases") { run_cases("CFG-", table); }
//
// Every id of the file with the prefix must be in the table, and the other way round; each runs in a section named
// after it. Cases with a note are defects of the reference: the test asserts what the facts advise instead.
#pragma once

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/catch.h"

namespace dispatch_test {

using CaseTable = std::map<std::string, void (*)()>;

inline void run_cases(const std::string& prefix, const CaseTable& table) {
  std::ifstream in(TTC_TEST_DATA "/dispatch-cases.json");
  const nlohmann::json cases = nlohmann::json::parse(in);
  std::size_t found = 0;
  for (const auto& one : cases) {
    const std::string id = one.at("id");
    if (!id.starts_with(prefix)) continue;
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
