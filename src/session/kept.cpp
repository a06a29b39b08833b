// Both are text: PyTorch decodes every extra file of a .pt2.
#include "session/kept.h"

#include <algorithm>

#include "formats/safetensors.h"
#include "ir/manifest_name.h"
#include "session/index_notes.h"
#include "session/steps.h"
#include "session/values.h"
#include "support/base64.h"
#include "support/error.h"
#include "support/json_util.h"
#include "support/progress.h"
#include "support/sha256.h"

namespace ttc {
namespace {

constexpr std::string_view original_name = "ttc_original.base64", tests_name = "ttc_tests.json";

std::string name_of(const InputOptions& way) { return way.io_steps ? "steps" : way.io_prefix; }

// Adds the outputs that these cases expect to those that the file has of them.
void add_expected(const std::vector<Case>& cases, SafeTensors& file) {
  for (const Case& one : cases)
    for (std::size_t k = 0; k < one.expected.size(); ++k)
      if (one.expected[k])
        file.tensors.emplace((one.name.empty() ? "" : one.name + ".") + "out" + std::to_string(k),
                             own_weight(*one.expected[k]));
}

Json call_json(const InputOptions& way, double pcc) {
  return {{"prefix", way.io_prefix}, {"steps", way.io_steps}, {"pcc", pcc}};
}

Json file_json(Json calls, const SafeTensors& file) {
  const std::string bytes = safetensors_bytes(file);
  return {{"calls", std::move(calls)}, {"tensors", base64(std::as_bytes(std::span(bytes)))}};
}

const Json* kept_json(const ir::Model& model, std::string_view name, Json& into) {
  const auto found = model.extra.find(name);
  if (found == model.extra.end()) return nullptr;
  try {
    into = parse_json(found->second.str());
  } catch (const Error& error) {
    throw add_context(error, std::string(name)).in_file(model.info.path);
  }
  return &into;
}

// What a file without its original has lost: the weights in other formats, the graph.
Error original_missing(const ir::Model& model, const Json& manifest) {
  std::map<std::string, std::size_t> formats;
  for (const Json& entry : as_array(member(manifest, "precision")))
    if (const Json* format = find_member(entry, "weight_format")) ++formats[as_string(*format)];
  std::string weights;
  for (const auto& [format, count] : formats)
    weights += (weights.empty() ? "" : ", ") + std::to_string(count) + " in " + format;
  std::size_t rewrites = as_array(member(manifest, "journal")).size();
  if (const Json* earlier = find_member(manifest, "earlier"))
    for (const Json& one : as_array(*earlier)) rewrites += as_array(member(one, "journal")).size();
  const Json& input = *input_of(manifest, "");
  Json report{{"original", false}, {"input", input}, {"rewrites", rewrites}, {"packed", Json::object()}};
  for (const auto& [format, count] : formats) report["packed"][format] = count;
  return Error(Exit::check_failed, model.info.path,
               "the original is not kept: " + std::to_string(rewrites) + " rewrites cannot be taken back, weights of " +
                   (weights.empty() ? "no node" : weights) + " are packed; its SHA-256 was " +
                   as_string(member(input, "sha256")),
               "compile --keep-original keeps it")
      .with_report(report.dump());
}

}  // namespace

bool TestResult::pass() const {
  return problem.empty() && !checks.empty() && std::ranges::all_of(checks, [](const Check& c) { return c.pass; });
}

void keep_original(ir::Model& model, const ModelSource& source) {
  if (!model.extra.contains(original_name)) model.extra[std::string(original_name)] = base64(source.content());
}

const Json* input_of(const Json& manifest, const std::string& sha256) {
  std::vector<const Json*> inputs;
  if (const Json* earlier = find_member(manifest, "earlier"))
    for (const Json& one : as_array(*earlier)) inputs.push_back(&member(one, "input"));
  inputs.push_back(&member(manifest, "input"));
  for (const Json* input : inputs)
    if (sha256.empty() || as_string(member(*input, "sha256")) == sha256) return input;
  return nullptr;
}

std::optional<std::vector<std::byte>> original_of(const ir::Model& model) {
  const auto found = model.extra.find(original_name);
  if (found == model.extra.end()) return std::nullopt;
  try {
    return from_base64(found->second.str());
  } catch (const Error& error) {
    throw add_context(error, std::string(original_name)).in_file(model.info.path);
  }
}

void embed_tests(ir::Model& model, const std::shared_ptr<const ir::Model>& plain, const std::vector<std::string>& ios,
                 double pcc) {
  Json files = Json::array();
  for (const std::string& io : ios) {
    SafeTensors file = read_safetensors(io);
    Json calls = Json::array();
    for (const InputOptions& way : ways_to_call(file)) {
      std::vector<Case> cases = recorded_cases(*plain, file, way);
      if (!std::ranges::all_of(cases, [&](const Case& one) { return fits(model, one); })) continue;
      expect_cpu(plain, cases);
      add_expected(cases, file);
      calls.push_back(call_json(way, pcc));
    }
    if (calls.empty())
      throw usage_error(io + " holds no call that fits the model", "its inputs are named in0, in1, ...");
    files.push_back(file_json(std::move(calls), file));
  }
  model.extra[std::string(tests_name)] = Json{{"tests", 1}, {"files", files}}.dump();
}

void embed_calls(ir::Model& model, const std::shared_ptr<const ir::Model>& plain, SafeTensors calls, double pcc) {
  Json ways = Json::array();
  for (const InputOptions& way : ways_to_call(calls)) {
    std::vector<Case> cases = recorded_cases(*plain, calls, way);
    try {
      expect_cpu(plain, cases);
      add_expected(cases, calls);
    } catch (const Error&) {  // it fails there as well
    }
    ways.push_back(call_json(way, pcc));
  }
  model.extra[std::string(tests_name)] =
      Json{{"tests", 1}, {"files", Json::array({file_json(std::move(ways), calls)})}}.dump();
}

Original undo(const ir::Model& model) {
  const auto manifest = model.extra.find(manifest_name);
  if (manifest == model.extra.end())
    throw bad_file(model.info.path, "there is nothing to undo: it carries no manifest",
                   "only rewritten files have one");
  const Json root = parse_json(manifest->second.str());
  auto bytes = original_of(model);
  if (!bytes) throw original_missing(model, root);
  Phase phase("hashing the original", bytes->size(), Phase::Unit::bytes);
  const std::string hash = sha256_hex(*bytes, &phase);
  const Json* const input = input_of(root, hash);
  if (input == nullptr)
    throw bad_file(model.info.path, "the original that it keeps is damaged: its hash is not one of the manifest");
  return {.bytes = std::move(*bytes), .format = as_string(member(*input, "format")), .sha256 = hash};
}

void carry_along(const ModelSource& source, const std::shared_ptr<ir::Model>& model, const Luggage& luggage) {
  if (luggage.original) keep_original(*model, source);
  if (luggage.tests.empty()) return;
  embed_tests(*model, source.read(), luggage.tests, luggage.pcc);
  for (const TestResult& test : run_embedded(model, {.profile = profile_for(*model, "")})) {
    if (test.pass()) continue;
    std::string what = test.problem;
    for (const Check& check : test.checks)
      if (!check.pass && what.empty())
        what = check.output +
               (check.problem.empty() ? " has a PCC of " + std::to_string(check.metrics.pcc) : " " + check.problem);
    throw Error(Exit::check_failed, source.path(), "the result fails the calls to embed: " + what,
                "--test-pcc sets what they have to reach; ttc compare shows where it is lost");
  }
}

std::vector<EmbeddedTest> embedded_tests(const ir::Model& model) {
  Json json;
  if (kept_json(model, tests_name, json) == nullptr) return {};
  try {
    std::vector<EmbeddedTest> out;
    for (const Json& kept : as_array(member(json, "files"))) {
      const SafeTensors file =
          read_safetensors(MappedFile::hold(std::string(tests_name), from_base64(as_string(member(kept, "tensors")))));
      for (const Json& call : as_array(member(kept, "calls"))) {
        const InputOptions way{.io_prefix = as_string(member(call, "prefix")),
                               .io_steps = as_bool(member(call, "steps"))};
        out.push_back(
            {.name = name_of(way), .cases = recorded_cases(model, file, way), .pcc = as_double(member(call, "pcc"))});
      }
    }
    return out;
  } catch (const Error& error) {
    throw add_context(error, std::string(tests_name)).in_file(model.info.path);
  }
}

std::vector<TestResult> run_embedded(const std::shared_ptr<const ir::Model>& model,
                                     const ttrt::ExecutorOptions& options) {
  std::vector<TestResult> out;
  for (const EmbeddedTest& test : embedded_tests(*model)) {
    TestResult& result = out.emplace_back(TestResult{.name = test.name, .checks = {}});
    try {
      ttrt::Executor executor(model, options);
      StepRunner steps(executor, test.cases);
      IndexNotes notes(model, executor, test.cases);
      for (std::size_t i = 0; i < test.cases.size(); ++i) {
        const auto& outputs = steps.run(i);
        for (Check& check : check_outputs(test.cases[i], outputs, {.pcc = test.pcc}, true))
          result.checks.push_back(std::move(check));
        notes.keep(i, outputs);
      }
      notes.add(result.checks);
      if (result.checks.empty()) result.problem = "it has no output to compare";
    } catch (const Error& error) {
      result.problem = error.what();
    }
  }
  return out;
}

}  // namespace ttc
