// ScatterND and ScatterElements. An rTask has a range of the output: it copies the data there, and then applies those
// updates that fall into the range, in their order. Each element is always written by the same thread, so the result
// does not depend on timing, even where several updates fall on one element. Where the output takes the place of the
// data there is nothing to copy: what is appended to a cache is all that is written.
#pragma once

#include "common/math.cuh"
#include "indexed/gather_nd.cuh"
#include "indexed/index.cuh"
#include "rt/device/device.cuh"

namespace rk {

// What becomes of an element that an update falls on.
struct ScatterNone {
  template <class T>
  static RT_DEVICE T apply(T, T y) {
    return y;
  }
};
#define RK_SCATTER(Name, Op)             \
  struct Name {                          \
    template <class T>                   \
    static RT_DEVICE T apply(T x, T y) { \
      return fn::Op<T>(x, y);            \
    }                                    \
  };
RK_SCATTER(ScatterAdd, Add)
RK_SCATTER(ScatterMul, Mul)
RK_SCATTER(ScatterMax, Max)
RK_SCATTER(ScatterMin, Min)
#undef RK_SCATTER

// Where update u of ScatterND begins: at its index tuple.
struct TupleUpdates {
  Tuples tuples;

  template <class I>
  RT_DEVICE int place(const I* index, int u) const {
    return tuples.place(index + int64_t(u) * tuples.size);
  }
};

// Where update u of ScatterElements goes: to its own place, with the index for the axis.
struct ElementUpdates {
  int32_t rank;
  int32_t extent[kMaxTuple];  // of the indices
  int32_t step[kMaxTuple];    // of data, 0 along the axis
  int32_t axis_extent, axis_step;

  template <class I>
  RT_DEVICE int place(const I* index, int u) const {
    int p = place_of(index[u], axis_extent) * axis_step;
    for (int d = rank - 1; d > 0; --d) {
      const int rest = u / extent[d];
      p += (u - rest * extent[d]) * step[d];
      u = rest;
    }
    return p + u * step[0];
  }
};

template <class Updates, class Reduction, class T, class I>
struct Scatter {
  struct Args {
    rt::Ref src, dst, index, updates;  // all dense
    int32_t elements;                  // of the output
    int32_t range;                     // of them in an rTask
    int32_t count;                     // updates
    int32_t size;                      // elements of an update
    Updates places;
  };
  static constexpr int kThreads = 256;
  static constexpr int kShared = kThreads * 4;

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const int lo = rtask * a.range;
    const int hi = a.elements - lo < a.range ? a.elements : lo + a.range;
    const T* src = t.ptr<const T>(a.src);
    const T* updates = t.ptr<const T>(a.updates);
    const I* index = t.ptr<const I>(a.index);
    T* dst = t.ptr<T>(a.dst);
    int* places = reinterpret_cast<int*>(t.smem);
    if (dst != src) {
      for (int e = lo + t.tid; e < hi; e += kThreads) dst[e] = src[e];
    }
    RK_NO_UNROLL
    for (int base = 0; base < a.count; base += kThreads) {
      if (base + t.tid < a.count) places[t.tid] = a.places.place(index, base + t.tid);
      t.sync();
      const int n = a.count - base < kThreads ? a.count - base : kThreads;
      RK_NO_UNROLL
      for (int j = 0; j < n; ++j) {
        const int p = places[j];
        const int from = p < lo ? lo : p, to = p + a.size < hi ? p + a.size : hi;
        const int mine = from + ((t.tid - (from - lo)) & (kThreads - 1));
        RK_NO_UNROLL
        for (int e = mine; e < to; e += kThreads) {
          dst[e] = Reduction::template apply<T>(dst[e], updates[int64_t(base + j) * a.size + (e - p)]);
        }
      }
      t.sync();
    }
  }
};

}  // namespace rk
