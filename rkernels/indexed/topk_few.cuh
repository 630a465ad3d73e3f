// The K best elements of lines, for small K and elements of at most 32 bits: a warp has a line, and each of its lanes
// keeps the best of every 32nd element in registers. Then the best of all lanes is taken K times, and its lane goes on
// with its next one. What is compared is a number of 64 bits for each element: its rank, and below that its place, of
// which the lowest one counts most.
#pragma once

#include "common/rank.cuh"
#include "indexed/topk.cuh"

namespace rk {

template <int K, class T>
struct TopKFew {
  using Args = TopKArgs;
  using C = Calc<T>;
  static constexpr int kThreads = 256, kWarps = kThreads / 32;
  static constexpr int kShared = 0;
  static constexpr int kBatch = 8;  // elements that a lane asks for before it uses the first of them

  // The best elements of a lane, in order. 0 stands for none.
  struct Best {
    uint64_t at[K] = {};

    RT_DEVICE void add(uint64_t x) {
      RT_UNROLL
      for (int j = 0; j < K; ++j) {
        const uint64_t less = x < at[j] ? x : at[j];
        at[j] = x < at[j] ? at[j] : x;
        x = less;
      }
    }
    RT_DEVICE void drop_first() {
      RT_UNROLL
      for (int j = 0; j + 1 < K; ++j) at[j] = at[j + 1];
      at[K - 1] = 0;
    }
  };

  RT_DEVICE static Best search(const Args& a, const T* src, int lane) {
    Best best;
    RK_NO_UNROLL
    for (int first = lane; first < a.n; first += 32 * kBatch) {
      T x[kBatch];
      RT_UNROLL
      for (int u = 0; u < kBatch; ++u) {
        const int i = first + 32 * u;
        if (i < a.n) x[u] = src[i * a.src.s[1]];
      }
      RT_UNROLL
      for (int u = 0; u < kBatch; ++u) {
        const int i = first + 32 * u;
        const bool largest = a.largest != 0;
        if (i < a.n) best.add(uint64_t(rank_of<T>(C(x[u]), largest, largest)) << 32 | ~uint32_t(i));
      }
    }
    return best;
  }

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const auto tile = a.tiles.tile(rtask);
    const int lane = t.tid % 32;
    RK_NO_UNROLL
    for (int e = t.tid / 32; e < tile.size; e += kWarps) {
      const Coordinates<2> c(a.tiles, tile, e);
      const int first[3] = {c.at[0], 0, c.at[1]};
      const T* src = t.ptr<const T>(a.src.ref) + a.src.offset(first);
      Best best = search(a, src, lane);
      uint64_t mine = 0;  // the element that has as many before it as the lane's number says
      RK_NO_UNROLL
      for (int i = 0; i < a.k; ++i) {
        uint64_t top = best.at[0];
        RT_UNROLL
        for (int mask = 16; mask > 0; mask /= 2) {
          const uint64_t other = rt::shfl_xor(t, top, mask);
          top = other > top ? other : top;
        }
        if (top != 0 && best.at[0] == top) best.drop_first();
        if (lane == i) mine = top;
      }
      if (lane >= a.k) continue;
      const int at[3] = {c.at[0], lane, c.at[1]};
      const int index = mine != 0 ? int(~uint32_t(mine)) : 0;
      // Where only a run knows n, the last places may be left over.
      store<T>(t, a.values, at, mine != 0 ? src[index * a.src.s[1]] : T(0));
      store<int64_t>(t, a.indices, at, index);
    }
  }
};

}  // namespace rk
