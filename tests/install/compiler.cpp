// Compiles, checks, saves and compares a model through the installed library.
//   compiler MODEL.pt2 MODEL.io.safetensors MODEL.pt OUT.pt2 (BERT; the .pt carries no shapes)
#include <ttc/ttc.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>

#define EXPECT(condition)                                        \
  if (!(condition)) {                                            \
    std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
    return 1;                                                    \
  }

namespace {

using namespace ttc::api;

// The error of f(), or one of Kind::bug that says there was none.
template <typename F>
Error error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  return {Error::Kind::bug, "no error"};
}

bool lists(const std::vector<Listed>& all, const std::string& name) {
  return std::any_of(all.begin(), all.end(),
                     [&](const Listed& one) { return one.name == name && !one.summary.empty(); });
}

int compiles(const std::string& path, const std::string& io, const std::string& out) {
  const Model model = Model::load(path);
  EXPECT(!model.is_rewritten() && model.path() == path && model.sha256().size() == 64);
  const CompileReport dry = check(model);
  EXPECT(dry.nodes > 0 && dry.device_nodes + dry.cpu_nodes == dry.nodes && dry.cpu_nodes == std::ssize(dry.fallbacks));
  const Compiled compiled = compile(model, {.weight_dtype = {{"*", Format::bfloat8_b}}});
  const CompileReport& report = compiled.report;
  EXPECT(!model.is_rewritten() && compiled.model.is_rewritten());
  EXPECT(report.device_nodes == dry.device_nodes && report.weight_bytes_out < dry.weight_bytes_out);
  EXPECT(std::any_of(report.modules.begin(), report.modules.end(),
                     [](const auto& m) { return m.op == "tt.linear" && m.weight_format == "bfloat8_b"; }));
  EXPECT(report.fits && report.transfers > 0 && !report.passes.empty() && !report.conversions.empty());
  EXPECT(report.json.find("\"conversions\"") != std::string::npos);
  EXPECT(report.summary.find("nodes on device") != std::string::npos);

  // The file that was written is the model that is in memory.
  compiled.model.save(out);
  const Model saved = Model::load(out);
  EXPECT(saved.is_rewritten() && saved.sha256() != model.sha256());
  const CompareOptions inputs{.io = io, .pcc = 0.99};
  const Comparison of_memory = compare(compiled.model, inputs), of_file = compare(saved, inputs);
  EXPECT(of_memory.pass && of_file.pass && of_memory.rows.size() > 20 && of_memory.rows.size() == of_file.rows.size());
  for (std::size_t i = 0; i < of_file.rows.size(); ++i) EXPECT(of_memory.rows[i].max_abs == of_file.rows[i].max_abs);
  const Comparison strict = compare(saved, {.io = io, .max_rel = 0.0});
  EXPECT(!strict.pass && strict.first_failure && !strict.rows[*strict.first_failure].pass);

  // A plain model is compiled first; the same bytes are the same model.
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const Model memory = Model::load(std::as_bytes(std::span(bytes)), "bert");
  EXPECT(memory.sha256() == model.sha256());
  const Comparison plain = compare(memory, {.io = io, .by_module = true});
  EXPECT(plain.pass && plain.notes.size() == 1 && plain.rows.size() < of_file.rows.size());
  return 0;
}

// What register_module_replacement_dict does: composites first, one module's formats by its entry.
int swaps(const std::string& path) {
  const Model model = Model::load(path);
  const std::vector<ReplacementMap> maps = {
      {{"BertSelfAttention", {.to = "TTNNSelfAttention"}}},
      {{"torch.nn.Linear", {.to = "TTNNLinearLLama"}},
       {"module:re:.*layer\\.1\\.output\\.dense", {.to = "TTNNLinear", .weight_dtype = Format::bfloat4_b}}}};
  const CompileReport report = check(model, {.replace = maps});
  std::size_t attention = 0, coarse = 0;
  for (const SwappedModule& one : report.swapped) {
    EXPECT(one.map == (one.to == "TTNNSelfAttention" ? 0 : 1));
    attention += one.to == "TTNNSelfAttention";
    EXPECT(one.map == 0 || one.klass.ends_with(".Linear"));
    EXPECT(one.path.find("attention.self") == std::string::npos || one.map == 0);
  }
  for (const ReplacedModule& one : report.modules) coarse += one.weight_format == "bfloat4_b";
  EXPECT(attention == 2 && coarse == 1 && report.swapped.size() > 6);
  const std::vector<ReplacementMap> misspelt = {{{"torch.nn.Linear", {.to = "TTNNLinaer"}}}};
  const Error unknown = error_of([&] { check(model, {.replace = misspelt}); });
  EXPECT(unknown.kind() == Error::Kind::usage && unknown.hint().find("'TTNNLinear'") != std::string::npos);
  const std::vector<ReplacementMap> strict = {{{"torch.nn.Linear", {.to = "TTNNLinearGelu", .fallback = false}}}};
  EXPECT(error_of([&] { check(model, {.replace = strict}); }).kind() == Error::Kind::unsupported);
  return 0;
}

