// What a rewritten file keeps beside the program, as extra files of the archive: the file it was made from, and calls
// with the outputs that they have to give.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "session/cases.h"
#include "session/checks.h"
#include "session/model_source.h"

namespace ttc {

// The whole original, for `ttc undo`; where the source was rewritten itself, the one that it keeps stays.
void keep_original(ir::Model& model, const ModelSource& source);
// The file that the model was made from.
struct Original {
  std::vector<std::byte> bytes;
  std::string format, sha256;
};
// Throws Error: bad_file where the model has no manifest or what it keeps is damaged, check_failed where it keeps none,
// saying what cannot be taken back; its report is {original, input, rewrites, packed}.
Original undo(const ir::Model& model);
// What the manifest says of the file with this hash: {sha256, format, torch}, among the inputs of all compiles that
// made the model; nullptr where none of them is it. "": the input of the first compile. Throws Error (bad_file, without
// a file name).
const nlohmann::json* input_of(const nlohmann::json& manifest, const std::string& sha256);
// Its bytes; none where the file keeps none. Throws Error (bad_file) where they are damaged.
std::optional<std::vector<std::byte>> original_of(const ir::Model& model);

// A call, or steps of calls, that the model carries along with what each output has to reach.
struct EmbeddedTest {
  std::string name;  // "", "alt", "steps"
  std::vector<Case> cases;
  double pcc = 0.99;
};
struct TestResult {
  std::string name;
  std::vector<Check> checks;
  std::string problem = {};  // why there are no checks
  bool pass() const;
};

// Embeds the calls of recorded files (ways_to_call). Outputs that they lack are those of `plain`, the model before it
// was rewritten, in LibTorch. Throws Error (usage) where a file has no call of the model.
void embed_tests(ir::Model& model, const std::shared_ptr<const ir::Model>& plain, const std::vector<std::string>& ios,
                 double pcc);
// What a compile's result is to carry along.
struct Luggage {
  bool original = false;
  std::vector<std::string> tests = {};  // files of calls
  double pcc = 0.99;                    // that each output of these has to reach
};
// Throws Error (check_failed) where the model does not pass its own tests on the device.
void carry_along(const ModelSource& source, const std::shared_ptr<ir::Model>& model, const Luggage& luggage);
// The same of calls in memory. Where not even LibTorch gives their outputs, they stay without.
void embed_calls(ir::Model& model, const std::shared_ptr<const ir::Model>& plain, SafeTensors calls, double pcc);
std::vector<EmbeddedTest> embedded_tests(const ir::Model& model);
// On the device.
std::vector<TestResult> run_embedded(const std::shared_ptr<const ir::Model>& model,
                                     const ttrt::ExecutorOptions& options);

}  // namespace ttc
