// Precompiled for libraries most of whose files handle JSON; no source includes it (hence no guard).
#include <nlohmann/json.hpp>

#include "support/pch.h"
