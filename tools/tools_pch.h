// Precompiled for the tool; nothing includes it (hence no guard).
#include <iostream>

#include "support/pch.h"
