// C[b][m][n] = epilogue(Σ_k prologue(A[b][m][k]) · B[b][k][n]), summed in float32, for few rows (M ≤ MB) and a
// constant, packed B: BN columns an rTask.
#pragma once

#include "common/gemv.cuh"
#include "common/tile.cuh"
#include "rt/device/device.cuh"

namespace rk {

// X is the element type of A, W that of B.
template <int MB, int C, int LK, int WK, class X, class W, class Epi, class Pro>
struct GemvPacked {
  using G = Gemv<MB, C, LK, WK, W>;
  static constexpr int kThreads = G::kThreads;
  static constexpr int kShared = G::kShared;

  struct Args {
    rt::Ref a, b;
    rt::Operand3 out;  // [batch][m][n]
    int32_t M, N, K;
    Div tiles_n;
    Div batch1, batch2;          // batch = (b0·batch1 + b1)·batch2 + b2
    int64_t a0, a1, a2, am, ak;  // element strides of A over b0, b1, b2, m, k
    int64_t b0, b1, b2;          // of the packed B, a batch being tiles_n blocks
    typename Epi::Args epi;
    typename Pro::Args pro;
  };

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    int b0 = rtask;
    const int nt = take_digit(b0, a.tiles_n), batch = b0;
    const int b2 = take_digit(b0, a.batch2), b1 = take_digit(b0, a.batch1);
    const X* x = t.template ptr<const X>(a.a) + place(b0, a.a0, place(b1, a.a1, place(b2, a.a2)));
    const int64_t block = static_cast<int64_t>(ceil_div(a.K, G::kStep)) * G::kStep * G::BN;
    const W* w = t.template ptr<const W>(a.b) + place(b0, a.b0, place(b1, a.b1, place(b2, a.b2, nt * block)));
    typename G::Sums sums = {};
    G::accumulate(
        t, w, a.K,
        [&](int m, int k) { return m < a.M ? float(Pro::apply(a.pro, x[place(m, a.am, place(k, a.ak))])) : 0.0f; },
        sums);
    const float* total = G::total(t, sums);
    RK_UNROLL(1)
    for (int e = t.tid; e < MB * G::BN; e += kThreads) {
      const int m = e / G::BN, n = nt * G::BN + e % G::BN;
      if (m < a.M && n < a.N) store<Epi>(t, a.out, a.epi, total[e], batch, m, n);
    }
  }
};

}  // namespace rk
