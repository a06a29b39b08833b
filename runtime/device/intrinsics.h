// <immintrin.h> of x86 hosts. GCC 12's leaves the operand that an unmasked AVX-512 intrinsic does not use
// uninitialised, and warns of it.
#pragma once

#if defined(__x86_64__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif
