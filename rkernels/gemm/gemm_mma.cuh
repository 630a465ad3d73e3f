// gemm_tiled's product on tensor cores.
#pragma once

#include "common/mma.cuh"
#include "gemm/gemm_tiled.cuh"

namespace rk {

template <int BM, int BN, int BK, int WM, int WN, int KG, int ST, int Products, int ModeA, int ModeB, class A, class B,
          class Epi, class Pro>
struct GemmMma
    : GemmOf<MmaTile<BM, BN, BK, WM, WN, KG, ST, false, ModeB == kLoadPacked, Products>, ModeA, ModeB, A, B, Epi, Pro> {
};

}  // namespace rk
