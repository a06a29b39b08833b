// CONFIG: wrong files say what is wrong in one message with line and path, and change nothing; reading, reloading,
// threads.
#include <atomic>
#include <thread>

#include "dispatch/config_dispatcher.h"
#include "tests/dispatch/fixtures.h"
#include "tests/catch.h"

using namespace dispatch_test;

namespace {

struct ErrorSetup {
  TemporaryFile file;
  KernelRegistry kernels;
  std::vector<std::string> reports;
  std::unique_ptr<ConfigDispatcher> dispatcher;

  explicit ErrorSetup(bool strict = false) {
    kernels.add({kernel("tt.matmul.1d"), kernel("tt.matmul.2d")});
    file.write("version: \"1.0\"\ndispatch_rules: [{operation: op.x, kernel: tt.matmul.1d}]\n");
    DispatchOptions options;
    options.config_path = file.path();
    dispatcher = std::make_unique<ConfigDispatcher>(
        DispatchMode::CONFIG, DispatchConfig(options), kernels,
        ModeOptions{.report = [this](const std::string& text) { reports.push_back(text); }}, strict);
  }
  // The error of reloading this text; the configuration of before must serve on.
  std::string refuse(const std::string& text) {
    file.replace(text);
    const std::string hash = dispatcher->config_hash();
    std::string message;
    try {
      dispatcher->reload();
    } catch (const DispatchError& error) {
      REQUIRE(error.phase() == Phase::CONFIGURATION);
      REQUIRE(error.file() == file.path());
      message = error.what();
    }
    REQUIRE(dispatcher->config_hash() == hash);
    REQUIRE(run(*dispatcher, "op.x") == "tt.matmul.1d");
    return message;
  }
};

}  // namespace

TEST_CASE("CONFIG: what is wrong with a file is said once, with line and path") {
  ErrorSetup s(true);
  REQUIRE_THAT(s.refuse("version: \"1.0\"\nkernel_locks: {a: b\n"),
               ContainsSubstring("line ") && ContainsSubstring("malformed YAML"));
  REQUIRE_THAT(s.refuse("version: \"1.0\"\n? [a, b]\n: 1\n"), ContainsSubstring("line 2: a key must be a string"));
  REQUIRE_THAT(s.refuse("version: \"1.0\"\nversion: \"1.0\"\n"),
               ContainsSubstring("line 2: key 'version' is there twice, first on line 1"));
  REQUIRE_THAT(s.refuse("version: \"1.0\"\nkernel_locks:\n  op.x: [1]\n"),
               ContainsSubstring("line 3: kernel_locks.op.x: must be a string"));
  REQUIRE_THAT(s.refuse("version: \"1.0\"\ndispatch_rules:\n- operation: op.x\n  kernel: tt.matmul.1d\n  conditions:\n "
                        "   device_regex: 'cuda:('\n"),
               ContainsSubstring("line 6: dispatch_rules[0].conditions.device_regex: is no regular expression"));
  REQUIRE_THAT(s.refuse("version: \"1.0\"\ndispatch_rules:\n- operation: op.x\n  kernel: tt.matmul.3d\n"),
               ContainsSubstring(
                   "line 4: dispatch_rules[0].kernel: no kernel is called 'tt.matmul.3d'; did you mean 'tt.matmul."));
  REQUIRE_THAT(s.refuse("version: \"1.0\"\nkernel_locks: {op.x: a}\nkernel_locks: {op.x: b}\n"),
               ContainsSubstring("line 3: key 'kernel_locks' is there twice, first on line 2"));
  REQUIRE_THAT(s.refuse("- 1\n"), ContainsSubstring("the document must be a map"));
  REQUIRE_THAT(s.refuse(std::string("a: ") + std::string(3000, '[')), ContainsSubstring("malformed YAML"));
  REQUIRE_THAT(s.refuse("a: &a [*a]\n"), ContainsSubstring("nested deeper"));
  REQUIRE_THAT(s.refuse("version: \"1.0\"\nkernel_denies: [!!binary aGk=]\n"), ContainsSubstring("tags are not read"));
  REQUIRE_THAT(s.refuse("version: \"1.0\"\n---\nversion: \"1.0\"\n"),
               ContainsSubstring("line 3: a second document in one file"));
}

TEST_CASE("CONFIG: aliases that multiply are bounded") {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) text += (j > 0 ? ", *a" : "*a") + std::to_string(i - 1);
    text += "]\n";
  }
  REQUIRE_THROWS_WITH(parse_document(text, "f"), ContainsSubstring("more than 1000000 values"));
}

TEST_CASE("CONFIG: a file that vanishes or cannot be read leaves the old configuration") {
  ErrorSetup s;
  s.file.remove();
  REQUIRE_FALSE(s.dispatcher->reload());
  REQUIRE_THAT(s.reports.back(),
               ContainsSubstring(s.file.path() + ": no such file") && ContainsSubstring("stays active"));
  REQUIRE(run(*s.dispatcher, "op.x") == "tt.matmul.1d");
  std::filesystem::create_directory(s.file.path());
  REQUIRE_THROWS_WITH(s.dispatcher->reload(), ContainsSubstring("not a regular file"));
  REQUIRE(run(*s.dispatcher, "op.x") == "tt.matmul.1d");
}

