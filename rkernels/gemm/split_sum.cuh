// out[i0][i1][i2] = epilogue(Σ_s part[i0][s][i1][i2]): the second half of contractions whose k range is
// split between rTasks. The order of summation is fixed. The epilogue's constants are asked for before there are parts,
// and its other operands together with them.
#pragma once

#include "common/tile.cuh"
#include "rt/device/device.cuh"

namespace rk {

// A thread adds up V neighbours along i2 at a time, a quad, and Q quads at once, of BATCH parts. The extent of i2 is a
// multiple of V. Parts are of float32, or of int32 where the result is. Where the epilogue computes packs, a pack is a
// quad.
template <int V, int Q, int BATCH, class Epi>
struct SplitSum {
  using Sum = std::conditional_t<std::is_same_v<typename Epi::In, int32_t>, int32_t, float>;
  using Quad = Pack<Sum, V>;
  using In = typename Epi::In;
  using Out = typename Epi::Out;
  static constexpr int kThreads = 256;
  static constexpr int kShared = 0;
  static constexpr bool kEarly = true;
  static constexpr bool kPacks = Epi::kPack > 1;
  static_assert(!kPacks || Epi::kPack == V);

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
    const int cols = static_cast<int>(a.cols.d), count = a.rows * cols;
    const int c0 = take_digit(i0, a.tiles2) * cols, r0 = take_digit(i0, a.tiles1) * a.rows;
    const int plane = a.d1 * a.d2;
    const Sum* part = t.template ptr<const Sum>(a.part) + static_cast<int64_t>(i0) * a.splits * plane;
    bool waits = true;
    RK_UNROLL(1)
    for (int e = t.tid; waits || e < count; e += Q * kThreads, waits = false) {
      Place at[Q];
      RT_UNROLL
      for (int q = 0; q < Q; ++q) {
        int i1 = e + q * kThreads;
        const bool counts = i1 < count;
        const int i2 = (c0 + take_digit(i1, a.cols)) * V;
        i1 += r0;
        at[q] = {i1 < a.d1 ? i1 : a.d1 - 1, i2 < a.d2 ? i2 : a.d2 - V, counts && i1 < a.d1 && i2 < a.d2};
      }
      add_up(t, a, part, plane, i0, at, waits);
    }
  }

 private:
  // A quad, or another one whose operands can be read if there is none.
  struct Place {
    int i1, i2;
    bool exists;
  };

  // What the epilogue needs of a quad: constants, and what other rOperators have made.
  template <bool Packs, class Each = Epi>
  struct Operands {
    typename Each::Held held[V];
    typename Each::Brought brought[V];
    Out* out;
    RT_DEVICE void hold(const rt::Task& t, const Args& a, int i0, const Place& at) {
      out = rt::settled_place(t.template ptr<Out>(a.out.ref) + element(a.out, i0, at.i1, at.i2));
      RT_UNROLL
      for (int v = 0; v < V; ++v) held[v] = Each::hold(t, a.epi, i0, at.i1, at.i2 + v);
    }
    RT_DEVICE void bring(const rt::Task& t, const Args& a, int i0, const Place& at) {
      RT_UNROLL
      for (int v = 0; v < V; ++v) brought[v] = Each::bring(t, a.epi, i0, at.i1, at.i2 + v);
    }
    RT_DEVICE void store(const Args& a, const In (&in)[V], bool exists) const {
      Out result[V];
      RT_UNROLL
      for (int v = 0; v < V; ++v) result[v] = Each::apply(a.epi, held[v], brought[v], in[v]);
      if (!exists) return;
      RT_UNROLL
      for (int v = 0; v < V; ++v) out[v * a.out.s2] = result[v];
    }
  };
  template <class Each>
  struct Operands<true, Each> {
    typename Each::Column column;
    typename Each::Row row;
    Pack<Out, V>* out;
    RT_DEVICE void hold(const rt::Task& t, const Args& a, int i0, const Place& at) {
      Out* to = t.template ptr<Out>(a.out.ref) + element(a.out, i0, at.i1, at.i2);
      out = rt::settled_place(reinterpret_cast<Pack<Out, V>*>(to));
      column = Each::load_column(t, a.epi, i0, at.i1, at.i2);
    }
    RT_DEVICE void bring(const rt::Task& t, const Args& a, int i0, const Place& at) {
      row = Each::load_row(t, a.epi, i0, at.i1, at.i2);
    }
    RT_DEVICE void store(const Args& a, const In (&in)[V], bool exists) const {
      const Pack<Out, V> result = Each::apply_pack(a.epi, column, row, in);
      if (exists) *out = result;
    }
  };

  // All loads of a batch stand before its first addition. Those of parts that there are not are left out without a
  // branch, behind which each load would wait for the address of the one before.
  static RT_DEVICE void add_up(const rt::Task& t, const Args& a, const Sum* part, int plane, int i0,
                               const Place (&at)[Q], bool waits) {
    Operands<kPacks> operands[Q];
    const Sum* src[Q];
    RT_UNROLL
    for (int q = 0; q < Q; ++q) {
      operands[q].hold(t, a, i0, at[q]);
      src[q] = rt::settled_place(part + place(at[q].i1, a.d2, at[q].i2));
    }
    int left = rt::settled(a.splits);
    if (waits) t.wait_for_inputs();
    RT_UNROLL
    for (int q = 0; q < Q; ++q) operands[q].bring(t, a, i0, at[q]);
    Sum sum[Q][V] = {};
    RK_UNROLL(1)
    do {
      Quad x[Q][BATCH];
      RT_UNROLL
      for (int q = 0; q < Q; ++q) {
        RT_UNROLL
        for (int b = 0; b < BATCH; ++b) {
          x[q][b] = rt::load_or_zero(reinterpret_cast<const Quad*>(ahead(src[q], b, plane)), at[q].exists && b < left);
        }
        src[q] = ahead(src[q], BATCH, plane);
      }
      RT_UNROLL
      for (int q = 0; q < Q; ++q) {
        RT_UNROLL
        for (int b = 0; b < BATCH; ++b) {
          RT_UNROLL
          for (int v = 0; v < V; ++v) sum[q][v] += x[q][b].v[v];
        }
      }
      left -= BATCH;
    } while (left > 0);
    RT_UNROLL
    for (int q = 0; q < Q; ++q) {
      In in[V];
      RT_UNROLL
      for (int v = 0; v < V; ++v) in[v] = static_cast<In>(sum[q][v]);
      operands[q].store(a, in, at[q].exists);
    }
  }
};

}  // namespace rk
