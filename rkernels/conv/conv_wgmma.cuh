// conv_rows' convolution by the warp groups of tensor cores (common/wgmma.cuh): the filter is packed and streamed, and
// each warp group brings the input of its 64 positions by itself.
#pragma once

#include "common/wgmma.cuh"
#include "conv/runs.cuh"
#include "rt/device/device.cuh"

namespace rk {

// The input's channels come in aligned runs of 16 bytes. RANK and X are as in conv_rows. E is what is multiplied, and
// of integers of 8 bits the type of the filter.
template <int BM, int BN, int KG, int ST, int Products, int RANK, class X, class E, class Epi, class Pro>
struct ConvWgmma {
  using T = GroupTile<X, E, BM, BN, KG, ST, Products, true>;
  using In = StagedAs<E, X>;
  static constexpr int kThreads = T::kThreads;
  static constexpr int kShared = T::kShared;
  static constexpr int kStreamStep = T::kStageB;

  struct Args {
    rt::Ref x, w, scale;  // scale is that of the filter's parts, where there are three products
    uint32_t padding;     // what stands outside of an input of 8 bits, in each byte
    rt::Operand3 out;     // [image·split][position][channel]
    Div groups;
    int32_t out_channels;  // of a group
    int32_t positions;     // of one image
    Div tiles_m, tiles_n;
    int32_t tiles_k, split_k;  // k tiles of the whole sum and of one split
    Div splits;
    Runs runs;
    Window win;
    typename Epi::Args epi;
    typename Pro::Args pro;
  };

  // rTasks count as those of ConvRows.
  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    int image = rtask;
    const int mt = take_digit(image, a.tiles_m), nt = take_digit(image, a.tiles_n);
    const int group = take_digit(image, a.groups), i0 = image, split = take_digit(image, a.splits);
    const int p0 = mt * BM, kt0 = split * a.split_k, c0 = group * a.out_channels;
    const int count = a.tiles_k - kt0 < a.split_k ? a.tiles_k - kt0 : a.split_k;
    const typename T::At at(t.tid);
    const int channel = group * static_cast<int>(a.runs.channels.d);
    const In* x = t.inputs(t.template ptr<const In>(a.x) + place(image, a.win.step_n, channel));
    using Rows = RunLoader<128, 64, T::kSlice, T::BK, T::LDA, RANK, Pro, In, E, T::kSwizzled>;
    Rows rows(x, a.win, a.runs, p0 + at.row, a.positions, kt0 * T::BK + at.kg * T::kSlice, t.tid % 128, a.pro,
              Padding<In>{a.padding});
    typename T::Acc acc = {};
    GroupProducts<T, Rows> products(t, rows, count, ConstantScale<T>(t, a.scale));
    const TilePlace place = {i0, p0, c0 + nt * BN, a.positions, c0 + a.out_channels};
    TileDrain<T, Epi> drain(t, a.out, a.epi, place);
    products.run(acc);
    drain.store(acc);
  }
};

}  // namespace rk
