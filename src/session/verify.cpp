// Each part is looked at whatever the others say: a damaged weight also fails the tests, and both are told.
#include "session/verify.h"

#include <algorithm>

#include "formats/seal.h"
#include "formats/zip_read.h"
#include "ir/manifest_name.h"
#include "support/error.h"
#include "support/json_util.h"
#include "support/progress.h"
#include "support/sha256.h"

namespace ttc {
namespace {

void verify_archive(const ModelSource& source, Verification& out) {
  try {
    const ZipArchive archive(source.file());
    archive.check_contents();
    out.findings.push_back({.kind = "archive",
                            .name = {},
                            .detail = std::to_string(archive.entries().size()) + " records have their checksums"});
  } catch (const Error& error) {
    out.findings.push_back({.kind = "archive", .name = {}, .detail = error.what(), .pass = false});
  }
}

void verify_weights(const Seal& stated, const Seal& found, Verification& out) {
  const std::size_t before = out.findings.size();
  const auto fail = [&](const std::string& name, const char* what) {
    out.findings.push_back({.kind = "weight", .name = name, .detail = what, .pass = false});
  };
  for (const auto& [name, hash] : stated.weights) {
    const auto there = found.weights.find(name);
    if (there == found.weights.end())
      fail(name, "is no longer there");
    else if (there->second != hash)
      fail(name, "its bytes are not the ones that were written");
    else
      ++out.weights;
  }
  for (const auto& [name, hash] : found.weights)
    if (!stated.weights.contains(name)) fail(name, "was not there when the file was written");
  if (out.findings.size() == before)
    out.findings.push_back(
        {.kind = "weight", .name = {}, .detail = std::to_string(out.weights) + " weights as they were written"});
}

void verify_seal(const ir::Model& model, Verification& out) {
  const std::optional<Seal> stated = seal_in_manifest(model);
  if (!stated) {
    out.findings.push_back(
        {.kind = "manifest", .name = {}, .detail = "it has no seal: compile the model again", .pass = false});
    return;
  }
  const Seal found = seal_of(model);
  verify_weights(*stated, found, out);
  const auto part = [&](const char* kind, bool same, const char* otherwise) {
    out.findings.push_back({.kind = kind, .name = {}, .detail = same ? "as it was written" : otherwise, .pass = same});
  };
  part("graph", stated->graph == found.graph, "its nodes are not the ones that were written");
  part("manifest", stated->manifest == found.manifest,
       "its journal, placement or counts are not the ones that were written");
}

void verify_original(const ir::Model& model, Verification& out) {
  const auto original = original_of(model);
  if (!original) return;
  const Json manifest = parse_json(model.extra.find(manifest_name)->second.str());
  Phase phase("hashing the original", original->size(), Phase::Unit::bytes);
  const bool same = input_of(manifest, sha256_hex(*original, &phase)) != nullptr;
  out.findings.push_back({.kind = "original",
                          .name = {},
                          .detail = same ? "is kept, with the hash of the file that was compiled"
                                         : "what is kept is not the file that was compiled",
                          .pass = same});
}

}  // namespace

bool Verification::pass() const {
  return std::ranges::all_of(findings, [](const Finding& f) { return f.pass; }) &&
         std::ranges::all_of(tests, [](const TestResult& t) { return t.pass(); });
}

Verification verify_file(const ModelSource& source, const std::shared_ptr<const ir::Model>& model,
                         const ttrt::ExecutorOptions& options) {
  if (!model->extra.contains(manifest_name))
    throw bad_file(source.path(), "there is nothing to verify: it carries no manifest",
                   "ttc compile writes one; a model that was not rewritten has none");
  Verification out;
  verify_archive(source, out);
  try {
    verify_seal(*model, out);
    verify_original(*model, out);
  } catch (const Error& error) {
    out.findings.push_back({.kind = "manifest", .name = {}, .detail = error.what(), .pass = false});
  }
  out.tests = run_embedded(model, options);
  return out;
}

}  // namespace ttc
