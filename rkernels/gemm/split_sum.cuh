// out[i0][i1][i2] = epilogue(Σ_s part[i0][s][i1][i2]): the second half of contractions whose k range is
// split between rTasks. The order of summation is fixed.
#pragma once

#include "common/tile.cuh"
#include "rt/device.cuh"

namespace rk {

template <class Epi>
struct SplitSum {
  static constexpr int kThreads = 256;
  static constexpr int kShared = 0;

  struct Args {
    rt::Ref part;
    rt::Operand3 out;
    int32_t d1, d2;              // extents of i1 and i2
    int32_t splits;
    int32_t rows, cols;          // of the (i1, i2) tile of an rTask
    int32_t tiles1, tiles2;
    typename Epi::Args epi;
  };

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const int t2 = rtask % a.tiles2, t1 = rtask / a.tiles2 % a.tiles1, i0 = rtask / a.tiles2 / a.tiles1;
    const int64_t plane = static_cast<int64_t>(a.d1) * a.d2;
    const float* part = t.template ptr<const float>(a.part) + i0 * a.splits * plane;
    RK_UNROLL(1)
    for (int e = t.tid; e < a.rows * a.cols; e += kThreads) {
      const int i1 = t1 * a.rows + e / a.cols, i2 = t2 * a.cols + e % a.cols;
      if (i1 >= a.d1 || i2 >= a.d2) continue;
      const float* src = part + static_cast<int64_t>(i1) * a.d2 + i2;
      float sum = 0.0f;
      RK_UNROLL(4)
      for (int s = 0; s < a.splits; ++s) sum += src[s * plane];
      store<Epi>(t, a.out, a.epi, sum, i0, i1, i2);
    }
  }
};

}  // namespace rk
