// out[i0][i1][i2] = epilogue(Σ_s part[i0][s][i1][i2]): the second half of contractions whose k range is
// split between rTasks. The order of summation is fixed.
#pragma once

#include "common/tile.cuh"
#include "rt/device/device.cuh"

namespace rk {

template <class Epi>
struct SplitSum {
  static constexpr int kThreads = 256;
  static constexpr int kShared = 0;

  struct Args {
    rt::Ref part;
    rt::Operand3 out;
    int32_t d1, d2;  // extents of i1 and i2
    int32_t splits;
    int32_t rows;  // of the (i1, i2) tile of an rTask
    Div cols;
    Div tiles1, tiles2;
    typename Epi::Args epi;
  };

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    int i0 = rtask;
    const int c0 = take_digit(i0, a.tiles2) * static_cast<int>(a.cols.d), r0 = take_digit(i0, a.tiles1) * a.rows;
    const int64_t plane = static_cast<int64_t>(a.d1) * a.d2;
    const float* part = t.template ptr<const float>(a.part) + i0 * a.splits * plane;
    RK_UNROLL(1)
    for (int e = t.tid; e < a.rows * static_cast<int>(a.cols.d); e += kThreads) {
      int i1 = e;
      const int i2 = c0 + take_digit(i1, a.cols);
      i1 += r0;
      if (i1 >= a.d1 || i2 >= a.d2) continue;
      const float* src = part + static_cast<int64_t>(i1) * a.d2 + i2;
      float sum = 0.0f;
      RK_UNROLL(8)
      for (int s = 0; s < a.splits; ++s) sum += src[s * plane];
      store<Epi>(t, a.out, a.epi, sum, i0, i1, i2);
    }
  }
};

}  // namespace rk
