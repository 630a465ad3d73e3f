// Chooses the back end of the host's side by the compiler, as rt/device/backend.cuh does for device code.
#pragma once

#if defined(__CUDACC__)
#include "backend/cuda/host.cuh"
#else
#include "backend/emu/host.h"
#endif

#include "backend/host_primitives.h"
