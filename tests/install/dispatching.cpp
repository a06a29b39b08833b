// Who serves the ops of a model, through the installed library: modes, kernels chosen by hand, rules that change while
// the session lives, dispatchers of the program's own that serve device ops; and the parts of dispatch, built by hand.
//   dispatching MODEL.pt2 FOLDER (bert_small; FOLDER takes files)
#include <ttrt/dispatch.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <numeric>

#include "expect.h"

namespace {

using ttrt::Tensor;

std::vector<Tensor> example() {
  std::vector<std::int64_t> ids(20);
  std::iota(ids.begin(), ids.end(), 1);
  const std::vector<std::int64_t> ones(20, 1), zeros(20, 0);
  return {Tensor::from(ids, {2, 10}), Tensor::from(ones, {2, 10}), Tensor::from(zeros, {2, 10})};
}

// The kernels that served a device op in the last run.
std::vector<std::string> kernels_of(const ttrt::Session& session, const std::string& op) {
  std::vector<std::string> out;
  for (const ttrt::Placement& node : session.placement())
    if (node.op == op) out.push_back(node.kernel);
  return out;
}

bool all_are(const std::vector<std::string>& kernels, const std::string& wanted) {
  return !kernels.empty() && std::all_of(kernels.begin(), kernels.end(), [&](const auto& k) { return k == wanted; });
}

std::string lock(const char* kernel) {
  return std::string("version: \"1.0\"\nkernel_locks:\n  tt.layer_norm: ") + kernel + "\n";
}

void modes(const ttrt::Model& model, const std::string& folder) {
  const std::string rules = folder + "/rules.yaml";
  std::ofstream(rules) << lock("tt.layer_norm.host");
  const auto quiet = [](const std::string&) {};
  using Mode = ttrt::DispatchMode;

  ttrt::Session by_hand(model, {.static_kernels = {{"tt.layer_norm", "tt.layer_norm.host"}}, .log = quiet});
  by_hand.run(example());
  EXPECT(all_are(kernels_of(by_hand, "tt.layer_norm"), "tt.layer_norm.host"));
  EXPECT(by_hand.report().cpu_nodes > 0);
  EXPECT(is_usage([&] { ttrt::Session(model, {.static_kernels = {{"tt.layer_norm", "tt.softmax.device"}}}); }));

  ttrt::Session dynamic(model, {.dispatch_mode = Mode::DYNAMIC, .dispatch = {.cache_size = 16}, .log = quiet});
  dynamic.run(example());
  EXPECT(all_are(kernels_of(dynamic, "tt.layer_norm"), "tt.layer_norm.device"));
  EXPECT(ttrt::dispatch_of(dynamic).telemetry().find("tt.layer_norm.device") != std::string::npos);
  EXPECT(is_usage([&] { ttrt::Session(model, {.dispatch = {.failure_threshold = 0}}); }));

  for (const Mode mode : {Mode::CONFIG, Mode::HOT_RELOAD}) {
    ttrt::Session session(model, {.dispatch_mode = mode, .dispatch_config = rules, .log = quiet});
    session.run(example());
    EXPECT(all_are(kernels_of(session, "tt.layer_norm"), "tt.layer_norm.host"));
    EXPECT(ttrt::dispatch_of(session).reload(lock("tt.layer_norm.device")).ok);
    session.run(example());
    EXPECT(all_are(kernels_of(session, "tt.layer_norm"), "tt.layer_norm.device"));
    const ttrt::RulesCheck wrong = ttrt::dispatch_of(session).reload(lock("tt.no_such.kernel"));
    EXPECT(!wrong.ok && !wrong.messages.empty());
    session.run(example());
    EXPECT(all_are(kernels_of(session, "tt.layer_norm"), "tt.layer_norm.device"));
  }
  EXPECT(is_usage([&] { ttrt::Session(model, {.dispatch_mode = Mode::CONFIG}); }));  // no file is given
  EXPECT(is_usage([&] { ttrt::dispatch_of(dynamic).reload(lock("tt.layer_norm.host")); }));
}

void versions(const ttrt::Model& model, const std::string& folder) {
  const std::string rules = folder + "/watched.yaml";
  std::ofstream(rules) << lock("tt.layer_norm.device");
  ttrt::Session session(
      model,
      {.dispatch_mode = ttrt::DispatchMode::HOT_RELOAD, .dispatch_config = rules, .log = [](const std::string&) {}});
  ttrt::Dispatch dispatch = ttrt::dispatch_of(session);
  int reloads = 0, errors = 0;
  dispatch.on_reload([&](const ttrt::RulesVersion&) { ++reloads; });
  dispatch.on_error([&](const std::string&) { ++errors; });
  const std::string first = dispatch.version().hash;
  EXPECT(dispatch.version().version == 1 && !first.empty());
  EXPECT(dispatch.dry_run(lock("tt.layer_norm.host")).ok && !dispatch.dry_run("version: 2").ok);
  EXPECT(dispatch.version().hash == first);
  EXPECT(dispatch.reload(lock("tt.layer_norm.host")).ok && reloads == 1);
  session.run(example());
  EXPECT(all_are(kernels_of(session, "tt.layer_norm"), "tt.layer_norm.host"));
  EXPECT(!dispatch.reload("version: 2").ok && errors == 1);
  EXPECT(dispatch.rollback() && dispatch.version().hash == first);
  session.run(example());
  EXPECT(all_are(kernels_of(session, "tt.layer_norm"), "tt.layer_norm.device"));

  std::string node;
  for (const ttrt::Placement& one : session.placement())
    if (one.op == "tt.layer_norm") node = one.node;
  const std::string why = dispatch.explain(node);
  EXPECT(why.find("kernel_lock") != std::string::npos && why.find("tt.layer_norm.device") != std::string::npos);
  EXPECT(is_usage([&] { dispatch.explain("nobody"); }));
}

// Serves layer norms of a model itself, with zeros; all else as the default does.
class Zeros : public ttrt::Dispatcher {
 public:
  bool can_dispatch_to_ttnn(const ttrt::OperatorCall& call) const override {
    return call.name == "tt.layer_norm" || ttrt::find_dispatcher("default")->can_dispatch_to_ttnn(call);
  }
  ttrt::Value dispatch_to_ttnn(const ttrt::OperatorCall& call) const override {
    if (call.name != "tt.layer_norm") return ttrt::find_dispatcher("default")->dispatch_to_ttnn(call);
    const ttrt::Shape& shape = call.args.at(0).tensor().shape();
    const std::vector<float> zeros(static_cast<std::size_t>(call.args.at(0).tensor().numel()), 0.F);
    return Tensor::from(zeros, shape);
  }
};

void serves(const ttrt::Model& model) {
  ttrt::register_dispatcher("zeros", std::make_shared<Zeros>());
  ttrt::Session session(model, {.dispatcher = "zeros", .log = [](const std::string&) {}});
  const auto outputs = session.run(example());
  float largest = 0;
  for (const float v : outputs[0].values<float>()) largest = std::max(largest, std::abs(v));
  EXPECT(largest == 0);  // the model ends in a layer norm
  for (const std::string& kernel : kernels_of(session, "tt.layer_norm"))
    EXPECT(kernel.find("zeros") != std::string::npos);
  EXPECT(session.report().fallbacks.empty());
  ttrt::set_dispatcher("zeros");  // serves the sessions that name none, too
  ttrt::Session active(model, {.log = [](const std::string&) {}});
  ttrt::set_dispatcher("default");
  active.run(example());
  EXPECT(kernels_of(active, "tt.layer_norm") == kernels_of(session, "tt.layer_norm"));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  unsetenv("TT_SYMBIOTE_DISPATCHER");
  const ttrt::Model model = ttrt::compile(ttrt::Model::load(argv[1])).model;
  modes(model, argv[2]);
  versions(model, argv[2]);
  serves(model);
  if (failed_lines == 0) std::printf("ok, dispatch of ttrt %s\n", ttrt::version());
  return failed_lines == 0 ? 0 : 1;
}
