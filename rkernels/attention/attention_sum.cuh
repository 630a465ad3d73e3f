// Joins what the rTasks of attention leave that have a part of the keys each (common/parts.cuh). Part s of row (b, q)
// is part[s·batch + b][q].
#pragma once

#include <cmath>

#include "attention/heads.cuh"
#include "common/parts.cuh"
#include "common/tiles.cuh"

namespace rk {

template <class Epi>
struct AttentionSum {
  static constexpr int kThreads = 256, kShared = 0;

  struct Args {
    Tiles<3> tiles;  // of the output
    rt::Operand3 part, out;
    int32_t splits, batch;
    Div joined;   // see HeadPlace
    Div columns;  // of a head
    int32_t nan_to_zero;
    typename Epi::Args epi;
  };

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const auto tile = a.tiles.tile(rtask);
    const int step = static_cast<int>(a.part.s0) * a.batch;
    RK_UNROLL(1)
    for (int e = t.tid; e < tile.span; e += kThreads) {
      const Coordinates<3> c(a.tiles, tile, e);
      if (!c.inside(tile)) continue;
      const int head = a.columns.quotient(c.at[2]), columns = static_cast<int>(a.columns.d);
      const int batch = c.at[0] * static_cast<int>(a.joined.d) + head, col = c.at[2] - head * columns;
      const float* row = t.template ptr<const float>(a.part.ref) + element(a.part, batch, c.at[1], 0);
      JoinedParts<1> sum;
      sum.add(row, step, a.splits, col, columns);
      store<Epi>(t, a.out, a.epi, a.nan_to_zero && sum.empty() ? 0.0f : sum[0], c.at[0], c.at[1], c.at[2]);
    }
  }
};

}  // namespace rk