// What a file proves; where accuracy is lost, and which precision is enough.
int proves(const std::string& path, const std::string& io, const std::string& out) {
  const Model model = Model::load(path);
  const CompileOptions coarse{.weight_dtype = {{"model.encoder.layer.1.intermediate.dense", Format::bfloat4_b}},
                              .fidelity = {{"*", Fidelity::library}},
                              .fp32_acc = {{"*", std::nullopt}},
                              .io = io,
                              .keep_original = true,
                              .embed_tests = {io}};
  compile(model, coarse).model.save(out);
  const Model saved = Model::load(out);
  const Verification verified = verify(saved);
  EXPECT(verified.pass && std::any_of(verified.findings.begin(), verified.findings.end(),
                                      [](const Finding& f) { return f.kind == "test" && f.name == "out0"; }));
  const std::string again = out + ".original.pt2", part = out + ".part.pt2", calls = out + ".safetensors";
  undo(saved, again);
  EXPECT(Model::load(again).sha256() == model.sha256() && diff(model, Model::load(again)).empty());
  const std::vector<Difference> changed = diff(model, saved);
  EXPECT(std::any_of(changed.begin(), changed.end(), [](const Difference& d) { return d.kind == "module"; }));
  EXPECT(error_of([&] { undo(compile(model).model, again); }).kind() == Error::Kind::failed);
  EXPECT(error_of([&] { verify(model); }).kind() == Error::Kind::bad_file);

  const Model layer = extract(model, "model.encoder.layer.0", {.io = io, .save_io = calls}).model;
  EXPECT(layer.path() == model.path() + ":model.encoder.layer.0" && layer.sha256().size() == 64);
  EXPECT(compile(layer).model.is_rewritten() && !bisect(layer, {}, 0.9).fails);
  layer.save(part);
  EXPECT(compare(Model::load(part), {.io = calls}).rows.size() > 5);
  EXPECT(error_of([&] { extract(model, "nonesuch"); }).kind() == Error::Kind::usage);
  const Comparison beside = compare(saved, {.mode = CompareMode::sel});  // on the call that the file carries
  EXPECT(beside.pass && beside.rows.at(0).threshold > 0.9 && beside.notes.size() == 1);

  EXPECT(!bisect(model, coarse, 0.9).fails);
  const Bisection found = bisect(model, {.weight_dtype = {{"*", Format::bfloat4_b}}, .io = io}, 0.999, true);
  EXPECT(found.fails && found.rewrite_number > 0 && !found.pass.empty() && found.runs.size() > 3);
  const PrecisionSearch search = search_precision(model, {.min_pcc = 0.999}, {.io = io});
  EXPECT(search.held_back.pcc >= 0.999 && search.text.find("weight-dtype") != std::string::npos);
  EXPECT(compile(model, search.options).report.weight_bytes_out < compile(model).report.weight_bytes_out);
  EXPECT(error_of([&] { search_precision(model, {}, {.io = io}); }).kind() == Error::Kind::usage);

  const Compatibility device = compatibility(saved),
                      left = compatibility(compile(model, {.fallback_op = {"gelu"}}).model,
                                           std::vector<std::string>{"nonesuch"});
  EXPECT(device.swapped.at("model.encoder.layer.0.output.dense") == "Linear" && device.runs == 0);
  EXPECT(!left.regressions.empty() && left.no_longer.at(0) == "nonesuch" && !left.fallbacks.at(0).expected);
  return 0;
}

int refuses(const std::string& path, const std::string& scripted) {
  const Model model = Model::load(path);
  const Error arch = error_of([&] { compile(model, {.arch = "n15"}); });
  EXPECT(arch.kind() == Error::Kind::usage && !arch.hint().empty());
  const Error activations = error_of([&] { compile(model, {.activation_dtype = Format::bfloat4_b}); });
  EXPECT(activations.kind() == Error::Kind::usage);
  EXPECT(std::string(activations.what()).find("activation_dtype") == 0);
  const Error full = error_of([&] { compile(model, {.fallback_op = {"aten.linear.default"}, .require_full = true}); });
  EXPECT(full.kind() == Error::Kind::unsupported);
  EXPECT(error_of([] { Model::load("/nonexistent.pt2"); }).kind() == Error::Kind::bad_file);
  EXPECT(error_of([] { Model::load(std::as_bytes(std::span("PK")), "x"); }).kind() == Error::Kind::bad_file);
  EXPECT(error_of([&] { compare(model, {.input = {"nobody=ones"}}); }).kind() == Error::Kind::usage);
  const Compiled compiled = compile(model);
  EXPECT(error_of([&] { compile(compiled.model); }).kind() == Error::Kind::usage);

  const Model shapeless = Model::load(scripted);
  const CompileReport without = check(shapeless);
  EXPECT(without.device_nodes == 0 && without.notes.size() == 1);
  EXPECT(without.fallbacks.at(0).reason == "DtypeUnsupported" || !without.fallbacks.at(0).detail.empty());

  EXPECT(lists(modules(), "TTNNLinearLLama") && lists(ops(), "tt.linear") && lists(passes(), "pack") &&
         lists(archs(), "n150"));
  EXPECT(!default_pipeline().empty());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  EXPECT(argc == 5);
  if (compiles(argv[1], argv[2], argv[4]) != 0 || swaps(argv[1]) != 0 ||
      proves(argv[1], argv[2], std::string(argv[4]) + ".proof.pt2") != 0 || refuses(argv[1], argv[3]) != 0)
    return 1;
  std::printf("ok, ttc %s\n", version());
  return 0;
}
