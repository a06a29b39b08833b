// Models of the C interface: loading, compiling, what rewritten files prove, searches. Options come and reports go as
// JSON.
#include "api/dispatch.h"
#include "api/options.h"
#include "api/ttrt_c_handles.h"

namespace {

using ttc::Json;
using ttrt::Error;
using namespace ttrt::c;

void fill(const std::deque<ttrt_model::Info>& infos, std::size_t index, ttrt_tensor_info* out) {
  require(out);
  if (index >= infos.size())
    throw Error(Error::Kind::usage, "index " + std::to_string(index) + " of " + std::to_string(infos.size()));
  const ttrt_model::Info& one = infos[index];
  *out = {.name = one.info.name.c_str(),
          .kind = static_cast<std::int32_t>(one.info.kind),
          .type = one.info.type ? static_cast<std::int32_t>(*one.info.type) : -1,
          .rank = one.info.has_shape ? static_cast<std::int64_t>(one.dims.size()) : -1,
          .dims = one.dims.data()};
}

ttrt::CompileOptions compile_options_of(const char* options) {
  return options == nullptr ? ttrt::CompileOptions() : ttrt::compile_options(options);
}

Json json_of(const ttc::api::Comparison& found) {
  Json rows = Json::array();
  for (const ttc::api::CompareRow& row : found.rows)
    rows.push_back({{"node", row.node},
                    {"op", row.op},
                    {"module", row.module},
                    {"source", row.source},
                    {"pcc", row.pcc},
                    {"max_abs", row.max_abs},
                    {"max_rel", row.max_rel},
                    {"snr_db", row.snr_db},
                    {"nan", row.nan},
                    {"zero", row.zero},
                    {"threshold", row.threshold},
                    {"pass", row.pass}});
  return {{"pass", found.pass}, {"rows", std::move(rows)}, {"notes", found.notes}};
}

Json json_of(const ttc::api::Verification& found) {
  Json findings = Json::array();
  for (const ttc::api::Finding& one : found.findings)
    findings.push_back({{"kind", one.kind}, {"name", one.name}, {"detail", one.detail}, {"pass", one.pass}});
  return {{"pass", found.pass}, {"findings", std::move(findings)}};
}

Json json_of(const ttc::api::Bisection& found) {
  Json runs = Json::array();
  for (const auto& run : found.runs) runs.push_back({{"what", run.what}, {"pcc", run.pcc}, {"pass", run.pass}});
  Json out{{"fails", found.fails}, {"modules", found.modules}, {"runs", std::move(runs)}};
  if (found.rewrite_number > 0)
    out["rewrite"] = {
        {"number", found.rewrite_number}, {"pass", found.pass}, {"rule", found.rule}, {"result", found.result}};
  return out;
}

Json json_of(const ttc::api::Trial& trial) {
  return {{"what", trial.what}, {"pcc", trial.pcc},       {"snr_db", trial.snr_db},
          {"top1", trial.top1}, {"cycles", trial.cycles}, {"weight_bytes", trial.weight_bytes},
          {"met", trial.met},   {"pareto", trial.pareto}};
}

Json json_of(const ttc::api::PrecisionSearch& found) {
  Json trials = Json::array();
  for (const ttc::api::Trial& trial : found.trials) trials.push_back(json_of(trial));
  return {{"trials", std::move(trials)},
          {"seen", json_of(found.seen)},
          {"held_back", json_of(found.held_back)},
          {"options", found.text}};
}

Json names_of(const std::vector<ttc::api::Listed>& rows) {
  Json out = Json::object();
  for (const ttc::api::Listed& row : rows) out[row.name] = row.summary;
  return out;
}

Json dispatchers_json() {
  Json out = Json::object();
  for (const ttrt::DispatcherInfo& one : ttrt::dispatchers()) out[one.name] = one.summary;
  return out;
}

// What has a verdict and a report, either of which may be NULL.
template <typename Found>
void give(const Found& found, int* pass, char** json) {
  if (json != nullptr) *json = new_json(json_of(found));
  if (pass != nullptr) *pass = found.pass ? 1 : 0;
}

}  // namespace

