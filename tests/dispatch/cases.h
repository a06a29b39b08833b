// The recorded behaviours of tests/data/dispatch-cases.json as tests: one function per case id.
//
//   const CaseTable table{{"CFG-01", [] { ...REQUIRE(...); }}, ...};
//   TEST_CASE("CONFIG cases") { run_cases("CFG-", table); }
//
// Every id of the file with the prefix must be in the table, or dropped in rows.json, and the other way round; each
// runs in a section named after it. Cases with a note are defects of the reference: the test asserts what the facts
// advise instead.
#pragma once

#include <map>
#include <string>

#include "dispatch/types.h"
#include "tests/catch.h"

namespace dispatch_test {

using CaseTable = std::map<std::string, void (*)()>;
void run_cases(const std::string& prefix, const CaseTable& table);

// What stands at a place like "/selection_path/0/result": strings bare, all else as JSON; "missing" where nothing does.
// Comparing JSON values in REQUIRE costs the compiler seconds.
std::string text_at(const ttrt::dispatch::Json& json, const std::string& pointer);

}  // namespace dispatch_test
