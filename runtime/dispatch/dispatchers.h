// Dispatchers by name: which operators go to the device, and how. The two functions of every dispatcher are
// can_dispatch_to_ttnn and dispatch_to_ttnn; the registry chooses whose are called. What the built-in ones do, their
// summaries say (dispatchers_builtin.cpp); one of one's own may serve any operator, called one by one or in a compiled
// program.
//
// Names are the same in upper and lower case. TT_SYMBIOTE_DISPATCHER, read at each look-up, wins over set_dispatcher;
// it may name a plug-in library by its path. All functions may be called from several threads.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ops/named_call.h"
#include "dispatch/selection.h"

namespace ttrt::dispatch {

class ProgramCall;

// What a dispatcher is asked for.
struct OperatorCall : NamedCall {
  ProgramCall* program = nullptr;  // where it is a step of a compiled program
};

class TtnnDispatcher {
 public:
  virtual ~TtnnDispatcher() = default;
  virtual std::string summary() const = 0;  // one sentence
  // nullopt: dispatch would serve it. Nothing runs; tensors of a program may lie on the device.
  virtual ttc::Refusal refusal_of(const OperatorCall& call) const = 0;
  // One result bare, several as a list; none where another dispatcher was asked to serve the call of a program. Throws
  // where it cannot.
  virtual RtValue dispatch(const OperatorCall& call) const = 0;
  // Of the built-in ones: the policy by which the device's kernels serve the ops of a compiled program. None: each op
  // is asked for and served by the functions above, named as in "tt.softmax", with its arguments in the order of the
  // op's schema; an op that is refused runs on the host.
  virtual std::optional<Policy> policy() const { return std::nullopt; }
};

// A step of a compiled program, which the built-in dispatchers serve where it lies: for those who hand it on to them.
class ProgramCall {
 public:
  // nullopt: a kernel of the device serves it under this policy.
  virtual ttc::Refusal refusal_by(const Policy& policy) = 0;
  // Runs it; the results stay in the program.
  virtual void run_by(const Policy& policy) = 0;

 protected:
  ~ProgramCall() = default;
};

struct DispatcherInfo {
  std::string name;
  std::string summary;
  std::string origin;  // "built-in", "registered", or the plug-in's path
  bool active = false;
};

// ---- the two functions, of the active dispatcher --------------------------------------------------------------------

bool can_dispatch_to_ttnn(std::string_view func_name, std::span<const RtValue> args,
                          std::span<const Keyword> kwargs = {});
RtValue dispatch_to_ttnn(std::string_view func_name, std::span<const RtValue> args,
                         std::span<const Keyword> kwargs = {});

// ---- the registry ---------------------------------------------------------------------------------------------------

// Replaces one of the same name. Throws ttc::Error (usage) for an empty name, a null dispatcher, or a missing function.
void register_dispatcher(const std::string& name, std::shared_ptr<const TtnnDispatcher> dispatcher);
// From the two functions.
void register_dispatcher(const std::string& name, std::function<bool(const OperatorCall&)> can_dispatch,
                         std::function<RtValue(const OperatorCall&)> dispatch);
// From a shared library (dispatcher_plugin.h), under `name` or else the file's name without "lib" and ".so"; returns
// the name. Throws ttc::Error (bad file) that says what is wrong with it.
std::string load_dispatcher_plugin(const std::string& path, const std::string& name = {});
// By name, or a plug-in by its path. Throws ttc::Error (usage) "Unknown dispatcher 'x'" with what there is. False where
// the environment variable holds another one, which stays active.
bool set_dispatcher(const std::string& name);
// Sorted.
std::vector<std::string> list_available_dispatchers();
std::vector<DispatcherInfo> dispatcher_infos();
// The one whose functions are called now, and its name. Throws ttc::Error (usage) where the environment names an
// unknown one.
std::shared_ptr<const TtnnDispatcher> get_active_dispatcher();
std::string active_dispatcher_name();
std::shared_ptr<const TtnnDispatcher> find_dispatcher(const std::string& name);  // throws as set_dispatcher does
// The name under which that one is registered: in lower case, of a plug-in for its path.
std::string resolve_dispatcher(const std::string& name);

// What the registry begins with, and what it opens: a dispatcher from a plug-in library; throws ttc::Error (bad file).
std::map<std::string, std::shared_ptr<const TtnnDispatcher>> builtin_dispatchers();
std::shared_ptr<const TtnnDispatcher> open_dispatcher_plugin(const std::string& path);

// Where the debug dispatcher writes, one line a call; standard error by default. An empty function restores that.
void set_dispatch_log(std::function<void(const std::string&)> log);

void log_dispatch(const std::string& line);

inline constexpr const char* dispatcher_variable = "TT_SYMBIOTE_DISPATCHER";

}  // namespace ttrt::dispatch
