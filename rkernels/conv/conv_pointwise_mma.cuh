// conv_pointwise's product on tensor cores.
#pragma once

#include "common/mma_narrow.cuh"
#include "conv/conv_pointwise.cuh"

namespace rk {

template <int BM, int BN, int BK, int WM, int WN, int KG, int ST, int Products, int Mode, class X, class W, class E,
          class Epi, class Pro>
struct ConvPointwiseMma
    : PointwiseOf<TensorTile<E, W, X, BM, BN, BK, WM, WN, KG, ST, true, false, false, true, Products>, Mode, X, W, Epi,
                  Pro> {};

}  // namespace rk
