// conv_tiled's convolution on tensor cores.
#pragma once

#include "common/mma_narrow.cuh"
#include "conv/conv_tiled.cuh"

namespace rk {

template <int BM, int BN, int BK, int WM, int WN, int KG, int ST, int Products, int Mode, int RANK, class X, class W,
          class E, class Epi, class Pro>
struct ConvMma : ConvOf<TensorTile<E, W, X, BM, BN, BK, WM, WN, KG, ST, true, false, false, true, Products>, Mode, RANK,
                        X, W, Epi, Pro> {};

}  // namespace rk
