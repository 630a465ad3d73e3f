// Softmax and LogSoftmax along the middle axis of a cube [outer][n][inner], LINES lines at a time. Each thread keeps
// PER elements of its line in registers; with PER = 0 the line is read three times instead.
#pragma once

#include "common/lines.cuh"
#include "common/math.cuh"
#include "common/operand.cuh"
#include "common/tiles.cuh"
#include "rt/device/device.cuh"

namespace rk {

template <class T, int PER, int LINES, bool ACROSS, bool LOG, class Pro, class Epi>
struct Softmax {
  struct Args {
    Tiles<2> tiles;  // of the lines [outer][inner]
    int32_t n;
    Strided<3> src, dst;
    typename Pro::Args pro;
    typename Epi::Args epi;
  };
  using Threads = LineThreads<LINES, ACROSS>;
  using F = Real<decltype(Pro::apply(std::declval<const typename Pro::Args&>(), std::declval<T>()))>;
  static constexpr int kThreads = Threads::kThreads;
  static constexpr int kShared = Threads::kSlots * 8;
  static constexpr int kStep = Threads::kPerLine;
  static constexpr int kBlock =
      16;  // so many terms are added up before they go to the sum, which keeps long sums precise

  struct Line {
    const Args& a;
    const rt::Task& t;
    const T* src;
    int outer, inner, n;

    RT_DEVICE F load(int k) const { return F(Calc<T>(Pro::apply(a.pro, src[k * a.src.s[1]]))); }
    RT_DEVICE void store(int k, F y) const {
      const int at[3] = {outer, k, inner};
      const auto z = Epi::apply(t, a.epi, fn::Cast<typename Epi::In>(y), outer, k, inner);
      rk::store<typename Epi::Out>(t, a.dst, at, z);
    }
  };

  RT_DEVICE static F most(F x, F y) { return fn::Max<F>(x, y); }
  RT_DEVICE static F sum(F x, F y) { return x + y; }

  // The line in registers.
  RT_DEVICE static void held(const Line& line, const Threads& threads, F* scratch) {
    F x[PER > 0 ? PER : 1];
    F m = F(-fn::inf_f());
    RT_UNROLL
    for (int u = 0; u < PER; ++u) {
      const int k = threads.part + u * kStep;
      x[u] = k < line.n ? line.load(k) : F(-fn::inf_f());
      m = most(m, x[u]);
    }
    m = threads.all(line.t, scratch, m, most);
    F s = F(0);
    RT_UNROLL
    for (int u = 0; u < PER; ++u) {
      const F e = fn::real::exp(x[u] - m);
      if (threads.part + u * kStep < line.n) s += e;
      x[u] = LOG ? x[u] - m : e;
    }
    s = threads.all(line.t, scratch, s, sum);
    const F by = LOG ? fn::real::log(s) : s;
    RT_UNROLL
    for (int u = 0; u < PER; ++u) {
      const int k = threads.part + u * kStep;
      if (k < line.n) line.store(k, LOG ? x[u] - by : x[u] / by);
    }
  }

  // The line read again and again.
  RT_DEVICE static void streamed(const Line& line, const Threads& threads, F* scratch) {
    F m = F(-fn::inf_f());
    for (int k = threads.part; k < line.n; k += kStep) m = most(m, line.load(k));
    m = threads.all(line.t, scratch, m, most);
    F s = F(0);
    RK_NO_UNROLL
    for (int first = threads.part; first < line.n; first += kBlock * kStep) {
      F block = F(0);
      for (int k = first; k < line.n && k < first + kBlock * kStep; k += kStep)
        block += fn::real::exp(line.load(k) - m);
      s += block;
    }
    s = threads.all(line.t, scratch, s, sum);
    const F by = LOG ? fn::real::log(s) : s;
    RK_NO_UNROLL
    for (int k = threads.part; k < line.n; k += kStep) {
      const F x = line.load(k) - m;
      line.store(k, LOG ? x - by : fn::real::exp(x) / by);
    }
  }

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const auto tile = a.tiles.tile(rtask);
    const Threads threads(t.tid);
    F* scratch = reinterpret_cast<F*>(t.smem);
    RK_NO_UNROLL
    for (int base = 0; base < tile.size; base += LINES) {
      const int e = base + threads.line;
      const Coordinates<2> c(a.tiles, tile, e < tile.size ? e : 0);
      const int at[3] = {c.at[0], 0, c.at[1]};
      const Line line{a, t, t.ptr<const T>(a.src.ref) + a.src.offset(at), c.at[0], c.at[1], e < tile.size ? a.n : 0};
      if constexpr (PER > 0) {
        held(line, threads, scratch);
      } else {
        streamed(line, threads, scratch);
      }
    }
  }
};

}  // namespace rk
