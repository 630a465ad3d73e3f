// gemm_tiled's product on tensor cores.
#pragma once

#include "common/mma_narrow.cuh"
#include "gemm/gemm_tiled.cuh"

namespace rk {

template <int BM, int BN, int BK, int WM, int WN, int KG, int ST, int Products, int AcrossA, int AcrossB, int ModeA,
          int ModeB, class A, class B, class E, class Epi, class Pro>
struct GemmMma : GemmOf<TensorTile<E, A, B, BM, BN, BK, WM, WN, KG, ST, false, ModeB == kLoadPacked, AcrossA != 0,
                                   AcrossB != 0, Products>,
                        ModeA, ModeB, StagedAs<E, A>, StagedAs<E, B>, Epi, Pro> {};

}  // namespace rk
