// Few rows against streamed weights of floats; see streamed_rows.cuh.
#pragma once

#include "gemm/streamed_rows.cuh"

namespace rk {

// Weights of type W: a run is four of float, or eight of 16 bits.
template <class W>
struct FloatWeights {
  static constexpr int kRun = kPerLoad<W>;
  struct Args {};

  template <int KQ, int C>
  struct Unit {
    static constexpr int kThreads = 256, kBytes = KQ * C * 16 * kThreads;
    WeightRun<W> w[KQ][C];
    RT_DEVICE void load(const char* unit, int tid) {
      const WeightRun<W>* at = reinterpret_cast<const WeightRun<W>*>(unit) + tid;
      RT_UNROLL
      for (int q = 0; q < KQ; ++q) {
        RT_UNROLL
        for (int c = 0; c < C; ++c) w[q][c] = at[(q * C + c) * kThreads];
      }
    }
  };

  template <int MB, int KQ>
  struct Input {
    float v[MB][KQ][kRun];
    RT_DEVICE void set(int m, int q, int i, float x) { v[m][q][i] = x; }
  };

  // The sums of the lane's products of one unit. Where there are few columns, each is summed up in several chains that
  // need not wait for each other.
  template <int MB, int KQ, int C>
  static RT_DEVICE void multiply(const Input<MB, KQ>& in, const Unit<KQ, C>& unit, const Args&, float* sums) {
    constexpr int kSums = MB * C, kChains = kSums < 4 ? 4 / kSums : 1;
    float chains[kSums][kChains] = {};
    RT_UNROLL
    for (int q = 0; q < KQ; ++q) {
      RT_UNROLL
      for (int m = 0; m < MB; ++m) {
        RT_UNROLL
        for (int c = 0; c < C; ++c) {
          RT_UNROLL
          for (int i = 0; i < kRun; ++i) {
            chains[m * C + c][i % kChains] += in.v[m][q][i] * float(unit.w[q][c].v[i]);
          }
        }
      }
    }
    RT_UNROLL
    for (int i = 0; i < kSums; ++i) {
      sums[i] = chains[i][0];
      RT_UNROLL
      for (int j = 1; j < kChains; ++j) sums[i] += chains[i][j];
    }
  }
};

template <int MB, int C, int T, int WK, int KQ, int V, int Norm, int Pairs, int Joined, int Words, class X, class W,
          class Epi, class Pro>
using GemvStream = StreamedRows<MB, C, T, WK, KQ, V, Norm, Pairs, Joined, Words, X, FloatWeights<W>, Epi, Pro>;

}  // namespace rk
