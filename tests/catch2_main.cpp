// Catch2 v2's main; v3 brings its own.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
