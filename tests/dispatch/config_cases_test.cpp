// CONFIG: the recorded cases. Those that do better than the reference: CFG-20 (the key is the whole context), CFG-27
// (_not_in works), CFG-29 (seq_len is seq_len_q), CFG-30 and CFG-44 (devices and dtypes compare by their names, dtype
// globs are accepted), CFG-36 (unknown keys are accepted, and told with a suggestion), CFG-37 and CFG-43 (a list
// document and a bad regular expression are configuration errors).
#include <thread>

#include "dispatch/config_dispatcher.h"
#include "tests/dispatch/cases.h"
#include "tests/dispatch/fixtures.h"

using namespace dispatch_test;

namespace {

struct Setup {
  KernelRegistry kernels;
  std::vector<std::string> reports;
  ManualClock clock;
  std::unique_ptr<ConfigDispatcher> dispatcher;

  explicit Setup(const std::string& yaml, DispatchOptions options = {}, bool strict = false) {
    kernels.add({kernel("a"), kernel("b"), kernel("c")});
    dispatcher = std::make_unique<ConfigDispatcher>(
        DispatchMode::CONFIG, DispatchConfig(options), kernels,
        ModeOptions{.clock = &clock, .report = [this](const std::string& text) { reports.push_back(text); }}, strict);
    if (!yaml.empty()) dispatcher->reload_text("version: \"1.0\"\n" + yaml);
  }
  std::string cached() const { return text_at(dispatcher->telemetry(), "/rule_cache/size"); }
  std::string run_x(SelectionContext context = context_of()) { return run(*dispatcher, "op.x", context); }
  Result result(SelectionContext context = context_of()) {
    CallArgs args;
    return dispatcher->dispatch("op.x", args, &context);
  }
};

// Whether a rule with these conditions holds for the context.
bool holds(const std::string& conditions, const SelectionContext& context) {
  Setup s("dispatch_rules: [{operation: op.x, kernel: a, conditions: {" + conditions +
          "}}]\nfallback_chains: {op.x: [b]}");
  return s.run_x(context) == "a";
}

std::vector<ConfigIssue> errors_of(const std::string& yaml) { return check_config(parse_document(yaml, "")).errors; }

std::vector<std::string> error_paths(const std::string& yaml) {
  std::vector<std::string> out;
  for (const ConfigIssue& issue : errors_of(yaml)) out.push_back(issue.path);
  return out;
}

std::string rule_with(const std::string& conditions) {
  return "version: \"1.0\"\ndispatch_rules: [{operation: op.x, kernel: a, conditions: {" + conditions + "}}]";
}
std::string rule_path(const std::string& key) { return "dispatch_rules[0].conditions." + key; }

template <typename F>
SelectionContext with(F&& change) {
  SelectionContext context = context_of();
  change(context);
  return context;
}
SelectionContext batch(std::int64_t n) {
  return with([n](auto& c) { c.batch_size = n; });
}

void locks_before_rules() {
  Setup s("kernel_locks: {op.x: a}\ndispatch_rules: [{operation: op.x, kernel: b, priority: 1000}]");
  REQUIRE(s.run_x() == "a");
}

void locks_are_not_filtered() {
  Setup s("kernel_locks: {op.x: a}\nkernel_denies: [a]\nkernel_allows: [b]");
  REQUIRE(s.run_x() == "a");
}

void lock_of_a_missing_kernel() {
  Setup s("kernel_locks: {op.x: zz}\ndispatch_rules: [{operation: op.x, kernel: b}]");
  REQUIRE(s.run_x() == "b");
  REQUIRE(s.reports.size() == 1);
  REQUIRE_THAT(s.reports[0], ContainsSubstring("kernel_locks.op.x") && ContainsSubstring("'zz'"));
  const Json answer = s.dispatcher->explain_selection("op.x", context_of());
  REQUIRE(text_at(answer, "/selection_path/0/step") == "kernel_lock");
  REQUIRE(text_at(answer, "/selection_path/0/error") == "kernel_not_found");
  REQUIRE(text_at(answer, "/selection_path/1/result") == "selected");
}

void priorities() {
  REQUIRE(
      Setup("dispatch_rules: [{operation: op.x, kernel: a, priority: 10}, {operation: op.x, kernel: b, priority: 90}]")
          .run_x() == "b");
  REQUIRE(Setup("dispatch_rules: [{operation: op.x, kernel: a, priority: 49}, {operation: op.x, kernel: b}]").run_x() ==
          "b");
  REQUIRE(Setup("dispatch_rules: [{operation: op.x, kernel: a}, {operation: op.x, kernel: b, priority: 49}]").run_x() ==
          "a");
  REQUIRE(Setup("defaults: {default_priority: 20}\ndispatch_rules: [{operation: op.x, kernel: a}, {operation: op.x, "
                "kernel: b, priority: 21}]")
              .run_x() == "b");
  REQUIRE(Setup("dispatch_rules: [{operation: op.x, kernel: b}, {operation: op.x, kernel: a}]").run_x() == "b");
}

void unusable_rules_are_skipped() {
  const std::string rules =
      "dispatch_rules: [{operation: op.x, kernel: a, priority: 90}, {operation: op.x, kernel: b, priority: 10}]\n";
  REQUIRE(Setup(rules + "kernel_denies: [a]").run_x() == "b");
  REQUIRE(Setup(rules + "kernel_allows: [b]").run_x() == "b");
  REQUIRE(Setup("dispatch_rules: [{operation: op.x, kernel: nowhere, priority: 90}, {operation: op.x, kernel: b, "
                "priority: 10}]")
              .run_x() == "b");
  REQUIRE(Setup(rules + "kernel_denies: [a]\nkernel_allows: [\"*\"]").run_x() == "b");
}

void globs_are_anchored() {
  Setup s(
      "dispatch_rules: [{operation: \"attention.*\", kernel: flash_attention_v2}]\nkernel_allows: [\"flash_attn.*\", "
      "torch_sdpa]");
  s.kernels.add({kernel("flash_attention_v2", "attention.causal"), kernel("flash_attn.3", "attention.causal")});
  REQUIRE(phase_of([&] { run(*s.dispatcher, "attention.causal"); }) == Phase::FALLBACK);
  const Json answer = s.dispatcher->explain_selection("attention.causal", context_of("attention.causal"));
  REQUIRE(text_at(answer, "/selection_path/0/result") == "kernel_not_allowed");
}

void fallback_chain() {
  Setup s("fallback_chains: {op.x: [zz, a, b]}\nkernel_denies: [a]");
  for (int i = 0; i < 2; ++i) {
    const Result result = s.result();
    REQUIRE(result.kernel_id() == "b");
    REQUIRE(result.fallback_used);
    REQUIRE(result.fallback_reason == "no_rule_match");
    REQUIRE_FALSE(result.cached);
  }
}

void chain_goes_on_after_a_failure() {
  Setup s("fallback_chains: {op.x: [bad, a]}");
  s.kernels.add(throwing("bad"));
  REQUIRE(s.run_x() == "a");
  s.kernels.add(throwing("worse"));
  s.dispatcher->reload_text("version: \"1.0\"\nfallback_chains: {op.x: [bad, worse]}");
  try {
    s.run_x();
    FAIL("no error");
  } catch (const DispatchError& error) {
    REQUIRE(tried(error) == std::vector<std::string>{"bad", "worse"});
    REQUIRE(error.tried().size() == 2);
    REQUIRE_THAT(error.tried()[1].why, ContainsSubstring("worse broke"));
  }
}

void a_chosen_kernel_has_no_fallback() {
  for (const std::string where : {"kernel_locks: {op.x: bad}", "dispatch_rules: [{operation: op.x, kernel: bad}]"}) {
    Setup s(where + "\nfallback_chains: {op.x: [a]}");
    s.kernels.add(throwing("bad"));
    for (int i = 0; i < 10; ++i) REQUIRE(phase_of([&] { s.run_x(); }) == Phase::EXECUTION);
  }
}

void caching() {
  Setup s("dispatch_rules: [{operation: op.x, kernel: a}]");
  REQUIRE_FALSE(s.result().cached);
  REQUIRE(s.result().cached);
  REQUIRE(s.result(batch(2)).cached == false);
  Setup locked("kernel_locks: {op.x: a}");
  REQUIRE_FALSE(locked.result().cached);
  REQUIRE_FALSE(locked.result().cached);
  DispatchOptions off;
  off.enable_cache = false;
  Setup uncached("dispatch_rules: [{operation: op.x, kernel: a}]", off);
  uncached.result();
  REQUIRE_FALSE(uncached.result().cached);
}

void an_update_empties_the_cache() {
  Setup s("dispatch_rules: [{operation: op.x, kernel: a}]");
  s.result();
  const std::string before = s.dispatcher->config_hash();
  REQUIRE(s.dispatcher->reload_text("version: \"1.0\"\ndispatch_rules: [{operation: op.x, kernel: b}]"));
  REQUIRE(s.dispatcher->config_hash() != before);
  REQUIRE(s.cached() == "0");
  const Result result = s.result();
  REQUIRE(result.kernel_id() == "b");
  REQUIRE_FALSE(result.cached);
  REQUIRE_FALSE(s.dispatcher->reload_text("version: \"1.0\"\ndispatch_rules: [{kernel: b, operation: op.x}]"));
}

void cache_size_and_time() {
  DispatchOptions options;
  options.cache_size = 2;
  options.cache_ttl_seconds = 0.05;
  Setup s("dispatch_rules: [{operation: op.x, kernel: a}]", options);
  s.result(batch(1));
  s.clock.advance_seconds(0.04);
  REQUIRE(s.result(batch(1)).cached);  // a read does not make it younger
  s.clock.advance_seconds(0.02);
  REQUIRE_FALSE(s.result(batch(1)).cached);
  s.clock.advance_ns(1);
  s.result(batch(2));
  REQUIRE(s.result(batch(1)).cached);
  s.clock.advance_ns(1);
  s.result(batch(3));  // the one written first goes, though it was read last
  REQUIRE(s.cached() == "2");
  REQUIRE(s.result(batch(2)).cached);
  REQUIRE(s.result(batch(3)).cached);
  REQUIRE_FALSE(s.result(batch(1)).cached);
  const ConfigDispatcher other(DispatchMode::CONFIG, DispatchConfig(), s.kernels);
  REQUIRE(text_at(other.telemetry(), "/rule_cache/max_size") == "10000");
}

void every_field_is_in_the_key() {
  Setup s(R"(dispatch_rules:
  - {operation: op.x, kernel: a, priority: 90, conditions: {requires_deterministic: true}}
  - {operation: op.x, kernel: a, priority: 89, conditions: {dropout_p_gt: 0.5}}
  - {operation: op.x, kernel: a, priority: 88, conditions: {enable_gqa: true}}
  - {operation: op.x, kernel: a, priority: 87, conditions: {tp_size: 2}}
  - {operation: op.x, kernel: a, priority: 86, conditions: {pp_size: 2}}
  - {operation: op.x, kernel: b, priority: 1})");
  REQUIRE(s.run_x() == "b");
  REQUIRE(s.run_x(with([](auto& c) { c.requires_deterministic = 1; })) == "a");
  REQUIRE(s.run_x(with([](auto& c) { c.dropout_p = 0.6; })) == "a");
  REQUIRE(s.run_x(with([](auto& c) { c.enable_gqa = 1; })) == "a");
  REQUIRE(s.run_x(with([](auto& c) { c.tp_size = 2; })) == "a");
  REQUIRE(s.run_x(with([](auto& c) { c.pp_size = 2; })) == "a");
  REQUIRE(s.run_x() == "b");
}

void orderings() {
  for (std::int64_t n = 7; n <= 9; ++n) {
    REQUIRE(holds("batch_size_gt: 8", batch(n)) == (n > 8));
    REQUIRE(holds("batch_size_gte: 8", batch(n)) == (n >= 8));
    REQUIRE(holds("batch_size_lt: 8", batch(n)) == (n < 8));
    REQUIRE(holds("batch_size_lte: 8", batch(n)) == (n <= 8));
    REQUIRE(holds("batch_size_ne: 8", batch(n)) == (n != 8));
    REQUIRE(holds("batch_size_in: [7, 9]", batch(n)) == (n != 8));
    REQUIRE(holds("batch_size_not_in: [7, 9]", batch(n)) == (n == 8));
  }
  REQUIRE_FALSE(holds("batch_size_gt: 9223372036854775807", batch(9)));
  REQUIRE(holds("batch_size_gte: 0", batch(0)));
  REQUIRE_FALSE(holds("batch_size_lt: 0", batch(0)));
}

void unset_fields() {
  for (const char* never : {"seq_len_q_gt: 1", "seq_len_q_gte: 0", "seq_len_q_lt: 9", "seq_len_q_lte: 9",
                            "seq_len_q: 1", "seq_len_q_in: [1, 2]"}) {
    INFO(never);
    REQUIRE_FALSE(holds(never, context_of()));
  }
  REQUIRE(holds("seq_len_q_ne: 1", context_of()));
  REQUIRE(holds("seq_len_q_not_in: [1]", context_of()));
}

void bad_documents() {
  const std::string v = "version: \"1.0\"\n";
  const auto one = [](const std::string& yaml, const std::string& path) {
    INFO(yaml);
    REQUIRE(error_paths(yaml) == std::vector<std::string>{path});
    REQUIRE(errors_of(yaml)[0].line > 0);
  };
  one("dispatch_rules: []", "version");
  one("version: \"2.0\"", "version");
  one("version: 1.0", "version");
  one(v + "dispatch_rules: {}", "dispatch_rules");
  one(v + "dispatch_rules: [x]", "dispatch_rules[0]");
  one(v + "dispatch_rules: [{kernel: a}]", "dispatch_rules[0].operation");
  one(v + "dispatch_rules: [{operation: a}]", "dispatch_rules[0].kernel");
  one(v + "dispatch_rules: [{operation: a, kernel: a, priority: 2000}]", "dispatch_rules[0].priority");
  one(v + "dispatch_rules: [{operation: a, kernel: a, priority: \"9\"}]", "dispatch_rules[0].priority");
  one(rule_with("colour: red"), rule_path("colour"));
  one(rule_with("dtype: fp16"), rule_path("dtype"));
  one(rule_with("platform: tpu"), rule_path("platform"));
  one(rule_with("layout: XX"), rule_path("layout"));
  one(rule_with("batch_size: \"8\""), rule_path("batch_size"));
  one(rule_with("batch_size: -1"), rule_path("batch_size"));
  one(rule_with("dropout_p: 1.5"), rule_path("dropout_p"));
  one(rule_with("is_causal: 1"), rule_path("is_causal"));
  one(v + "kernel_locks: [a]", "kernel_locks");
  one(v + "kernel_denies: [1]", "kernel_denies[0]");
  one(v + "fallback_chains: {op.x: a}", "fallback_chains.op.x");
  const std::vector<std::string> all = error_paths(
      "version: 2\ndispatch_rules: [{operation: x, kernel: y, conditions: {dtype: fp16, is_causal: 1}}, "
      "7]\nkernel_denies: no");
  REQUIRE(all == std::vector<std::string>{"version", rule_path("dtype"), rule_path("is_causal"), "dispatch_rules[1]",
                                          "kernel_denies"});
  REQUIRE(
      errors_of(
          "version: \"1.0\"\ndispatch_rules:\n  - operation: x\n    kernel: y\n    conditions:\n      dtype: fp16\n")[0]
          .line == 6);
  REQUIRE_THAT(errors_of(rule_with("dtype: bfloat15"))[0].text(),
               ContainsSubstring("did you mean 'bfloat16'?") && ContainsSubstring("(got: 'bfloat15')"));
}

void unknown_keys() {
  Setup s("dispatch_rule: []\ndispatch_rules: [{operation: op.x, kernel: a, prioritty: 3}]");
  REQUIRE(s.run_x() == "a");
  REQUIRE(s.reports.size() == 2);
  REQUIRE_THAT(s.reports[0], ContainsSubstring("line 2: dispatch_rule: unknown key; did you mean 'dispatch_rules'?"));
  REQUIRE_THAT(s.reports[1],
               ContainsSubstring("line 3: dispatch_rules[0].prioritty: unknown key; did you mean 'priority'?"));
}

void files_without_rules() {
  TemporaryFile file;
  KernelRegistry kernels;
  std::vector<std::string> reports;
  DispatchOptions options;
  options.config_path = file.path();
  const auto rule_count = [&] {
    const ModeOptions mode{.report = [&](const std::string& text) { reports.push_back(text); }};
    const ConfigDispatcher made(DispatchMode::CONFIG, DispatchConfig(options), kernels, mode);
    return text_at(made.telemetry(), "/rule_count");
  };
  REQUIRE(rule_count() == "0");
  REQUIRE_THAT(reports.at(0), ContainsSubstring("no such file"));
  file.write("");
  REQUIRE(rule_count() == "0");
  file.write("version: [1\n");
  REQUIRE(phase_of(rule_count) == Phase::CONFIGURATION);
  file.write("- a\n- b\n");
  REQUIRE(phase_of(rule_count) == Phase::CONFIGURATION);
}

void explanation_of_rules() {
  Setup s(R"(dispatch_rules:
  - {operation: op.y, kernel: other, priority: 90}
  - {operation: "op.*", kernel: b, priority: 80, conditions: {batch_size_gte: 8, is_causal: true, dtype: [float32]}}
  - {operation: op.x, kernel: a, priority: 70}
  - {operation: op.x, kernel: c, priority: 60})");
  const Json answer = s.dispatcher->explain_selection("op.x", batch(4));
  REQUIRE(text_at(answer, "/operation") == "op.x");
  REQUIRE(text_at(answer, "/config_hash").size() == 16);
  REQUIRE(text_at(answer, "/selected_kernel") == "a");
  REQUIRE(text_at(answer, "/reason") == "dispatch_rule");
  REQUIRE(text_at(answer, "/selection_path/0/result") == "operation_mismatch");
  REQUIRE(text_at(answer, "/selection_path/1/result") == "condition_mismatch");
  REQUIRE(text_at(answer, "/selection_path/1/failed_conditions") ==
          R"([{"field":"batch_size","operator":"gte","expected":8,"actual":4},)"
          R"({"field":"is_causal","operator":"eq","expected":true,"actual":false}])");
  REQUIRE(text_at(answer, "/selection_path/2/result") == "selected");
  REQUIRE(text_at(answer, "/selection_path/3") == "missing");
  REQUIRE(s.cached() == "0");
}

void explanation_of_chains() {
  Setup s("kernel_denies: [a]\nkernel_allows: [a, b, zz, good]\nfallback_chains: {op.x: [a, c, zz, b, good]}");
  const Json answer = s.dispatcher->explain_selection("op.x", context_of());
  const std::vector<std::string> results{"kernel_denied", "kernel_not_allowed", "kernel_not_found", "selected"};
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string item = "/selection_path/" + std::to_string(i);
    REQUIRE(text_at(answer, item + "/step") == "fallback_chain");
    REQUIRE(text_at(answer, item + "/result") == results[i]);
  }
  REQUIRE(text_at(answer, "/selection_path/4") == "missing");
  REQUIRE(text_at(answer, "/reason") == "fallback_chain");
  REQUIRE(text_at(answer, "/selected_kernel") == "b");
  const Json none = Setup("version_: 1").dispatcher->explain_selection("op.x", context_of());
  REQUIRE(text_at(none, "/reason") == "no_kernel_available");
  REQUIRE(text_at(none, "/selected_kernel") == "null");
}

