// The K best elements of lines, for small K and elements of at most 32 bits. WARPS warps have a line together, and each
// of their lanes keeps the best of its elements in registers. Then the best of all lanes of a warp is taken K times,
// and its lane goes on with its next one; of what several warps have found, the first one does so again. What is
// compared is a number of 64 bits for each element: its rank, and below that its place, of which the lowest one counts
// most.
#pragma once

#include "common/rank.cuh"
#include "indexed/topk.cuh"

namespace rk {

template <int K, int WARPS, class T>
struct TopKFew {
  using Args = TopKArgs;
  using C = Calc<T>;
  static constexpr int kThreads = 256, kLines = kThreads / 32 / WARPS;  // at a time
  static_assert(WARPS == 1 || kLines == 1);
  static constexpr int kFound = WARPS * K;  // what the warps of a line have found
  static constexpr int kShared = WARPS > 1 ? kFound * 8 : 0;
  static constexpr int kBatch = WARPS > 1 ? 4 : 8;  // elements that a lane asks for before it uses the first of them

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

  // The best elements of every 32·WARPS-th of a line.
  RT_DEVICE static Best search(const Args& a, const T* src, int thread) {
    constexpr int kStep = 32 * WARPS;
    Best best;
    RK_NO_UNROLL
    for (int first = thread; first < a.n; first += kStep * kBatch) {
      T x[kBatch];
      RT_UNROLL
      for (int u = 0; u < kBatch; ++u) {
        const int i = first + kStep * u;
        if (i < a.n) x[u] = src[i * a.src.s[1]];
      }
      RT_UNROLL
      for (int u = 0; u < kBatch; ++u) {
        const int i = first + kStep * u;
        const bool largest = a.largest != 0;
        if (i < a.n) best.add(uint64_t(rank_of<T>(C(x[u]), largest, largest)) << 32 | ~uint32_t(i));
      }
    }
    return best;
  }

  // Takes the k best elements of all lanes. Each lane is told the one that has as many before it as its number says.
  RT_DEVICE static uint64_t take(const rt::Task& t, Best& best, int k) {
    uint64_t mine = 0;
    RK_NO_UNROLL
    for (int i = 0; i < k; ++i) {
      uint64_t top = best.at[0];
      RT_UNROLL
      for (int mask = 16; mask > 0; mask /= 2) {
        const uint64_t other = rt::shfl_xor(t, top, mask);
        top = other > top ? other : top;
      }
      if (top != 0 && best.at[0] == top) best.drop_first();
      if (t.tid % 32 == i) mine = top;
    }
    return mine;
  }

  // Of what the warps of a line have found, the first warp takes the best.
  RT_DEVICE static uint64_t join(const rt::Task& t, uint64_t mine, int k) {
    uint64_t* const found = reinterpret_cast<uint64_t*>(t.smem);
    const int lane = t.tid % 32;
    if (lane < K) found[t.tid / 32 * K + lane] = lane < k ? mine : 0;
    t.sync();
    Best best;
    if (t.tid < 32) {
      RT_UNROLL
      for (int i = 0; i < kFound; i += 32) {
        if (i + lane < kFound) best.add(found[i + lane]);
      }
      mine = take(t, best, k);
    }
    t.sync();  // the next line's elements come
    return mine;
  }

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const auto tile = a.tiles.tile(rtask);
    const int lane = t.tid % 32, thread = t.tid % (32 * WARPS);
    RK_NO_UNROLL
    for (int e = t.tid / (32 * WARPS); e < tile.size; e += kLines) {
      const Coordinates<2> c(a.tiles, tile, e);
      const int first[3] = {c.at[0], 0, c.at[1]};
      const T* src = t.ptr<const T>(a.src.ref) + a.src.offset(first);
      Best best = search(a, src, thread);
      uint64_t mine = take(t, best, a.k);
      if constexpr (WARPS > 1) mine = join(t, mine, a.k);
      if (thread >= a.k) continue;
      const int at[3] = {c.at[0], lane, c.at[1]};
      const int index = mine != 0 ? int(~uint32_t(mine)) : 0;
      // Where only a run knows n, the last places may be left over.
      store<T>(t, a.values, at, mine != 0 ? src[index * a.src.s[1]] : T(0));
      store<int64_t>(t, a.indices, at, index);
    }
  }
};

}  // namespace rk
