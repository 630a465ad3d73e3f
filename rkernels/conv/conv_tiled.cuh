// Convolution as implicit GEMM: out[n][c][p] = epilogue(Σ_k W[c][k] · prologue(X[n][k at p])),
// a tile of BM output channels by BN output positions an rTask. Any rank up to three, stride, dilation,
// padding and group; and transposed convolution in gather form.
#pragma once

#include "common/loaders.cuh"
#include "common/tile.cuh"
#include "conv/gather.cuh"
#include "rt/device/device.cuh"

namespace rk {

// The convolution of elements of type X with weights of type W by tiles of type T. Products are added in float32.
template <class T, int Mode, int RANK, class X, class W, class Epi, class Pro>
struct ConvOf {
  using E = typename T::Element;
  static constexpr int BM = T::BM, BN = T::BN, BK = T::BK;
  static constexpr int kThreads = T::kThreads;
  static constexpr int kShared = T::kShared;
  static constexpr bool kEarly = true;

  struct Args {
    rt::Ref x, w, steps;
    rt::Operand3 out;  // [image·split][channel][position]
    Div groups;
    int32_t out_channels, in_channels;  // of a group
    int32_t positions;                  // of one image
    Div tiles_m, tiles_n;
    int32_t tiles_k, split_k;  // k tiles of the whole sum and of one split
    Div splits;
    Window win;
    typename Epi::Args epi;
    typename Pro::Args pro;
  };

  // rTasks count (image, split, group, channel tile, position tile), the last one fastest: those that
  // share weights run together.
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
    const X* x = t.template ptr<const X>(a.x) + place(image, a.win.step_n, place(group * a.in_channels, a.win.step_c));
    // By tap the first step is read at once, also for a split without any.
    const int first = Mode != kGatherTap ? kt0 * BK : count > 0 ? kt0 : 0;
    const Step* steps = t.template ptr<const Step>(a.steps) + first;
    constexpr int kCopies = Mode == kGatherTap || Epi::kLength < 12 ? 4 : 2;  // a long epilogue is large code already
    GatherLoader<kThreads, BK, BN, T::LDB, 1, Mode, RANK, kCopies, Pro, X, E> load_x(
        t, x, steps, a.win, p0 + t.tid % BN, a.positions, a.pro);
    typename T::Acc acc = {};
    multiply_tiles<T>(t, load_w, load_x, count, acc);
    const int c0 = group * a.out_channels;
    drain_tile<T, Epi>(t, acc, a.out, a.epi, {i0, c0 + m0, p0, c0 + a.out_channels, a.positions});
  }
};

template <int BM, int BN, int BK, int TM, int TN, int KG, int ST, int Mode, int RANK, class X, class W, class Epi,
          class Pro>
struct ConvTiled : ConvOf<Tile<BM, BN, BK, TM, TN, KG, ST, kColumns>, Mode, RANK, X, W, Epi, Pro> {};

}  // namespace rk
