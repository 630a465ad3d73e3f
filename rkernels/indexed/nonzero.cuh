// NonZero: the coordinates of the elements that are not 0, one column each, in row-major order. One rTask goes through
// all elements, kTile at a time; how many were found in the threads before is where a thread writes.
#pragma once

#include "common/math.cuh"
#include "indexed/count.cuh"

namespace rk {

template <class T>
struct NonZero : Count {
  static constexpr int kMaxRank = 8;
  struct Args {
    rt::Ref x;
    int32_t n;  // elements of x, in the run
    Div extent[kMaxRank];
    rt::Ref count;
    Strided<2> y;
    int32_t dims[2];  // of y: the rank of x, and columns
  };
  static constexpr int kEach = 8;  // consecutive elements of a thread
  static constexpr int kTile = kThreads * kEach;

  RT_DEVICE static void put(const rt::Task& t, const Args& a, int column, int i) {
    RK_NO_UNROLL
    for (int d = a.dims[0] - 1; d >= 0; --d) {
      const int rest = a.extent[d].quotient(i);
      const int at[2] = {d, column};
      store<int64_t>(t, a.y, at, i - rest * int(a.extent[d].d));
      i = rest;
    }
  }

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int) {
    const T* x = t.ptr<const T>(a.x);
    int used = 0;
    RK_NO_UNROLL
    for (int first = 0; first < a.n; first += kTile) {
      const int mine = first + t.tid * kEach;
      uint32_t hits = 0;
      int found = 0;
      RT_UNROLL
      for (int k = 0; k < kEach; ++k) {
        const bool hit = mine + k < a.n && fn::Cast<bool>(x[mine + k]);
        hits |= uint32_t(hit) << k;
        found += hit;
      }
      int whole;
      int column = used + before(t, found, &whole);
      RK_NO_UNROLL
      for (int k = 0; k < kEach; ++k) {
        if (hits >> k & 1) put(t, a, column++, mine + k);
      }
      used += whole;
    }
    finish<1>(t, a.y, a.dims, a.count, used);
  }
};

}  // namespace rk
