// What a program asks of a session's dispatch and changes in it while it runs.
#include "api/dispatch.h"

#include <nlohmann/json.hpp>

#include "api/convert.h"
#include "api/session.h"
#include "dispatch/config_dispatcher.h"

namespace ttrt {

struct Dispatch::Impl {
  std::shared_ptr<Session::Impl> session;

  KernelChooser& chooser() const { return *session->chooser; }
  // Throw Error (usage) where the mode is another one.
  dispatch::ConfigDispatcher& rules() const {
    if (dispatch::ConfigDispatcher* rules = chooser().rules()) return *rules;
    throw Error(Error::Kind::usage, "the session has no rules that could change",
                "DispatchMode::HOT_RELOAD and CONFIG take SessionOptions::dispatch_config");
  }
  dispatch::ConfigDispatcher& hot_rules() const {
    dispatch::ConfigDispatcher* const rules = chooser().rules();
    if (rules != nullptr && rules->mode() == dispatch::DispatchMode::HOT_RELOAD) return *rules;
    throw Error(Error::Kind::usage, "the session keeps no versions of its rules", "DispatchMode::HOT_RELOAD does");
  }
};

namespace {

std::string text_of(const dispatch::Json& json) {
  return json.dump(-1, ' ', false, dispatch::Json::error_handler_t::replace);
}

RulesVersion version_of(const dispatch::ConfigVersion& version) {
  return {.version = version.version, .hash = version.config_hash, .path = version.path};
}

// Runs f, which throws where the rules are wrong; nothing has changed then.
template <typename F>
RulesCheck checked(F&& f) {
  try {
    f();
    return {.ok = true, .messages = {}};
  } catch (const ttc::Error& error) {
    return {.ok = false, .messages = {public_error(error).what()}};
  }
}

}  // namespace

Dispatch dispatch_of(const Session& session) {
  auto impl = std::make_shared<Dispatch::Impl>();
  impl->session = session.shared_impl();
  return Dispatch(std::move(impl));
}

std::string Dispatch::telemetry() const {
  return guarded([&] { return text_of(impl_->chooser().telemetry()); });
}

std::string Dispatch::explain(const std::string& node) const {
  return guarded([&] {
    const std::lock_guard lock(impl_->session->run_mutex);
    const dispatch::SelectionContext* context = impl_->session->executor->selection_context(node);
    if (context == nullptr)
      throw Error(Error::Kind::usage, "no run has reached a device op called '" + node + "'",
                  "Session::placement() lists the nodes");
    return text_of(impl_->chooser().explain(*context));
  });
}

RulesCheck Dispatch::dry_run(const std::string& rules) const {
  return guarded([&]() -> RulesCheck {
    const dispatch::DryRun dry = impl_->hot_rules().dry_run_text(rules);
    return {.ok = dry.ok, .messages = dry.messages};
  });
}

RulesCheck Dispatch::reload(const std::string& rules) {
  return guarded([&] {
    dispatch::ConfigDispatcher& active = impl_->rules();
    return checked([&] { active.reload_text(rules); });
  });
}

RulesCheck Dispatch::reload() {
  return guarded([&] {
    dispatch::ConfigDispatcher& active = impl_->rules();
    return checked([&] { active.reload(); });
  });
}

bool Dispatch::rollback() {
  return guarded([&] { return impl_->hot_rules().rollback(); });
}

RulesVersion Dispatch::version() const {
  return guarded([&]() -> RulesVersion {
    const auto current = impl_->hot_rules().current_version();
    return current != nullptr ? version_of(*current) : RulesVersion{};
  });
}

void Dispatch::on_reload(std::function<void(const RulesVersion&)> callback) {
  guarded([&] {
    impl_->hot_rules().on_reload(
        [callback = std::move(callback)](const dispatch::ConfigVersion& version) { callback(version_of(version)); });
  });
}

void Dispatch::on_error(std::function<void(const std::string& message)> callback) {
  guarded([&] {
    impl_->hot_rules().on_error(
        [callback = std::move(callback)](const ttc::Error& error) { callback(public_error(error).what()); });
  });
}

}  // namespace ttrt
