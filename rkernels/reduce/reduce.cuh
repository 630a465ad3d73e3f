// Reductions over up to RANK runs of dims. The outputs are a cube [i0][i1][i2] that is cut into rTasks; an rTask
// computes LINES outputs at a time.
#pragma once

#include "common/lines.cuh"
#include "common/operand.cuh"
#include "common/tiles.cuh"
#include "reduce/ops.cuh"
#include "rt/device/device.cuh"

namespace rk {

template <template <class, class> class OP, class In, class Out, int RANK, int LINES, bool ACROSS, class Pro, class Epi>
struct Reduce {
  struct Args {
    Tiles<3> tiles;        // of the outputs
    Strided<3> src;        // the first element that each output is reduced from
    int32_t extent[RANK];  // of the reduced space
    Div inner[RANK];       // the same, for divisions
    int32_t step[RANK];    // strides of the reduced space
    int32_t count;         // elements of the reduced space
    int64_t whole;         // what a mean divides by
    Strided<3> dst;
    typename Pro::Args pro;
    typename Epi::Args epi;
  };
  using Threads = LineThreads<LINES, ACROSS>;
  using Element = decltype(Pro::apply(std::declval<const typename Pro::Args&>(), std::declval<In>()));
  using Op = OP<Element, Out>;
  using State = typename Op::State;
  static constexpr int kThreads = Threads::kThreads;
  static constexpr int kShared = Threads::kSlots * 16;
  static_assert(sizeof(State) <= 16);
  // A thread merges so many elements before it merges them with the rest, which keeps long sums precise.
  static constexpr int kBlock = 16;
  static constexpr int kBatch = 8;  // elements that a thread asks for before it uses the first of them

  RT_DEVICE static int offset(const Args& a, int r) {
    int o = 0;
    RT_UNROLL
    for (int d = RANK - 1; d > 0; --d) {
      const int rest = a.inner[d].quotient(r);
      o += (r - rest * a.extent[d]) * a.step[d];
      r = rest;
    }
    return o + r * a.step[0];
  }

  RT_DEVICE static State reduce(const Args& a, const In* src, int part) {
    State all = Op::none();
    RK_NO_UNROLL
    for (int first = part; first < a.count; first += kBlock * Threads::kPerLine) {
      State block = Op::none();
      RK_NO_UNROLL
      for (int i0 = 0; i0 < kBlock && first + i0 * Threads::kPerLine < a.count; i0 += kBatch) {
        In x[kBatch];
        RT_UNROLL
        for (int i = 0; i < kBatch; ++i) {
          const int r = first + (i0 + i) * Threads::kPerLine;
          if (r < a.count) x[i] = src[offset(a, r)];
        }
        RT_UNROLL
        for (int i = 0; i < kBatch; ++i) {
          const int r = first + (i0 + i) * Threads::kPerLine;
          if (r < a.count) block = Op::merge(block, Op::of(Pro::apply(a.pro, x[i]), r));
        }
      }
      all = Op::merge(all, block);
    }
    return all;
  }

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const auto tile = a.tiles.tile(rtask);
    const Threads threads(t.tid);
    RK_NO_UNROLL
    for (int base = 0; base < tile.size; base += LINES) {
      const int e = base + threads.line;
      const Coordinates<3> c(a.tiles, tile, e < tile.size ? e : 0);
      State s = Op::none();
      if (e < tile.size) s = reduce(a, t.ptr<const In>(a.src.ref) + a.src.offset(c.at), threads.part);
      s = threads.all(t, reinterpret_cast<State*>(t.smem), s, [](State x, State y) { return Op::merge(x, y); });
      if (e < tile.size && threads.part == 0) {
        const auto y = Epi::apply(t, a.epi, Op::result(s, a.whole), c.at[0], c.at[1], c.at[2]);
        store<typename Epi::Out>(t, a.dst, c.at, y);
      }
    }
  }
};

}  // namespace rk
