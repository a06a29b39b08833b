// Precompiled for the tests of what reads or writes JSON; no source includes it (hence no guard).
#include <nlohmann/json.hpp>

#include "tests/tests_pch.h"
