// Dispatch: who serves an operator.
//
// Dispatchers have a name and two functions, can_dispatch_to_ttnn and dispatch_to_ttnn. The active one decides about
// single operators; a Session asks the one that its options name, else the one that is active when it is made, about
// each device op of its model.
//   default      every operator that a device kernel takes
//   optimized    the same, fused, folded and sharded kernel variants preferred
//   debug        default, with every check and its reason in the log
//   cpu          none
//   tensor_ops   elementwise arithmetic, matrix products and movement of tensors only
// TT_SYMBIOTE_DISPATCHER in the environment wins over set_dispatcher and over a session's option.
//
// In a session kernels are chosen, by SessionOptions::dispatch_mode:
//   STATIC      once, when an op is bound to its shapes; static_kernels names some by hand
//   DYNAMIC     at each call, with a cache, a circuit breaker per kernel, and a chain of fallbacks
//   CONFIG      by the rules of a file (SessionOptions::dispatch_config), else as DYNAMIC
//   HOT_RELOAD  as CONFIG, and the file is watched: a right change takes effect between two calls, a wrong one not at
//   all AUTO        STATIC for what static_kernels names, HOT_RELOAD where a file is given, else DYNAMIC
// Errors and threads as in ttrt.h.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ttrt.h"
#include "value.h"

namespace ttrt {

// ---- named dispatchers ----------------------------------------------------------------------------------------------

// Positional arguments in schema order, the rest by name: "aten::mul.Tensor". A device op of a session's model is
// called "tt.mul"; its tensors lie on the device where can_dispatch_to_ttnn is asked, and on the host for
// dispatch_to_ttnn.
struct OperatorCall {
  std::string name;
  Arguments args;
  Keywords keywords = {};
  void* step = nullptr;  // of a session's: hand the call on to other dispatchers as it came, and they serve it in place
};

// Called from several threads at a time.
class TTRT_API Dispatcher {
 public:
  virtual ~Dispatcher();
  virtual std::string summary() const { return {}; }  // one sentence
  // Whether dispatch_to_ttnn would serve the call; nothing runs.
  virtual bool can_dispatch_to_ttnn(const OperatorCall& call) const = 0;
  // The result; several as a list. Throws Error where it can't serve the call after all.
  virtual Value dispatch_to_ttnn(const OperatorCall& call) const = 0;
};

// Replaces one of the same name; names are the same in upper and lower case. Throws Error (usage) for an empty name.
TTRT_API void register_dispatcher(const std::string& name, std::shared_ptr<const Dispatcher> dispatcher);
// A library with the two C functions of ttrt/dispatcher_plugin.h, under `name` or else its file's name, which comes
// back. Throws Error (bad_file) that says what is wrong with it.
TTRT_API std::string load_dispatcher(const std::string& path, const std::string& name = {});
// Throws Error (usage): "Unknown dispatcher 'x'" and what there is.
TTRT_API std::shared_ptr<const Dispatcher> find_dispatcher(const std::string& name);
// The active one from now on, by name or by its library's path. False where the environment holds another, which stays.
// Throws as find_dispatcher does.
TTRT_API bool set_dispatcher(const std::string& name);
TTRT_API std::string active_dispatcher();
TTRT_API std::vector<std::string> list_available_dispatchers();  // sorted
struct DispatcherInfo {
  std::string name, summary;
  std::string origin;  // "built-in", "registered", or the library's path
  bool active = false;
};
TTRT_API std::vector<DispatcherInfo> dispatchers();

// The two functions of the active dispatcher. Tensors may lie on the host or on a device; results of the built-in
// dispatchers lie on the host.
TTRT_API bool can_dispatch_to_ttnn(std::string_view func_name, const Arguments& args, const Keywords& kwargs = {});
TTRT_API Value dispatch_to_ttnn(std::string_view func_name, const Arguments& args, const Keywords& kwargs = {});

// Loads a library that registers operators, passes or dispatchers while it is loaded; it stays. Throws Error
// (bad_file).
TTRT_API void load_plugin(const std::string& path);

// ---- the dispatch of a session --------------------------------------------------------------------------------------

// A wrong document changes nothing; what is wrong with it, every problem with its line, is in `messages`.
struct RulesCheck {
  bool ok = false;
  std::vector<std::string> messages;  // errors where not ok, else warnings
};
struct RulesVersion {
  std::int64_t version = 0;
  std::string hash;  // SHA-256 of the content
  std::string path;  // "" where it came as text
};

// Of a session: may be asked and changed while the session runs, and keeps what it needs of it alive.
class TTRT_API Dispatch {
 public:
  // {dispatcher, mode, kernels: {id: calls}, orchestrator: {...}} as JSON.
  std::string telemetry() const;
  // Every kernel that was looked at for a node of the model ("linear_3") at its last run, each check and its reason, as
  // JSON. Throws Error (usage) for a node that is no device op of the model, or that no run has reached.
  std::string explain(const std::string& node) const;

  // HOT_RELOAD and CONFIG: YAML or JSON text in place of what is active, and what the file holds now. Throw Error
  // (usage) in the other modes, as do those below in all but HOT_RELOAD.
  RulesCheck reload(const std::string& rules);
  RulesCheck reload();
  RulesCheck dry_run(const std::string& rules) const;  // checks the text; nothing changes
  // Back to the version before; a second call comes back. False where there is none.
  bool rollback();
  RulesVersion version() const;
  // Called from the thread that reloaded. What they throw is swallowed.
  void on_reload(std::function<void(const RulesVersion&)> callback);
  void on_error(std::function<void(const std::string& message)> callback);

  struct Impl;
  explicit Dispatch(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<Impl> impl_;
};

TTRT_API Dispatch dispatch_of(const Session& session);

}  // namespace ttrt
