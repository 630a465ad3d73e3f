// Pointwise convolution without stride or padding is a plain GEMM whose constant operand stands on the
// left: out[n][c][p] = epilogue(Σ_k W[c][k] · prologue(X[n][k][p])).
#pragma once

#include "common/loaders.cuh"
#include "common/tile.cuh"
#include "rt/device/device.cuh"

namespace rk {

// The convolution of elements of type X with weights of type W by tiles of type T. Mode is kLoadVec4, kLoadByCol (lanes
// along p) or kLoadByRow (lanes along k).
template <class T, int Mode, class X, class W, class Epi, class Pro>
struct PointwiseOf {
  using E = typename T::Element;
  static constexpr int BM = T::BM, BN = T::BN, BK = T::BK;
  static constexpr int kThreads = T::kThreads;
  static constexpr int kShared = T::kShared;
  static constexpr bool kEarly = true;

  struct Args {
    rt::Ref x, w;
    rt::Operand3 out;  // [image·split][channel][position]
    Div groups;
    int32_t out_channels, in_channels;  // of a group
    int32_t positions;
    Div tiles_m, tiles_n;
    int32_t tiles_k, split_k;  // k tiles of the whole sum and of one split
    Div splits;
    int64_t step_n, step_c, step_p;  // element strides of the input
    typename Epi::Args epi;
    typename Pro::Args pro;
  };

  // rTasks count as those of ConvTiled.
  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    int image = rtask;
    const int nt = take_digit(image, a.tiles_n), mt = take_digit(image, a.tiles_m);
    const int group = take_digit(image, a.groups), i0 = image, split = take_digit(image, a.splits);
    const int m0 = mt * BM, p0 = nt * BN, kt0 = split * a.split_k;
    const int count = a.tiles_k - kt0 < a.split_k ? a.tiles_k - kt0 : a.split_k;

    PackedLoader<kThreads, T::kLeftRows, T::kLeftCols, T::LDA, W, E> load_w{
        t.template ptr<const W>(a.w) +
            place((group * static_cast<int>(a.tiles_m.d) + mt) * a.tiles_k + kt0, T::kLeftRows * T::kLeftCols),
        t.tid};
    const X* x = t.template ptr<const X>(a.x) +
                 place(image, a.step_n, place(group * a.in_channels + kt0 * BK, a.step_c, place(p0, a.step_p)));
    StridedLoader<kThreads, BK, BN, T::LDB, false, Mode, Pro, X, E> load_x{
        x, a.step_c, a.step_p, a.in_channels - kt0 * BK, a.positions - p0, t.tid, a.pro};
    typename T::Acc acc = {};
    multiply_tiles<T>(t, load_w, load_x, count, acc);
    const int c0 = group * a.out_channels;
    drain_tile<T, Epi>(t, acc, a.out, a.epi, {i0, c0 + m0, p0, c0 + a.out_channels, a.positions});
  }
};

template <int BM, int BN, int BK, int TM, int TN, int KG, int ST, int Mode, class X, class W, class Epi, class Pro>
struct ConvPointwise : PointwiseOf<Tile<BM, BN, BK, TM, TN, KG, ST, kColumns>, Mode, X, W, Epi, Pro> {};

}  // namespace rk
