// Precompiled for the tool: the command line's library and src/support/pch.h. No file relies on it.
#pragma once

#include <CLI/CLI.hpp>
#include <iostream>

#include "support/pch.h"
