// Between the registry of named dispatchers and the built-in ones.
#pragma once

#include "dispatch/dispatchers.h"

namespace ttrt::dispatch {

void register_builtin_dispatchers(
    const std::function<void(const std::string&, std::shared_ptr<const TtnnDispatcher>)>& add);
// A dispatcher from a plug-in library; throws ttc::Error (bad file).
std::shared_ptr<const TtnnDispatcher> open_dispatcher_plugin(const std::string& path);

}  // namespace ttrt::dispatch
