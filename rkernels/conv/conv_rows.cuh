// Convolution as implicit GEMM on tensor cores, for images whose channels lie beside each other (channels last):
// out[p][c] = epilogue(Σ_k prologue(X[k at p]) · W[c][k]). The rows of the left operand are output positions, those of
// the result, too, so that lanes that are neighbours store channels that are neighbours.
#pragma once

#include "common/mma_narrow.cuh"
#include "conv/gather.cuh"
#include "conv/runs.cuh"
#include "rt/device/device.cuh"

namespace rk {

// Mode is kGatherRun, or kGatherTable or kGatherTransposed where the input's channels do not come in aligned runs of 16
// bytes. RANK is 3, or 2 where input, output and filter are one deep and nothing is padded there. A batch of images can
// be one image whose depth it is. X and W are the element types of input and weights, E is what is multiplied.
template <int BM, int BN, int BK, int WM, int WN, int KG, int ST, int Products, int Mode, int RANK, class X, class W,
          class E, class Epi, class Pro>
struct ConvRows {
  // An input of few channels of 8 bits may have the channels of a place in one word, which is copied as it is.
  static constexpr bool kPixels = std::is_same_v<X, int32_t> || std::is_same_v<X, uint32_t>;
  static constexpr int kWord = kPixels ? sizeof(X) / sizeof(E) : 1;  // values of k of an element of X
  using T = TensorTile<E, X, W, BM, BN, BK, WM, WN, KG, ST, false, true, false, false, Products>;
  using In = std::conditional_t<kPixels, X, StagedAs<E, X>>;
  using Staged = std::conditional_t<kPixels, X, E>;
  using Weight = StagedAs<E, W>;
  static constexpr int kThreads = T::kThreads;
  static constexpr int kShared = T::kShared;
  static constexpr bool kEarly = true;

  struct Args {
    rt::Ref x, w, steps, scale;  // scale is that of the filter's parts, where there are three products
    uint32_t padding;            // what stands outside of an input of 8 bits, in each byte
    rt::Operand3 out;            // [image·split][position][channel]
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

  // rTasks count (image, split, group, channel tile, position tile), the last one fastest: those that share weights
  // run together.
  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    int image = rtask;
    const int mt = take_digit(image, a.tiles_m), nt = take_digit(image, a.tiles_n);
    const int group = take_digit(image, a.groups), i0 = image, split = take_digit(image, a.splits);
    const int p0 = mt * BM, n0 = nt * BN, kt0 = split * a.split_k;
    const int count = a.tiles_k - kt0 < a.split_k ? a.tiles_k - kt0 : a.split_k;

    PackedLoader<kThreads, T::kRightRows, T::kRightCols, T::LDB, Weight, E> load_w{
        t.template ptr<const Weight>(a.w) +
            place((group * static_cast<int>(a.tiles_n.d) + nt) * a.tiles_k + kt0, T::kRightRows * T::kRightCols),
        t.tid};
    const In* x = t.template ptr<const In>(a.x) +
                  place(image, a.win.step_n, place(group * static_cast<int>(a.runs.channels.d), a.win.step_c));
    const ConstantScale<T> scale(t, a.scale);
    typename T::Acc acc = {};
    if constexpr (Mode == kGatherRun) {
      RunLoader<kThreads, BM, BK, BK, T::LDA, RANK, Pro, In, E> load_x(x, a.win, a.runs, p0, a.positions, kt0 * BK,
                                                                       t.tid, a.pro, Padding<In>{a.padding});
      multiply_tiles<T>(t, load_x, load_w, count, acc, scale);
    } else {
      const Step* steps = t.template ptr<const Step>(a.steps) + kt0 * (BK / kWord);
      Words load_x{{t, x, steps, a.win, p0 + t.tid % BM, a.positions, a.pro, Padding<In>{a.padding}}};
      multiply_tiles<T>(t, load_x, load_w, count, acc, scale);
    }
    const int c0 = group * a.out_channels;
    drain_tile<T, Epi>(t, acc, a.out, a.epi, {i0, p0, c0 + n0, a.positions, c0 + a.out_channels});
  }

 private:
  using Gather = GatherLoader<kThreads, BK / kWord, BM, 1, T::LDA / kWord, Mode, RANK, 4, Pro, In, Staged>;
  // Brings elements of X to a stage of E.
  struct Words : Gather {
    RT_DEVICE void issue(E* stage) { Gather::issue(reinterpret_cast<Staged*>(stage)); }
  };
};

}  // namespace rk