void bad_patterns() {
  const auto path = [](const std::string& conditions) { return error_paths(rule_with(conditions)); };
  REQUIRE(path("device_regex: \"(\"") == std::vector<std::string>{rule_path("device_regex")});
  REQUIRE(path("batch_size_regex: 8") == std::vector<std::string>{rule_path("batch_size_regex")});
  REQUIRE(path("dtype_match: 3") == std::vector<std::string>{rule_path("dtype_match")});
  Setup s("dispatch_rules: [{operation: op.x, kernel: a}]");
  REQUIRE(phase_of([&] { s.dispatcher->reload_text(rule_with("device_regex: \"[\"")); }) == Phase::CONFIGURATION);
  REQUIRE(s.run_x() == "a");
}

void text_operators() {
  const SelectionContext half = with([](auto& c) { c.dtype = ttc::DType::f16; }),
                         brain = with([](auto& c) { c.dtype = ttc::DType::bf16; });
  REQUIRE(holds("dtype_match: \"*float16\"", half));
  REQUIRE(holds("dtype_match: \"*float16\"", brain));
  REQUIRE(holds("dtype_match: float16", half));
  REQUIRE_FALSE(holds("dtype_match: float16", brain));
  REQUIRE(holds("dtype_regex: float16", brain));
  REQUIRE_FALSE(holds("dtype_regex: \"^float16\"", brain));
  REQUIRE(holds("layout_match: BSHD", context_of()));
  REQUIRE(holds("layout_regex: SHD", context_of()));
  REQUIRE(holds("platform_match: cpu", context_of()));
  REQUIRE(holds("platform_not_in: [cuda]", context_of()));
  REQUIRE(holds("device_in: [cpu]", context_of()));
  REQUIRE(holds("dtype: bfloat8_b",
                with([](auto& c) { c.format_a = static_cast<std::uint8_t>(ttrt::DataType::bfloat8_b); })));
  REQUIRE(holds("weight_dtype: bfloat4_b",
                with([](auto& c) { c.format_b = static_cast<std::uint8_t>(ttrt::DataType::bfloat4_b); })));
  REQUIRE_FALSE(holds("weight_dtype: bfloat4_b", context_of()));
}

