// Precompiled for the libraries that handle graphs and operators; no source includes it (hence no guard).
#include "ops/op.h"
#include "support/error.h"
#include "support/pch.h"
