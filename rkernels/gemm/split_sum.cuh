// out[i0][i1][i2] = epilogue(Σ_s part[i0][s][i1][i2]): the second half of contractions whose k range is
// split between rTasks. The order of summation is fixed.
#pragma once

#include "common/tile.cuh"
#include "rt/device/device.cuh"

namespace rk {

// A thread adds up V neighbours along i2 at a time; the extent of i2 is a multiple of V. Parts are of float32, or of
// int32 where the result is.
template <int V, class Epi>
struct SplitSum {
  using Sum = std::conditional_t<std::is_same_v<typename Epi::In, int32_t>, int32_t, float>;
  static constexpr int kThreads = 256;
  static constexpr int kShared = 0;
  static constexpr int kBatch = 8;  // parts that are on their way at the same time

  struct Args {
    rt::Ref part;
    rt::Operand3 out;
    int32_t d1, d2;  // extents of i1 and i2
    int32_t splits;
    int32_t rows;  // of the (i1, i2) tile of an rTask
    Div cols;      // of the tile, in units of V
    Div tiles1, tiles2;
    typename Epi::Args epi;
  };

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    int i0 = rtask;
    const int cols = static_cast<int>(a.cols.d);
    const int c0 = take_digit(i0, a.tiles2) * cols, r0 = take_digit(i0, a.tiles1) * a.rows;
    const int64_t plane = static_cast<int64_t>(a.d1) * a.d2;
    const Sum* part = t.template ptr<const Sum>(a.part) + i0 * a.splits * plane;
    RK_UNROLL(1)
    for (int e = t.tid; e < a.rows * cols; e += kThreads) {
      int i1 = e;
      const int i2 = (c0 + take_digit(i1, a.cols)) * V;
      i1 += r0;
      if (i1 < a.d1 && i2 < a.d2) add_up(t, a, part + static_cast<int64_t>(i1) * a.d2 + i2, plane, i0, i1, i2);
    }
  }

 private:
  // All loads of a batch stand before its first addition, and all results before the first store. The last batch reads
  // the last part again for those that do not exist.
  static RT_DEVICE void add_up(const rt::Task& t, const Args& a, const Sum* src, int64_t plane, int i0, int i1,
                               int i2) {
    using Out = typename Epi::Out;
    Sum sum[V] = {};
    RK_UNROLL(1)
    for (int s = 0; s < a.splits; s += kBatch) {
      Pack<Sum, V> x[kBatch];
      RT_UNROLL
      for (int b = 0; b < kBatch; ++b) {
        const int which = s + b < a.splits ? s + b : a.splits - 1;
        x[b] = *reinterpret_cast<const Pack<Sum, V>*>(src + which * plane);
      }
      RT_UNROLL
      for (int b = 0; b < kBatch; ++b) {
        RT_UNROLL
        for (int v = 0; v < V; ++v) sum[v] += s + b < a.splits ? x[b].v[v] : Sum(0);
      }
    }
    Out result[V];
    RT_UNROLL
    for (int v = 0; v < V; ++v) {
      result[v] = Epi::apply(t, a.epi, static_cast<typename Epi::In>(sum[v]), i0, i1, i2 + v);
    }
    Out* out = t.template ptr<Out>(a.out.ref) + element(a.out, i0, i1, i2);
    RT_UNROLL
    for (int v = 0; v < V; ++v) out[v * a.out.s2] = result[v];
  }
};

}  // namespace rk