void null_sections() {
  REQUIRE(
      error_paths(
          "version: "
          "\"1.0\"\ndefaults:\ndispatch_rules:\nkernel_locks:\nkernel_denies:\nkernel_allows:\nfallback_chains:\n") ==
      std::vector<std::string>{"defaults", "dispatch_rules", "kernel_locks", "kernel_denies", "kernel_allows",
                               "fallback_chains"});
  REQUIRE(error_paths("version: \"1.0\"\ndispatch_rules: [{operation: x, kernel: y, conditions: }]") ==
          std::vector<std::string>{"dispatch_rules[0].conditions"});
  REQUIRE(error_paths("version: \"1.0\"").empty());
}

const CaseTable config_cases{
    {"CFG-01", locks_before_rules},
    {"CFG-02", locks_are_not_filtered},
    {"CFG-04", lock_of_a_missing_kernel},
    {"CFG-05", priorities},
    {"CFG-07", unusable_rules_are_skipped},
    {"CFG-08",
     [] { REQUIRE(Setup("dispatch_rules: [{operation: op.x, kernel: a}]\nkernel_allows: []").run_x() == "a"); }},
    {"CFG-10", globs_are_anchored},
    {"CFG-11", fallback_chain},
    {"CFG-13", chain_goes_on_after_a_failure},
    {"CFG-14", a_chosen_kernel_has_no_fallback},
    {"CFG-16", caching},
    {"CFG-17", an_update_empties_the_cache},
    {"CFG-19", cache_size_and_time},
    {"CFG-20", every_field_is_in_the_key},
    {"CFG-21",
     [] {
       for (const std::string key : {"batch_size", "batch_size_eq"}) {
         REQUIRE(holds(key + ": 8", batch(8)));
         REQUIRE_FALSE(holds(key + ": 8", batch(7)));
       }
     }},
    {"CFG-23", orderings},
    {"CFG-24", unset_fields},
    {"CFG-26",
     [] {
       REQUIRE(error_paths(rule_with("batch_size: [1, 2]")) == std::vector<std::string>{rule_path("batch_size")});
       REQUIRE(holds("batch_size_in: [1, 2]", batch(2)));
       REQUIRE(error_paths(rule_with("batch_size_in: 1")) == std::vector<std::string>{rule_path("batch_size_in")});
       REQUIRE(holds("dtype: [float16, float32]", context_of()));
     }},
    {"CFG-27",
     [] {
       REQUIRE_FALSE(holds("dtype_not_in: [float32]", context_of()));
       REQUIRE(holds("dtype_not_in: [float16, bfloat16]", context_of()));
     }},
    {"CFG-28",
     [] {
       REQUIRE(error_paths(rule_with("kernel_regex: \"flash.*\"")) ==
               std::vector<std::string>{rule_path("kernel_regex")});
     }},
    {"CFG-29",
     [] {
       const SelectionContext longer = with([](auto& c) { c.seq_len_q = 9000; });
       REQUIRE(holds("seq_len_gt: 8192", longer));
       REQUIRE_FALSE(holds("seq_len_ne: 9000", longer));
     }},
    {"CFG-30",
     [] {
       const SelectionContext cuda = with([](auto& c) { c.device = device_record("cuda:1"); });
       REQUIRE(holds("device_match: \"cuda:*\"", cuda));
       REQUIRE(holds("device: cpu", context_of()));
       REQUIRE_FALSE(holds("device: cpu", cuda));
       REQUIRE(holds("device_ne: \"cuda:0\"", cuda));
     }},
    {"CFG-32",
     [] {
       REQUIRE(holds("batch_size: 2, is_causal: false", batch(2)));
       REQUIRE_FALSE(holds("batch_size: 2, is_causal: true", batch(2)));
       REQUIRE(holds("", batch(2)));
     }},
    {"CFG-33",
     [] {
       const SelectionContext c = with([](auto& x) { x.is_causal = 1, x.dropout_p = 0.1, x.tp_size = 2; });
       REQUIRE(holds("is_causal: true, enable_gqa: false, dropout_p_gt: 0.0, tp_size: 2", c));
       REQUIRE_FALSE(holds("is_causal: false", c));
       REQUIRE_FALSE(holds("dropout_p_gt: 0.1", c));
       REQUIRE(holds("dropout_p_gte: 0.1, dropout_p_lte: 0.1, dropout_p_in: [0.1], dropout_p_ne: 0", c));
     }},
    {"CFG-35", bad_documents},
    {"CFG-36", unknown_keys},
    {"CFG-37", files_without_rules},
    {"CFG-39", explanation_of_rules},
    {"CFG-40", explanation_of_chains},
    {"CFG-42",
     [] {
       Setup a("dispatch_rules: [{operation: op.x, kernel: a}]\nkernel_denies: [z]"),
           b("kernel_denies: [z]\ndispatch_rules: [{kernel: a, operation: op.x}]");
       REQUIRE(a.dispatcher->config_hash() == b.dispatcher->config_hash());
       REQUIRE(a.dispatcher->config_hash() != Setup("kernel_denies: [y]").dispatcher->config_hash());
     }},
    {"CFG-43", bad_patterns},
    {"CFG-44", text_operators},
    {"CFG-45", null_sections},
};

}  // namespace

TEST_CASE("CONFIG: recorded cases") { run_cases("CFG-", config_cases); }
