/* What a C program does with the installed library: compile, save, load, run on the device, compare with recorded
 * values. user_c MODEL.pt2 FOLDER (as user.cpp) */
#include <ttrt/ttrt_c.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "recorded.h"

static int failures = 0;

#define EXPECT(condition)                                                                           \
  do {                                                                                              \
    if (!(condition)) {                                                                             \
      fprintf(stderr, "user.c:%d: %s (last error: %s)\n", __LINE__, #condition, ttrt_last_error()); \
      ++failures;                                                                                   \
    }                                                                                               \
  } while (0)

static double largest_difference(const ttrt_tensor* tensor) {
  const void* data = NULL;
  size_t bytes = 0, i = 0;
  double largest = 0;
  EXPECT(ttrt_tensor_data(tensor, &data, &bytes) == TTRT_OK);
  EXPECT(bytes == sizeof recorded_exact);
  for (i = 0; i < bytes / sizeof(float); ++i)
    largest = fmax(largest, fabs((double)((const float*)data)[i] - (double)recorded_exact[i]));
  return largest;
}

static void done(char** text) {
  ttrt_string_free(*text);
  *text = NULL;
}

/* What a rewritten file proves, how models differ, where accuracy is lost: `saved` keeps the file that it was made
 * from. */
static void artifacts(const ttrt_model* plain, const char* saved, const char* folder) {
  char path[4096];
  ttrt_model *file = NULL, *back = NULL, *part = NULL, *chosen = NULL;
  char *json = NULL, *goal = NULL;
  int pass = -1;
  EXPECT(ttrt_names("pipelines", &json) == TTRT_USAGE && json == NULL);
  EXPECT(ttrt_names("modules", &json) == TTRT_OK && strstr(json, "\"TTNNLinear\"") != NULL);
  done(&json);
  EXPECT(ttrt_load_plugin("/nonexistent.so") == TTRT_BAD_FILE);
  EXPECT(ttrt_model_check(plain, "{\"arch\": \"p150\"}", &json) == TTRT_OK && strstr(json, "p150") != NULL);
  done(&json);
  EXPECT(ttrt_model_verify(plain, &pass, NULL) == TTRT_BAD_FILE && pass == -1);
  EXPECT(ttrt_model_load(saved, &file) == TTRT_OK);
  if (file == NULL) return;
  EXPECT(ttrt_model_verify(file, &pass, &json) == TTRT_OK && pass == 1 && strstr(json, "\"findings\"") != NULL);
  done(&json);
  pass = -1;
  EXPECT(ttrt_model_compare(file, "{\"by\": \"layer\"}", &pass, NULL) == TTRT_USAGE && pass == -1);
  EXPECT(ttrt_model_compare(file, "{\"by\": \"module\"}", &pass, &json) == TTRT_OK && pass == 1);
  EXPECT(json != NULL && strstr(json, "\"pcc\"") != NULL);
  done(&json);
  EXPECT(ttrt_model_diff(plain, file, &json) == TTRT_OK && strstr(json, "tt.linear") != NULL);
  done(&json);
  snprintf(path, sizeof path, "%s/undone_by_c.pt2", folder);
  EXPECT(ttrt_model_undo(plain, path) == TTRT_BAD_FILE);
  EXPECT(ttrt_model_undo(file, path) == TTRT_OK && ttrt_model_load(path, &back) == TTRT_OK);
  EXPECT(back != NULL && ttrt_model_diff(plain, back, &json) == TTRT_OK && strcmp(json, "[]") == 0);
  done(&json);
  EXPECT(ttrt_model_extract(plain, "no.such", NULL, &part) == TTRT_USAGE && part == NULL);
  EXPECT(ttrt_model_extract(plain, "model.encoder.layer.0.output.dense", NULL, &part) == TTRT_OK);
  EXPECT(part != NULL && ttrt_model_input_count(part) == 1);
  EXPECT(ttrt_model_bisect(part, "{\"weight_dtype\": \"bfloat4_b\"}", 0.9999, 0, &json) == TTRT_OK);
  EXPECT(json != NULL && strstr(json, "\"fails\":true") != NULL);
  done(&json);
  EXPECT(ttrt_model_search_precision(part, "{}", NULL, &chosen, NULL) == TTRT_USAGE && chosen == NULL);
  EXPECT(ttrt_model_search_precision(part, "{\"min_pcc\": 0.99}", NULL, &chosen, &goal) == TTRT_OK);
  EXPECT(chosen != NULL && ttrt_model_is_rewritten(chosen) && strstr(goal, "\"trials\"") != NULL);
  done(&goal);
  ttrt_model_free(file);
  ttrt_model_free(back);
  ttrt_model_free(part);
  ttrt_model_free(chosen);
}

/* Rules that are read, refused and taken back while a session lives. */
static void dispatch(const ttrt_model* model, ttrt_tensor* const* inputs, const char* folder) {
  static const char* rules = "version: \"1.0\"\nkernel_locks:\n  tt.layer_norm: tt.layer_norm.host\n";
  ttrt_session* session = NULL;
  ttrt_tensor* outputs[2] = {NULL, NULL};
  char *json = NULL, *messages = NULL;
  int ok = -1;
  char options[4200];
  FILE* file = NULL;
  snprintf(options, sizeof options, "%s/rules.yaml", folder);
  file = fopen(options, "w");
  if (file == NULL) return;
  fputs("version: \"1.0\"\n", file);
  fclose(file);
  snprintf(options, sizeof options, "{\"dispatch_mode\": \"hot_reload\", \"dispatch_config\": \"%s/rules.yaml\"}",
           folder);
  EXPECT(ttrt_session_create(model, options, &session) == TTRT_OK);
  if (session == NULL) return;
  EXPECT(ttrt_session_reload_rules(session, "kernel_locks: 3", &ok, &messages) == TTRT_OK && ok == 0);
  EXPECT(messages != NULL && strlen(messages) > 2);
  EXPECT(ttrt_session_reload_rules(session, rules, &ok, NULL) == TTRT_OK && ok == 1);
  EXPECT(ttrt_session_run(session, (const ttrt_tensor* const*)inputs, 3, NULL, outputs, 2) == TTRT_OK);
  EXPECT(ttrt_session_telemetry(session, &json) == TTRT_OK && strstr(json, "tt.layer_norm.host") != NULL);
  EXPECT(ttrt_session_rollback_rules(session, &ok) == TTRT_OK && ok == 1);
  EXPECT(ttrt_session_explain(session, "no_such_node", &messages) == TTRT_USAGE);
  ttrt_tensor_free(outputs[0]);
  ttrt_tensor_free(outputs[1]);
  done(&json);
  done(&messages);
  ttrt_session_free(session);
}

int main(int argc, char** argv) {
  char path[4096];
  ttrt_model *plain = NULL, *compiled = NULL, *loaded = NULL;
  ttrt_session* session = NULL;
  ttrt_tensor *inputs[3] = {NULL, NULL, NULL}, *outputs[2] = {NULL, NULL}, *fetched = NULL, *placed = NULL;
  ttrt_tensor_info info;
  int64_t ids[20], ones[20], zeros[20];
  const int64_t shape[2] = {2, 10};
  const uint8_t keep[2] = {0, 1};
  char *report = NULL, *json = NULL;
  const void* data = NULL;
  int i = 0;
  if (argc != 3) return 2;
  snprintf(path, sizeof path, "%s/compiled_by_c.pt2", argv[2]);

  EXPECT(ttrt_model_load("/nonexistent.pt2", &plain) == TTRT_BAD_FILE && plain == NULL);
  EXPECT(strlen(ttrt_last_error()) > 0);
  EXPECT(ttrt_model_load(argv[1], NULL) == TTRT_USAGE);
  EXPECT(ttrt_model_load(argv[1], &plain) == TTRT_OK);
  EXPECT(ttrt_model_input_count(plain) == 3 && ttrt_model_output_count(plain) == 2);
  EXPECT(ttrt_model_input(plain, 3, &info) == TTRT_USAGE);
  EXPECT(ttrt_model_input(plain, 0, &info) == TTRT_OK);
  EXPECT(info.type == TTRT_INT64 && info.rank == 2 && info.dims[1].size == 10);
  EXPECT(strcmp(ttrt_element_name(info.type), "int64") == 0 && ttrt_element_size(info.type) == 8);

  EXPECT(ttrt_model_compile(plain, "{\"weight_format\": {}}", &compiled, NULL) == TTRT_USAGE);
  EXPECT(strstr(ttrt_last_hint(), "weight_dtype") != NULL);
  EXPECT(ttrt_model_compile(plain, "{\"fidelity\": {\"*\": \"HiFi9\"}}", &compiled, NULL) == TTRT_USAGE);
  EXPECT(ttrt_model_compile(plain, "{\"keep_original\": true}", &compiled, &report) == TTRT_OK);
  EXPECT(report != NULL && strstr(report, "\"nodes\"") != NULL);
  EXPECT(ttrt_model_is_rewritten(compiled) && !ttrt_model_is_rewritten(plain));
  EXPECT(ttrt_model_save(compiled, path) == TTRT_OK);
  EXPECT(ttrt_model_load(path, &loaded) == TTRT_OK);
  if (failures > 0) return 1;

  for (i = 0; i < 20; ++i) ids[i] = i + 1, ones[i] = 1, zeros[i] = 0;
  EXPECT(ttrt_tensor_create(TTRT_INT64, shape, 2, ids, 8, &inputs[0]) == TTRT_USAGE);
  EXPECT(ttrt_tensor_create(TTRT_INT64, shape, 2, ids, sizeof ids, &inputs[0]) == TTRT_OK);
  EXPECT(ttrt_tensor_view(TTRT_INT64, shape, 2, ones, sizeof ones, &inputs[1]) == TTRT_OK);
  EXPECT(ttrt_tensor_view(TTRT_INT64, shape, 2, zeros, sizeof zeros, &inputs[2]) == TTRT_OK);

  EXPECT(ttrt_session_create(loaded, "{\"numerics\": \"slow\"}", &session) == TTRT_USAGE);
  EXPECT(ttrt_session_create(loaded, "{\"numerics\": \"exact\", \"profile\": true}", &session) == TTRT_OK);
  if (failures > 0) return 1;
  EXPECT(ttrt_session_run(session, (const ttrt_tensor* const*)inputs, 3, NULL, outputs, 1) == TTRT_USAGE);
  EXPECT(ttrt_session_run(session, (const ttrt_tensor* const*)inputs, 3, NULL, outputs, 2) == TTRT_OK);
  EXPECT(largest_difference(outputs[1]) == 0);
  ttrt_tensor_free(outputs[0]);
  ttrt_tensor_free(outputs[1]);

  EXPECT(ttrt_session_run(session, (const ttrt_tensor* const*)inputs, 3, keep, outputs, 2) == TTRT_OK);
  EXPECT(ttrt_tensor_is_resident(outputs[1]));
  EXPECT(ttrt_tensor_data(outputs[1], &data, NULL) == TTRT_USAGE);
  EXPECT(ttrt_session_fetch(session, outputs[1], &fetched) == TTRT_OK);
  EXPECT(largest_difference(fetched) == 0);
  ttrt_tensor_free(outputs[0]);
  ttrt_tensor_free(outputs[1]);
  EXPECT(ttrt_session_place(session, 99, inputs[0], &placed) == TTRT_USAGE && placed == NULL);
  EXPECT(ttrt_session_place(session, 0, inputs[0], &placed) == TTRT_OK && placed != NULL);
  ttrt_tensor_free(inputs[0]);
  inputs[0] = placed;
  EXPECT(ttrt_session_run(session, (const ttrt_tensor* const*)inputs, 3, NULL, outputs, 2) == TTRT_OK);
  EXPECT(largest_difference(outputs[1]) == 0);
  EXPECT(ttrt_session_report(session, &json) == TTRT_OK);
  EXPECT(strstr(json, "\"runs\":3") != NULL && strstr(json, "\"kernel\":\"tt.") != NULL);

  ttrt_session_free(session);
  session = NULL;
  ttrt_tensor_free(inputs[0]);
  EXPECT(ttrt_tensor_create(TTRT_INT64, shape, 2, ids, sizeof ids, &inputs[0]) == TTRT_OK);
  dispatch(loaded, inputs, argv[2]);
  artifacts(plain, path, argv[2]);

  for (i = 0; i < 3; ++i) ttrt_tensor_free(inputs[i]);
  for (i = 0; i < 2; ++i) ttrt_tensor_free(outputs[i]);
  ttrt_tensor_free(fetched);
  ttrt_session_free(session);
  ttrt_model_free(plain);
  ttrt_model_free(compiled);
  ttrt_model_free(loaded);
  ttrt_string_free(report);
  ttrt_string_free(json);
  if (failures == 0) printf("ok, C interface of ttrt %s\n", ttrt_version_string());
  return failures == 0 ? 0 : 1;
}
