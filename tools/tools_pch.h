// Precompiled for the tool; nothing includes it (hence no guard).
#include <iostream>

#include "support/json_pch.h"
