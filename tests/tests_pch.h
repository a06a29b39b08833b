// Precompiled for the tests; no source includes it (hence no guard).
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "support/pch.h"
#include "tests/catch.h"
