// The variant of topk.cuh for large K.
#pragma once

#include "indexed/topk.cuh"
