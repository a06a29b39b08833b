// Precompiled for the tool: the command line's library and src/support/pch.h. Nothing includes it (hence no guard).
#include <CLI/CLI.hpp>
#include <iostream>

#include "support/pch.h"
