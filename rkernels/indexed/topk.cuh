// The K best elements of lines of a cube [outer][n][inner] in order, with their indices. Among equals the
// lower index comes first; NaN counts as larger than everything.
#pragma once

#include "common/math.cuh"
#include "common/tiles.cuh"
#include "rt/device/device.cuh"

namespace rk {

struct TopKArgs {
  Tiles<2> tiles;  // of the lines [outer][inner]
  Strided<3> src;
  Strided<3> values, indices;
  int32_t n, k, largest;
};

template <class C>
struct TopKOrder {
  int largest;

  // Whether x at index i comes before y at index j.
  RT_DEVICE bool before(C x, int i, C y, int j) const {
    const bool nan_x = !(x == x), nan_y = !(y == y);
    if (nan_x || nan_y) {
      if (nan_x && nan_y) return i < j;
      return nan_x == (largest != 0);
    }
    if (x == y) return i < j;
    return (x > y) == (largest != 0);
  }
};

// Sorts in shared memory: KEEP best so far and KEEP new elements at a time. SIZE is that of Calc<T>.
template <int KEEP, int SIZE, class T>
struct TopKSort {
  using Args = TopKArgs;
  using C = Calc<T>;
  static_assert(SIZE == sizeof(C));
  static constexpr int kThreads = 256;
  static constexpr int kSlots = 2 * KEEP;
  static constexpr int kShared = kSlots * (SIZE + 4);
  static constexpr int kNothing = 0x7fffffff;  // the index of slots without an element: last of all

  struct Slots {
    C* value;
    int* index;
    TopKOrder<C> order;

    RT_DEVICE bool before(int a, int b) const {
      if (index[a] == kNothing || index[b] == kNothing) return index[b] == kNothing && index[a] != kNothing;
      return order.before(value[a], index[a], value[b], index[b]);
    }
    RT_DEVICE void swap(int a, int b) const {
      const C v = value[a];
      const int i = index[a];
      value[a] = value[b], index[a] = index[b];
      value[b] = v, index[b] = i;
    }
  };

  // Batcher's bitonic sort of all slots.
  RT_DEVICE static void sort(const rt::Task& t, const Slots& s) {
    RK_NO_UNROLL
    for (int run = 2; run <= kSlots; run *= 2) {
      RK_NO_UNROLL
      for (int gap = run / 2; gap > 0; gap /= 2) {
        t.sync();
        RK_NO_UNROLL
        for (int p = t.tid; p < KEEP; p += kThreads) {
          const int a = 2 * p - (p & (gap - 1)), b = a + gap;
          const bool ascending = (a & run) == 0;
          if (s.before(b, a) == ascending && s.before(a, b) != ascending) s.swap(a, b);
        }
      }
    }
    t.sync();
  }

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const auto tile = a.tiles.tile(rtask);
    C* value = reinterpret_cast<C*>(t.smem);
    const Slots s{value, reinterpret_cast<int*>(value + kSlots), {a.largest}};
    RK_NO_UNROLL
    for (int e = 0; e < tile.size; ++e) {
      const Coordinates<2> c(a.tiles, tile, e);
      const int first[3] = {c.at[0], 0, c.at[1]};
      const T* src = t.ptr<const T>(a.src.ref) + a.src.offset(first);
      RK_NO_UNROLL
      for (int base = 0; base == 0 || base < a.n; base += base == 0 ? kSlots : KEEP) {
        t.sync();
        RK_NO_UNROLL
        for (int i = t.tid; i < (base == 0 ? kSlots : KEEP); i += kThreads) {
          const int slot = base == 0 ? i : KEEP + i, k = base + i;
          s.index[slot] = k < a.n ? k : kNothing;
          if (k < a.n) s.value[slot] = C(src[k * a.src.s[1]]);
        }
        sort(t, s);
      }
      RK_NO_UNROLL
      for (int i = t.tid; i < a.k; i += kThreads) {
        const int at[3] = {c.at[0], i, c.at[1]};
        const bool there = i < a.n;  // where only a run knows n, the last places may be left over
        store<T>(t, a.values, at, there ? fn::Cast<T>(s.value[i]) : T(0));
        store<int64_t>(t, a.indices, at, there ? s.index[i] : 0);
      }
    }
  }
};

// Counts, for each element, those that come before it: its place in the result. Any K.
template <class T>
struct TopKRank {
  using Args = TopKArgs;
  using C = Calc<T>;
  static constexpr int kThreads = 256;
  static constexpr int kShared = 0;

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const auto tile = a.tiles.tile(rtask);
    const TopKOrder<C> order{a.largest};
    RK_NO_UNROLL
    for (int e = 0; e < tile.size; ++e) {
      const Coordinates<2> c(a.tiles, tile, e);
      const int first[3] = {c.at[0], 0, c.at[1]};
      const T* src = t.ptr<const T>(a.src.ref) + a.src.offset(first);
      RK_NO_UNROLL
      for (int i = t.tid; i < a.n; i += kThreads) {
        const C x = C(src[i * a.src.s[1]]);
        int rank = 0;
        RK_UNROLL_4
        for (int j = 0; j < a.n && rank < a.k; ++j) rank += order.before(C(src[j * a.src.s[1]]), j, x, i) ? 1 : 0;
        if (rank >= a.k) continue;
        const int at[3] = {c.at[0], rank, c.at[1]};
        store<T>(t, a.values, at, src[i * a.src.s[1]]);
        store<int64_t>(t, a.indices, at, i);
      }
      RK_NO_UNROLL
      for (int i = a.n + t.tid; i < a.k; i += kThreads) {
        const int at[3] = {c.at[0], i, c.at[1]};
        store<T>(t, a.values, at, T(0));
        store<int64_t>(t, a.indices, at, 0);
      }
    }
  }
};

}  // namespace rk
