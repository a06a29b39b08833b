// What the page of `ttc report` shows, as its block of JSON: the records of compile, compare, profile, the search for
// precision and the dumps of passes, each under the name and in the form that its own command gives it.
#pragma once

#include <optional>
#include <string>

#include "compile_flags.h"
#include "json_out.h"

namespace ttc {

struct ReportParts {
  std::string compare;  // what ttc compare --json printed; "": the calls of --io are compared
  std::string search;   // what ttc compile --pareto wrote
  std::string dumps;    // a folder that ttc compile --dump-dir wrote
  bool what_if = false;
};

// {ttc, model, arch, compile, graph, profile, compare, search, dumps, what_if}; parts that nobody gave are null. A
// plain model is compiled in memory with the settings. Throws what compiling and comparing throw, and Error (bad_file).
Json report_data(const Globals& globals, const CompileFlags& flags, const ReportParts& parts);

}  // namespace ttc
