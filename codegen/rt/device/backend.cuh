// Chooses the back end of device code by the compiler: first what it must define, then its definitions. A further back
// end has a branch here, one in rt/host/backend.h, and a row in codegen/backend.
#pragma once

#include "rt/device/types.cuh"

#include "backend/primitives.cuh"

#if defined(__CUDACC__)
#include "backend/cuda/device.cuh"
#else
#include "backend/emu/device.h"
#endif
