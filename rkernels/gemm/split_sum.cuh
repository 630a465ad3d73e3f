// out[i0][i1][i2] = epilogue(Σ_s part[i0][s][i1][i2]): the second half of contractions whose k range is
// split between rTasks. The order of summation is fixed. The epilogue's constants are asked for before there are parts,
// and its other operands together with them.
#pragma once

#include "common/tile.cuh"
#include "rt/device/device.cuh"

namespace rk {

// A thread adds up V neighbours along i2 at a time, a quad, and Q quads at once, of BATCH parts. The extent of i2 is a
// multiple of V. Parts are of float32, or of int32 where the result is.
template <int V, int Q, int BATCH, class Epi>
struct SplitSum {
  using Sum = std::conditional_t<std::is_same_v<typename Epi::In, int32_t>, int32_t, float>;
  using Quad = Pack<Sum, V>;
  static constexpr int kThreads = 256;
  static constexpr int kShared = 0;
  static constexpr bool kEarly = true;

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
    bool waits = true;
    RK_UNROLL(1)
    for (int e = t.tid; waits || e < a.rows * cols; e += Q * kThreads, waits = false) {
      Place at[Q];
      RT_UNROLL
      for (int q = 0; q < Q; ++q) {
        int i1 = e + q * kThreads;
        at[q].exists = i1 < a.rows * cols;
        at[q].i2 = (c0 + take_digit(i1, a.cols)) * V;
        at[q].i1 = i1 + r0;
        at[q].exists = at[q].exists && at[q].i1 < a.d1 && at[q].i2 < a.d2;
      }
      add_up(t, a, part, plane, i0, at, waits);
    }
  }

 private:
  using Held = typename Epi::Held;
  using Brought = typename Epi::Brought;

  struct Place {
    int i1, i2;
    bool exists;
  };

  // All loads of a batch stand before its first addition, and all results of a quad before their store.
  static RT_DEVICE void add_up(const rt::Task& t, const Args& a, const Sum* part, int64_t plane, int i0,
                               const Place (&at)[Q], bool waits) {
    Held held[Q][V] = {};
    Brought brought[Q][V] = {};
    RT_UNROLL
    for (int q = 0; q < Q; ++q) {
      RT_UNROLL
      for (int v = 0; v < V; ++v) {
        if (at[q].exists) held[q][v] = Epi::hold(t, a.epi, i0, at[q].i1, at[q].i2 + v);
      }
    }
    if (waits) t.wait_for_inputs();
    RT_UNROLL
    for (int q = 0; q < Q; ++q) {
      RT_UNROLL
      for (int v = 0; v < V; ++v) {
        if (at[q].exists) brought[q][v] = Epi::bring(t, a.epi, i0, at[q].i1, at[q].i2 + v);
      }
    }
    Sum sum[Q][V] = {};
    int s = 0;
    RK_UNROLL(1)
    do {
      Quad x[Q][BATCH];
      RT_UNROLL
      for (int q = 0; q < Q; ++q) {
        const Sum* src = part + static_cast<int64_t>(at[q].i1) * a.d2 + at[q].i2;
        RT_UNROLL
        for (int b = 0; b < BATCH; ++b) {
          x[q][b] = Quad{};
          if (at[q].exists && s + b < a.splits) {
            x[q][b] = *reinterpret_cast<const Quad*>(src + (s + b) * plane);
          }
        }
      }
      RT_UNROLL
      for (int q = 0; q < Q; ++q) {
        RT_UNROLL
        for (int b = 0; b < BATCH; ++b) {
          RT_UNROLL
          for (int v = 0; v < V; ++v) sum[q][v] += x[q][b].v[v];
        }
      }
      s += BATCH;
    } while (s < a.splits);
    RT_UNROLL
    for (int q = 0; q < Q; ++q) {
      using Out = typename Epi::Out;
      Out result[V];
      RT_UNROLL
      for (int v = 0; v < V; ++v) {
        result[v] = Epi::apply(a.epi, held[q][v], brought[q][v], static_cast<typename Epi::In>(sum[q][v]));
      }
      if (at[q].exists) store(t, a, result, i0, at[q].i1, at[q].i2);
    }
  }

  static RT_DEVICE void store(const rt::Task& t, const Args& a, const typename Epi::Out (&result)[V], int i0, int i1,
                              int i2) {
    using Out = typename Epi::Out;
    Out* out = t.template ptr<Out>(a.out.ref) + element(a.out, i0, i1, i2);
    RT_UNROLL
    for (int v = 0; v < V; ++v) out[v * a.out.s2] = result[v];
  }
};

}  // namespace rk
