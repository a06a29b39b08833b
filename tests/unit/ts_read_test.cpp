// TorchScript to IR: names, weights, shape arithmetic, control flow, state. Models are made with LibTorch's compiler.
#include "formats/ts_read.h"

#include "tests/catch.h"
