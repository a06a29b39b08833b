// Catch2 v2 or v3, whichever the system has.
#pragma once

#ifdef TTC_CATCH2_V2
#include <catch2/catch.hpp>
inline auto ContainsSubstring(const std::string& text) { return Catch::Contains(text); }
#else
#include <catch2/catch_all.hpp>
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;
#endif
