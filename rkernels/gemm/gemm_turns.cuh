// C[m][n] = epilogue(Σ_k A[m][k] · B[k][n]) in tf32 or 16 bits, summed in float32, for a constant B, by two warp groups
// that take turns at tiles (common/wgmma_turns.cuh): an rTask has several tiles of 128×BN results, and the copy engine
// brings both operands.
#pragma once

#include "common/wgmma_turns.cuh"
#include "rt/device/div.cuh"

namespace rk {

template <int BN, int ST, int Products, class E, class Epi>
struct GemmTurns {
  static_assert(Products == 1);
  using T = TurnTile<E, BN, ST>;
  static constexpr int kThreads = T::kThreads + 32 * T::kSenders;
  static constexpr int kShared = T::kShared;
  static constexpr bool kEarly = true;  // the columns come before the inputs

  struct Args {
    rt::TiledMatrix a, b;
    rt::Operand3 out;  // [1][m][n]
    int32_t M, N;
    int32_t tiles_m, tiles_n, tall, wide;  // tiles, and how many of them an rTask has below and beside each other
    Div columns;                           // of rTasks, beside each other
    int32_t tiles_k;
    typename Epi::Args epi;
  };

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    compute_turns<T, Epi, Rows>(t, a, a.b, a.M, a.N, rtask);
  }

 private:
  // Sends for the rows of the tiles: those of a row of tiles once for each of them.
  class Rows {
    using Walk = typename T::Base::Rows;

   public:
    static constexpr bool kConstant = false;
    RT_DEVICE Rows(const rt::Task& t, const Args& a, int m, int wide)
        : walk_(t, a.a, 0, m * T::BM, T::kSlice, wide * a.tiles_k, T::BM), count_(a.tiles_k), left_(a.tiles_k) {}
    RT_DEVICE void prefetch() const { walk_.prefetch(); }
    RT_DEVICE uint32_t fill(char* stage, uint64_t* full, int ring) const { return walk_.fill(stage, full, ring); }
    RT_DEVICE void next() {
      walk_.next();
      if (--left_ == 0) walk_.rewind(), left_ = count_;
    }

   private:
    Walk walk_;
    int count_, left_;
  };
};

}  // namespace rk