extern "C" {

ttrt_status ttrt_model_load(const char* path, ttrt_model** out) {
  return safely([&] {
    require(path, out);
    *out = new ttrt_model(ttrt::Model::load(path));
  });
}

ttrt_status ttrt_model_load_memory(const void* file, size_t bytes, const char* name, ttrt_model** out) {
  return safely([&] {
    require(file, name, out);
    *out = new ttrt_model(ttrt::Model::load(std::span(static_cast<const std::byte*>(file), bytes), name));
  });
}

ttrt_status ttrt_model_compile(const ttrt_model* model, const char* options, ttrt_model** out, char** report) {
  return safely([&] {
    require(model, out);
    ttrt::Compiled compiled = ttrt::compile(model->model, compile_options_of(options));
    auto made = std::make_unique<ttrt_model>(std::move(compiled.model));
    if (report != nullptr) *report = new_string(compiled.report.json);
    *out = made.release();
  });
}

ttrt_status ttrt_model_save(const ttrt_model* model, const char* path) {
  return safely([&] {
    require(model, path);
    model->model.save(path);
  });
}

void ttrt_model_free(ttrt_model* model) { delete model; }
int ttrt_model_is_rewritten(const ttrt_model* model) { return model->model.is_rewritten() ? 1 : 0; }
void ttrt_string_free(char* text) { std::free(text); }

size_t ttrt_model_input_count(const ttrt_model* model) { return model->inputs.size(); }
size_t ttrt_model_output_count(const ttrt_model* model) { return model->outputs.size(); }
ttrt_status ttrt_model_input(const ttrt_model* model, size_t index, ttrt_tensor_info* out) {
  return safely([&] { fill(model->inputs, index, out); });
}
ttrt_status ttrt_model_output(const ttrt_model* model, size_t index, ttrt_tensor_info* out) {
  return safely([&] { fill(model->outputs, index, out); });
}

ttrt_status ttrt_model_check(const ttrt_model* model, const char* options, char** report) {
  return safely([&] {
    require(model, report);
    *report = new_string(ttc::api::check(model->model, compile_options_of(options)).json);
  });
}

ttrt_status ttrt_model_compare(const ttrt_model* model, const char* options, int* pass, char** json) {
  return safely([&] {
    require(model);
    const auto chosen = options == nullptr ? ttc::api::CompareOptions() : ttrt::compare_options(options);
    give(ttrt::compare(model->model, chosen), pass, json);
  });
}

ttrt_status ttrt_model_verify(const ttrt_model* model, int* pass, char** json) {
  return safely([&] {
    require(model);
    give(ttc::api::verify(model->model), pass, json);
  });
}

ttrt_status ttrt_model_undo(const ttrt_model* model, const char* path) {
  return safely([&] {
    require(model, path);
    ttc::api::undo(model->model, path);
  });
}

ttrt_status ttrt_model_diff(const ttrt_model* before, const ttrt_model* after, char** json) {
  return safely([&] {
    require(before, after, json);
    Json out = Json::array();
    for (const ttc::api::Difference& one : ttc::api::diff(before->model, after->model))
      out.push_back({{"kind", one.kind}, {"name", one.name}, {"before", one.before}, {"after", one.after}});
    *json = new_json(out);
  });
}

ttrt_status ttrt_model_extract(const ttrt_model* model, const char* module, const char* options, ttrt_model** out) {
  return safely([&] {
    require(model, module, out);
    const auto chosen = options == nullptr ? ttc::api::ExtractOptions() : ttrt::extract_options(options);
    *out = new ttrt_model(ttc::api::extract(model->model, module, chosen).model);
  });
}

ttrt_status ttrt_model_bisect(const ttrt_model* model, const char* options, double pcc, int by_rewrite, char** json) {
  return safely([&] {
    require(model, json);
    *json = new_json(json_of(ttc::api::bisect(model->model, compile_options_of(options), pcc, by_rewrite != 0)));
  });
}

ttrt_status ttrt_model_search_precision(const ttrt_model* model, const char* goal, const char* options,
                                        ttrt_model** out, char** json) {
  return safely([&] {
    require(model, goal);
    const auto found = ttc::api::search_precision(model->model, ttrt::search_goal(goal), compile_options_of(options));
    auto made =
        out == nullptr ? nullptr : std::make_unique<ttrt_model>(ttrt::compile(model->model, found.options).model);
    if (json != nullptr) *json = new_json(json_of(found));
    if (out != nullptr) *out = made.release();
  });
}

ttrt_status ttrt_names(const char* what, char** json) {
  return safely([&] {
    require(what, json);
    const std::string_view kind = what;
    if (kind != "passes" && kind != "ops" && kind != "modules" && kind != "archs" && kind != "dispatchers")
      throw Error(Error::Kind::usage, "there are no '" + std::string(kind) + "'",
                  "passes, ops, modules, archs and dispatchers have names");
    *json = new_json(kind == "passes"    ? names_of(ttc::api::passes())
                     : kind == "ops"     ? names_of(ttc::api::ops())
                     : kind == "modules" ? names_of(ttc::api::modules())
                     : kind == "archs"   ? names_of(ttc::api::archs())
                                         : dispatchers_json());
  });
}

ttrt_status ttrt_load_plugin(const char* path) {
  return safely([&] {
    require(path);
    ttrt::load_plugin(path);
  });
}

}  // extern "C"
