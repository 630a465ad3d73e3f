// C[b][m][n] = epilogue(Σ_k A[b][m][k] · B[b][k][n]) for float64 and integers, through 32×32 tiles in
// shared memory.
#pragma once

#include "common/tile.cuh"
#include "rt/device/device.cuh"

namespace rk {

// E is the element type, Acc that of the sums.
template <class E, class Acc, class Epi>
struct GemmTyped {
  static constexpr int kThreads = 256;
  static constexpr int kTile = 32, kDepth = 16;
  static constexpr int kShared = 2 * kDepth * (kTile + 1) * 8;

  struct Args {
    rt::Ref a, b;
    rt::Operand3 out;  // [batch][m][n]
    int32_t M, N, K;
    Div tiles_m, tiles_n;
    Div batch1, batch2;          // batch = (b0·batch1 + b1)·batch2 + b2
    int64_t a0, a1, a2, am, ak;  // element strides of A over b0, b1, b2, m, k
    int64_t b0, b1, b2, bk, bn;
    typename Epi::Args epi;
  };

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    int b0 = rtask;
    const int mt = take_digit(b0, a.tiles_m), nt = take_digit(b0, a.tiles_n), batch = b0;
    const int b2 = take_digit(b0, a.batch2), b1 = take_digit(b0, a.batch1);
    const E* pa = t.template ptr<const E>(a.a) + b0 * a.a0 + b1 * a.a1 + b2 * a.a2;
    const E* pb = t.template ptr<const E>(a.b) + b0 * a.b0 + b1 * a.b1 + b2 * a.b2;
    Acc* sa = reinterpret_cast<Acc*>(t.smem);  // [depth][m], one column more against bank conflicts
    Acc* sb = reinterpret_cast<Acc*>(t.smem + kShared / 2);
    const int col = t.tid % kTile, row = t.tid / kTile;  // rows row, row + 8, row + 16, row + 24
    Acc sum[4] = {};
    RK_UNROLL(1)
    for (int k0 = 0; k0 < a.K; k0 += kDepth) {
      t.sync();
      RT_UNROLL
      for (int e = t.tid; e < kTile * kDepth; e += kThreads) {
        const int m = mt * kTile + e / kDepth, ka = k0 + e % kDepth;
        sa[e % kDepth * (kTile + 1) + e / kDepth] =
            m < a.M && ka < a.K ? static_cast<Acc>(pa[m * a.am + ka * a.ak]) : static_cast<Acc>(0);
        const int n = nt * kTile + e % kTile, kb = k0 + e / kTile;
        sb[e / kTile * (kTile + 1) + e % kTile] =
            n < a.N && kb < a.K ? static_cast<Acc>(pb[kb * a.bk + n * a.bn]) : static_cast<Acc>(0);
      }
      t.sync();
      RK_UNROLL(4)
      for (int k = 0; k < kDepth; ++k) {
        const Acc b = sb[k * (kTile + 1) + col];
        RT_UNROLL
        for (int i = 0; i < 4; ++i) sum[i] += sa[k * (kTile + 1) + row + 8 * i] * b;
      }
    }
    RT_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int m = mt * kTile + row + 8 * i, n = nt * kTile + col;
      if (m < a.M && n < a.N) {
        t.template ptr<typename Epi::Out>(a.out.ref)[element(a.out, batch, m, n)] =
            Epi::apply(t, a.epi, static_cast<typename Epi::In>(sum[i]), batch, m, n);
      }
    }
  }
};

}  // namespace rk
