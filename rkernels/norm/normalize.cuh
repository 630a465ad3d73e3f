// (x - mean) / sqrt(variance + epsilon) along the last axis of a cube [i0][i1][n], where mean and variance are those of
// the line. Scale and bias are applied by the epilogue. Threads share lines, and keep elements in registers, as in
// softmax.cuh.
#pragma once

#include "common/lines.cuh"
#include "common/math.cuh"
#include "common/operand.cuh"
#include "common/tiles.cuh"
#include "rt/device/device.cuh"

namespace rk {

// STATS has bit 0 set when the mean, bit 1 when 1/sqrt(variance + epsilon) of each line is stored too. With bit 2 the
// mean counts as 0, so that lines are divided by their root mean square; with bit 3 it is not taken off the elements.
template <class T, class Stat, int PER, int LINES, int STATS, class Pro, class Epi>
struct Normalize {
  struct Args {
    Tiles<2> tiles;  // of the lines [i0][i1]
    int32_t n;
    float epsilon;
    Strided<3> src, dst;
    typename Pro::Args pro;
    typename Epi::Args epi;
    Strided<2> mean, inverse;
  };
  using Threads = LineThreads<LINES, false>;
  using F = Real<decltype(Pro::apply(std::declval<const typename Pro::Args&>(), std::declval<T>()))>;
  static constexpr int kThreads = Threads::kThreads;
  static constexpr int kShared = Threads::kSlots * 8;
  static constexpr int kStep = Threads::kPerLine;
  static constexpr int kBlock = 16;

  struct Line {
    const Args& a;
    const rt::Task& t;
    const Threads& threads;
    F* scratch;
    const T* src;
    typename Epi::Out* dst;
    int i0, i1, n;

    RT_DEVICE F load(const T* from) const { return F(Calc<T>(Pro::apply(a.pro, *from))); }
    RT_DEVICE F load(int k) const { return load(ahead(src, 1, k * a.src.s[2])); }

    // The sum over the line of what term gives for each element that this thread is in charge of.
    template <class Term>
    RT_DEVICE F sum(Term term) const {
      F s = F(0);
      if constexpr (PER > 0) {
        RT_UNROLL
        for (int u = 0; u < PER; ++u) {
          if (u * kStep < n - threads.part) s += term(u, 0);
        }
      } else {
        RK_NO_UNROLL
        for (int first = threads.part; first < n; first += kBlock * kStep) {
          F block = F(0);
          for (int k = first; k < n && k < first + kBlock * kStep; k += kStep) block += term(0, k);
          s += block;
        }
      }
      return threads.all(t, scratch, s, [](F x, F y) { return x + y; });
    }

    RT_DEVICE typename Epi::Out result(int k, F y) const {
      return Epi::apply(t, a.epi, fn::Cast<typename Epi::In>(y), i0, i1, k);
    }
  };

  RT_DEVICE static void normalize(const Line& line) {
    const Args& a = line.a;
    const int part = line.threads.part;
    F x[PER > 0 ? PER : 1];
    if constexpr (PER > 0) {
      const T* from = ahead(line.src, 1, part * a.src.s[2]);
      RT_UNROLL
      for (int u = 0; u < PER; ++u) {
        x[u] = u * kStep < line.n - part ? line.load(from) : F(0);
        from = ahead(from, kStep, a.src.s[2]);
      }
    }
    const auto element = [&](int u, int k) {
      if constexpr (PER > 0) {
        return x[u];
      } else {
        return line.load(k);
      }
    };
    F mean = F(0);
    if constexpr ((STATS & 4) == 0) mean = line.sum(element) / F(a.n);
    const F variance = line.sum([&](int u, int k) {
      const F d = element(u, k) - mean;
      return d * d;
    }) / F(a.n);
    const F inverse = F(1) / fn::real::sqrt(variance + F(a.epsilon));
    const F off = (STATS & 8) != 0 ? F(0) : mean;
    if constexpr (PER > 0) {
      // The operands of all of the thread's elements are loaded at the same time. Elements behind the line's end read
      // those of its last element.
      if (line.n > 0) {
        typename Epi::Out z[PER];
        RT_UNROLL
        for (int u = 0; u < PER; ++u) {
          const int k = part + u * kStep;
          z[u] = line.result(k < line.n ? k : line.n - 1, (x[u] - off) * inverse);
        }
        const int step = a.dst.s[2];
        typename Epi::Out* to = ahead(line.dst, 1, part * step);
        RT_UNROLL
        for (int u = 0; u < PER; ++u) {
          if (u * kStep < line.n - part) *to = z[u];
          to = ahead(to, kStep, step);
        }
      }
    } else {
      RK_NO_UNROLL
      for (int k = part; k < line.n; k += kStep) {
        *ahead(line.dst, 1, k * a.dst.s[2]) = line.result(k, (line.load(k) - off) * inverse);
      }
    }
    if constexpr ((STATS & 3) != 0) {
      const int at[2] = {line.i0, line.i1};
      if (part == 0 && line.n > 0) {
        if constexpr ((STATS & 1) != 0) rk::store<Stat>(line.t, a.mean, at, fn::Cast<Stat>(mean));
        if constexpr ((STATS & 2) != 0) rk::store<Stat>(line.t, a.inverse, at, fn::Cast<Stat>(inverse));
      }
    }
  }

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const auto tile = a.tiles.tile(rtask);
    const Threads threads(t.tid);
    RK_NO_UNROLL
    for (int base = 0; base < tile.size; base += LINES) {
      const int e = base + threads.line;
      const Coordinates<2> c(a.tiles, tile, e < tile.size ? e : 0);
      const int at[3] = {c.at[0], c.at[1], 0};
      normalize(Line{a, t, threads, reinterpret_cast<F*>(t.smem), t.ptr<const T>(a.src.ref) + a.src.offset(at),
                     t.ptr<typename Epi::Out>(a.dst.ref) + a.dst.offset(at), c.at[0], c.at[1],
                     e < tile.size ? a.n : 0});
    }
  }
};

}  // namespace rk