TEST_CASE("CONFIG: a reload takes what is new and nothing else") {
  ErrorSetup s;
  REQUIRE_FALSE(s.dispatcher->reload());
  s.file.replace("version: \"1.0\"\n# a comment\ndispatch_rules: [{kernel: tt.matmul.1d, operation: op.x}]\n");
  REQUIRE_FALSE(s.dispatcher->reload());  // other bytes, the same content
  s.file.replace("version: \"1.0\"\ndispatch_rules: [{kernel: tt.matmul.2d, operation: op.x}]\n");
  REQUIRE(s.dispatcher->reload());
  REQUIRE(run(*s.dispatcher, "op.x") == "tt.matmul.2d");
  const std::string other = s.file.beside("other.json");
  std::ofstream(other) << R"({"version": "1.0", "kernel_locks": {"op.*": "tt.matmul.1d"}})";
  REQUIRE(s.dispatcher->reload_file(other));
  REQUIRE(s.dispatcher->config_path() == other);
  REQUIRE(run(*s.dispatcher, "op.x") == "tt.matmul.1d");
}

TEST_CASE("CONFIG: kernels that come and go are seen at once") {
  ErrorSetup s;
  s.file.replace(
      "version: \"1.0\"\ndispatch_rules: [{operation: op.x, kernel: later, priority: 90}, {operation: op.x, kernel: "
      "tt.matmul.1d}]\n");
  REQUIRE(s.dispatcher->reload());
  REQUIRE(run(*s.dispatcher, "op.x") == "tt.matmul.1d");
  s.kernels.add(kernel("later"));
  REQUIRE(run(*s.dispatcher, "op.x") == "later");
  s.kernels.remove("later");
  REQUIRE(run(*s.dispatcher, "op.x") == "tt.matmul.1d");
}

TEST_CASE("CONFIG: updates while four threads dispatch") {
  ErrorSetup s;
  std::atomic<bool> stop = false;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      SelectionContext context = context_of();
      for (std::int64_t i = 0; !stop; ++i) {
        context.batch_size = (i + t) % 50;
        CallArgs args;
        try {
          const Result result = s.dispatcher->dispatch("op.x", args, &context);
          const std::string* text = result.output.get_if<std::string>();
          if (text == nullptr || *text != result.kernel_id()) ++wrong;
        } catch (...) {
          ++wrong;
        }
      }
    });
  for (int i = 0; i < 500; ++i)
    s.dispatcher->reload_text("version: \"1.0\"\ndispatch_rules: [{operation: \"op.?\", kernel: tt.matmul." +
                              std::string(i % 2 == 0 ? "2d" : "1d") + ", conditions: {dtype_regex: \"f.*\"}}]");
  stop = true;
  for (std::thread& thread : threads) thread.join();
  REQUIRE(wrong == 0);
}

TEST_CASE("JSON documents have lines too") {
  const DocNode root = parse_document("{\n \"a\": 1,\n \"b\": 2\n,\"c\":\n{\"d\": [1\n,true]}}", "f");
  REQUIRE(root.find("a")->line == 2);
  REQUIRE(root.find("b")->line == 3);
  REQUIRE(root.find("c")->line == 4);
  REQUIRE(root.find("c")->find("d")->items[1].line == 6);
  REQUIRE(root.canonical() == R"({"a":1,"b":2,"c":{"d":[1,true]}})");
  REQUIRE_THROWS_WITH(parse_document("{\"a\": 1,\n\"a\": 2}", "f"),
                      ContainsSubstring("line 2: key 'a' is there twice"));
  REQUIRE_THROWS_WITH(parse_document(std::string(100000, '['), "f"), ContainsSubstring("nested too deeply"));
}

TEST_CASE("CONFIG: a kernel serves its own operation and no other") {
  ErrorSetup s;
  s.kernels.add({kernel("other", "op.y"), kernel("norm", "tt.layer_norm")});
  REQUIRE_THAT(s.refuse("version: \"1.0\"\ndispatch_rules:\n  - {operation: op.x, kernel: other}\n"),
               ContainsSubstring("line 3: dispatch_rules[0].kernel: kernel 'other' serves op.y, not 'op.x'"));
  REQUIRE_THAT(s.refuse("version: \"1.0\"\nfallback_chains: {op.x: [tt.matmul.1d, other]}\n"),
               ContainsSubstring("fallback_chains.op.x[1]: kernel 'other' serves op.y"));
  REQUIRE_THAT(s.refuse("version: \"1.0\"\nkernel_locks: {tt.lyer_norm: norm}\n"),
               ContainsSubstring("kernel 'norm' serves tt.layer_norm, not 'tt.lyer_norm'"));
  // A glob gives it to the operations that are its own; a fallback for everything likewise.
  s.file.replace(
      "version: \"1.0\"\ndefaults: {fallback_policy: other}\ndispatch_rules: [{operation: \"op.*\", kernel: "
      "tt.matmul.1d}]\n");
  REQUIRE(s.dispatcher->reload());
  REQUIRE(run(*s.dispatcher, "op.y") == "other");
  REQUIRE(phase_of([&] { run(*s.dispatcher, "op.z"); }) == Phase::FALLBACK);
  // Any name of an operation type is the operation.
  s.file.replace("version: \"1.0\"\ndispatch_rules: [{operation: norm.layer, kernel: norm}]\n");
  REQUIRE(s.dispatcher->reload());
  REQUIRE(run(*s.dispatcher, "tt.layer_norm") == "norm");
}

TEST_CASE("CONFIG: an operation without a rule is a miss, no exception") {
  ErrorSetup s;
  CallArgs args;
  const SelectionContext context = context_of("op.none");
  Result result;
  s.dispatcher->attempt("op.none", args, &context, result);
  REQUIRE(result.kernel == nullptr);
  REQUIRE(s.dispatcher->choose("op.none", context) == nullptr);
}
