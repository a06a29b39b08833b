// The registry: names, what is set, what the environment says.
#include "dispatch/dispatchers.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <mutex>

#include "support/printable.h"

namespace ttrt::dispatch {

namespace {

std::string lower(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

struct Known {
  std::shared_ptr<const TtnnDispatcher> dispatcher;
  std::string origin;
};

struct Registry {
  std::mutex mutex;
  std::map<std::string, Known> known;
  std::string chosen = "default";
  std::function<void(const std::string&)> log;

  Registry() {
    for (auto& [name, dispatcher] : builtin_dispatchers()) known[name] = {dispatcher, "built-in"};
  }
};

Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

std::string plugin_name(const std::string& path) {
  std::string stem = std::filesystem::path(path).stem();
  if (stem.starts_with("lib")) stem.erase(0, 3);
  return lower(stem);
}

struct Found {
  std::string name;
  std::shared_ptr<const TtnnDispatcher> dispatcher;
};

// By name, or a plug-in by its path, which is loaded where it was not before.
Found find(const std::string& name) {
  Registry& r = registry();
  const bool path = name.find('/') != std::string::npos || name.ends_with(".so");
  const std::string wanted = path ? plugin_name(name) : lower(name);
  {
    const std::lock_guard lock(r.mutex);
    const auto found = r.known.find(wanted);
    if (found != r.known.end() && (!path || found->second.origin == name)) return {wanted, found->second.dispatcher};
  }
  if (path) return find(load_dispatcher_plugin(name));
  const std::vector<std::string> names = list_available_dispatchers();
  std::string list;
  for (const std::string& each : names) list += (list.empty() ? "" : ", ") + each;
  throw ttc::usage_error("Unknown dispatcher '" + name + "'; there are " + list, did_you_mean(wanted, names));
}

std::string environment() {
  const char* const text = std::getenv(dispatcher_variable);
  return text ? text : "";
}

// A dispatcher of two functions.
class FromFunctions final : public TtnnDispatcher {
 public:
  FromFunctions(std::function<bool(const OperatorCall&)> can, std::function<RtValue(const OperatorCall&)> run)
      : can_(std::move(can)), run_(std::move(run)) {}
  std::string summary() const override { return "Registered by the program"; }
  ttc::Refusal refusal_of(const OperatorCall& call) const override {
    if (can_(call)) return std::nullopt;
    return ttc::Reason{ttc::ReasonCode::UserExcluded, "the dispatcher does not take " + std::string(call.name)};
  }
  RtValue dispatch(const OperatorCall& call) const override { return run_(call); }

 private:
  std::function<bool(const OperatorCall&)> can_;
  std::function<RtValue(const OperatorCall&)> run_;
};

void add(const std::string& name, std::shared_ptr<const TtnnDispatcher> dispatcher, std::string origin) {
  if (name.empty()) throw ttc::usage_error("a dispatcher needs a name");
  if (!dispatcher) throw ttc::usage_error("dispatcher '" + name + "' is null");
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  r.known[lower(name)] = {std::move(dispatcher), std::move(origin)};
}

}  // namespace

void register_dispatcher(const std::string& name, std::shared_ptr<const TtnnDispatcher> dispatcher) {
  add(name, std::move(dispatcher), "registered");
}

void register_dispatcher(const std::string& name, std::function<bool(const OperatorCall&)> can_dispatch,
                         std::function<RtValue(const OperatorCall&)> dispatch) {
  if (!can_dispatch) throw ttc::usage_error("dispatcher '" + name + "' lacks can_dispatch_to_ttnn");
  if (!dispatch) throw ttc::usage_error("dispatcher '" + name + "' lacks dispatch_to_ttnn");
  add(name, std::make_shared<FromFunctions>(std::move(can_dispatch), std::move(dispatch)), "registered");
}

std::string load_dispatcher_plugin(const std::string& path, const std::string& name) {
  const std::string wanted = lower(name.empty() ? plugin_name(path) : name);
  add(wanted, open_dispatcher_plugin(path), path);
  return wanted;
}

bool set_dispatcher(const std::string& name) {
  const std::string found = find(name).name, wins = environment();
  const std::lock_guard lock(registry().mutex);
  registry().chosen = found;
  return wins.empty() || lower(wins) == found || wins == name;
}

std::string active_dispatcher_name() {
  if (const std::string name = environment(); !name.empty()) return find(name).name;
  const std::lock_guard lock(registry().mutex);
  return registry().chosen;
}

std::shared_ptr<const TtnnDispatcher> get_active_dispatcher() { return find(active_dispatcher_name()).dispatcher; }
std::shared_ptr<const TtnnDispatcher> find_dispatcher(const std::string& name) { return find(name).dispatcher; }
std::string resolve_dispatcher(const std::string& name) { return find(name).name; }

std::vector<std::string> list_available_dispatchers() {
  const std::lock_guard lock(registry().mutex);
  std::vector<std::string> out;
  for (const auto& [name, entry] : registry().known) out.push_back(name);
  return out;
}

std::vector<DispatcherInfo> dispatcher_infos() {
  const std::string active = active_dispatcher_name();
  const std::lock_guard lock(registry().mutex);
  std::vector<DispatcherInfo> out;
  for (const auto& [name, entry] : registry().known)
    out.push_back({name, entry.dispatcher->summary(), entry.origin, name == active});
  return out;
}

bool can_dispatch_to_ttnn(std::string_view func_name, std::span<const RtValue> args, std::span<const Keyword> kwargs) {
  return !get_active_dispatcher()->refusal_of({{func_name, args, kwargs}});
}

RtValue dispatch_to_ttnn(std::string_view func_name, std::span<const RtValue> args, std::span<const Keyword> kwargs) {
  return get_active_dispatcher()->dispatch({{func_name, args, kwargs}});
}

void set_dispatch_log(std::function<void(const std::string&)> log) {
  const std::lock_guard lock(registry().mutex);
  registry().log = std::move(log);
}

void log_dispatch(const std::string& line) {
  std::function<void(const std::string&)> log;
  {
    const std::lock_guard lock(registry().mutex);
    log = registry().log;
  }
  if (log)
    log(line);
  else
    std::cerr << ttc::printable(line) + "\n";
}

}  // namespace ttrt::dispatch
