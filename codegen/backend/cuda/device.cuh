// CUDA's definitions of the primitives for the device (backend/primitives.cuh has their contracts). Code that is
// special to a generation of GPUs, and all PTX, stands in these files and nowhere else.
#pragma once

#include <cuda_runtime.h>

#include "backend/cuda/threads.cuh"
#include "backend/cuda/memory.cuh"
#include "backend/cuda/watchdog.cuh"
#include "backend/cuda/mbarriers.cuh"
#include "backend/cuda/copies.cuh"
#include "backend/cuda/boxes.cuh"
#include "backend/cuda/clusters.cuh"
#include "backend/cuda/launches.cuh"
#include "backend/cuda/matrix.cuh"
#include "backend/cuda/matrix_groups.cuh"
