// Local response normalisation over neighbouring channels of a cube [batch][channel][place].
#pragma once

#include "common/math.cuh"
#include "common/operand.cuh"
#include "common/tiles.cuh"
#include "rt/device/device.cuh"

namespace rk {

template <class T, class Pro, class Epi>
struct Lrn {
  struct Args {
    Tiles<3> tiles;
    Strided<3> src, dst;
    int32_t channels, before, size;
    float alpha, beta, bias;
    typename Pro::Args pro;
    typename Epi::Args epi;
  };
  using F = Real<decltype(Pro::apply(std::declval<const typename Pro::Args&>(), std::declval<T>()))>;
  static constexpr int kThreads = 256;
  static constexpr int kShared = 0;

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const auto tile = a.tiles.tile(rtask);
    RK_NO_UNROLL
    for (int e = t.tid; e < tile.size; e += kThreads) {
      const Coordinates<3> c(a.tiles, tile, e);
      const T* x = t.ptr<const T>(a.src.ref) + a.src.offset(c.at);
      const int from = c.at[1] < a.before ? -c.at[1] : -a.before;
      const int room = a.channels - c.at[1], behind = a.size - a.before;
      F squares = F(0);
      RK_NO_UNROLL
      for (int k = from; k < (behind < room ? behind : room); ++k) {
        const F v = F(Calc<T>(Pro::apply(a.pro, x[k * a.src.s[1]])));
        squares += v * v;
      }
      const F base = F(a.bias) + F(a.alpha) / F(a.size) * squares;
      const F y = F(Calc<T>(Pro::apply(a.pro, *x))) / fn::real::pow(base, F(a.beta));
      store<typename Epi::Out>(t, a.dst, c.at,
                               Epi::apply(t, a.epi, fn::Cast<typename Epi::In>(y), c.at[0], c.at[1], c.at[2]));
    }
  }
};

}  // namespace rk
