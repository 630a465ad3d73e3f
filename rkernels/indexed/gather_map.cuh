// Gather whose elements go through an epilogue before they are stored, such as embeddings of tokens to which those of
// positions are added.
#pragma once

#include "common/tiles.cuh"
#include "indexed/index.cuh"
#include "rt/device/device.cuh"

namespace rk {

template <int VEC, class T, class I, class Epi>
struct GatherMap {
  struct Args {
    Tiles<3> tiles;  // of the output [a][i][b]; b counts packs of VEC
    Strided<3> src;  // s[1] is data's stride along the axis
    Strided<3> dst;
    Strided<1> index;
    int32_t extent;  // of data's axis
    typename Epi::Args epi;
  };
  static constexpr int kThreads = 256;
  static constexpr int kShared = 0;

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    using Out = typename Epi::Out;
    const auto tile = a.tiles.tile(rtask);
    RK_NO_UNROLL
    for (int e = t.tid; e < tile.size; e += kThreads) {
      const Coordinates<3> c(a.tiles, tile, e);
      const int index_at[1] = {c.at[1]};
      const int from[3] = {c.at[0], place_of(load<I>(t, a.index, index_at), a.extent), c.at[2]};
      const Pack<T, VEC> slice = load_pack<T, VEC>(t, a.src, from);
      Pack<Out, VEC> out;
      RT_UNROLL
      for (int v = 0; v < VEC; ++v) {
        out.v[v] = Epi::apply(t, a.epi, static_cast<typename Epi::In>(slice.v[v]), c.at[0], c.at[1], c.at[2] * VEC + v);
      }
      store_pack<Out, VEC>(t, a.dst, c.at, out);
    }
  }
};

}  // namespace rk
