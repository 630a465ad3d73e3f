// The K best elements of lines, for small K: a warp has a line, and each of its lanes keeps the best of every 32nd
// element in registers. Then the best of all lanes is taken K times, and its lane goes on with its next one.
#pragma once

#include "indexed/topk.cuh"

namespace rk {

template <int K, class T>
struct TopKFew {
  using Args = TopKArgs;
  using C = Calc<T>;
  static constexpr int kThreads = 256, kWarps = kThreads / 32;
  static constexpr int kShared = 0;
  static constexpr int kBatch = 8;             // elements that a lane asks for before it uses the first of them
  static constexpr int kNothing = 0x7fffffff;  // the index of a place without an element: last of all

  struct Element {
    C value;
    int index;
  };

  RT_DEVICE static bool before(const TopKOrder<C>& order, const Element& a, const Element& b) {
    if (a.index == kNothing || b.index == kNothing) return a.index != kNothing && b.index == kNothing;
    return order.before(a.value, a.index, b.value, b.index);
  }

  // The best elements of a lane, in order.
  struct Best {
    Element at[K];

    RT_DEVICE void add(const TopKOrder<C>& order, Element x) {
      RT_UNROLL
      for (int j = 0; j < K; ++j) {
        if (!before(order, x, at[j])) continue;
        const Element y = at[j];
        at[j] = x, x = y;
      }
    }
    RT_DEVICE void drop_first() {
      RT_UNROLL
      for (int j = 0; j + 1 < K; ++j) at[j] = at[j + 1];
      at[K - 1].index = kNothing;
    }
  };

  RT_DEVICE static Best search(const Args& a, const TopKOrder<C>& order, const T* src, int lane) {
    Best best;
    RT_UNROLL
    for (int j = 0; j < K; ++j) best.at[j] = {C(0), kNothing};
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
        if (i < a.n) best.add(order, {C(x[u]), i});
      }
    }
    return best;
  }

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const auto tile = a.tiles.tile(rtask);
    const TopKOrder<C> order{a.largest};
    const int lane = t.tid % 32;
    RK_NO_UNROLL
    for (int e = t.tid / 32; e < tile.size; e += kWarps) {
      const Coordinates<2> c(a.tiles, tile, e);
      const int first[3] = {c.at[0], 0, c.at[1]};
      Best best = search(a, order, t.ptr<const T>(a.src.ref) + a.src.offset(first), lane);
      RK_NO_UNROLL
      for (int i = 0; i < a.k; ++i) {
        Element top = best.at[0];
        RT_UNROLL
        for (int mask = 16; mask > 0; mask /= 2) {
          const Element other = rt::shfl_xor(t, top, mask);
          if (before(order, other, top)) top = other;
        }
        const bool there = top.index != kNothing;  // where only a run knows n, the last places may be left over
        if (there && best.at[0].index == top.index) best.drop_first();
        if (lane != 0) continue;
        const int at[3] = {c.at[0], i, c.at[1]};
        store<T>(t, a.values, at, there ? fn::Cast<T>(top.value) : T(0));
        store<int64_t>(t, a.indices, at, there ? top.index : 0);
      }
    }
  }
};

}  // namespace rk
