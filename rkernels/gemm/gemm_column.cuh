// C[m][n] = epilogue(Σ_k A[m][k] · B[k][n]) in tf32 or 16 bits, summed in float32, for a constant B, by warp groups
// whose operands the copy engine brings (common/wgmma_boxes.cuh). An rTask is a column of tiles of 128×BN results that
// lie below each other. It keeps its columns of B in shared memory, so that short sums by tall matrices move little
// beside A and the results:
//
//   rows of the result     0 … 127     128 … 255   256 … 383
//   warp group 0           multiply │ drain │ multiply │ drain │ multiply │ …      64 rows of each tile
//   warp group 1           ── multiply │ drain │ multiply │ drain │ …              the other 64
//   senders                B, boxes of A ──────────────────────────────────▶
//
// The warp groups share no ring, so that neither waits for the other one. What the epilogue adds comes while the
// products of its tile are made.
#pragma once

#include "common/wgmma_boxes.cuh"
#include "rt/device/div.cuh"

namespace rk {

// ROOM is the bytes of shared memory for B.
template <int BN, int ST, int Products, int ROOM, class E, class Epi>
struct GemmColumn {
  static_assert(Products == 1);
  using T = BoxTile<GroupTile<E, E, 128, BN, 1, ST, 1, true>, rt::BoxRings<2, ST, 64 * 128>>;
  using Ring = typename T::Rings::Reader;
  // Stages of B, each of which is filled once.
  using Columns = rt::BoxRings<1, ROOM / T::kStageB, T::kStageB>;
  static constexpr int kThreads = T::kThreads + 64;  // with the senders
  static constexpr int kPlaceB = (T::kBehind + Columns::kAlign - 1) / Columns::kAlign * Columns::kAlign;
  static constexpr int kShared = Columns::kAlign + kPlaceB + Columns::kBytes;
  static constexpr bool kEarly = true;  // the columns come before the inputs

  struct Args {
    rt::TiledMatrix a, b;
    rt::Operand3 out;  // [1][m][n]
    int32_t M, N;
    Div tiles_n;
    int32_t tiles_m, tall;  // tiles along m, and how many of them an rTask has
    int32_t tiles_k;
    typename Epi::Args epi;
  };

  // rTasks count (column of tiles, tile of columns), the last one fastest: those that run at once share rows of A.
  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    int column = rtask;
    const int n0 = take_digit(column, a.tiles_n) * BN, first = column * a.tall;
    const int tiles = a.tiles_m - first < a.tall ? a.tiles_m - first : a.tall;
    const int m0 = first * T::BM;
    const int sender = rt::settled(t.tid / 32) - T::kThreads / 32;
    char* columns = T::first(t) + kPlaceB;
    if (sender == 0) {
      const bool one = t.tid % 32 == 0;
      T::Rings::open(T::first(t), one, 4, 1);
      Columns::open(columns, one, 1, 1);
    }
    t.sync();
    if (sender == 0) {
      return send_boxes<typename T::Rings>(
          t, T::first(t), rt::MatrixWalk<64, 1>(t, a.a, 0, m0, T::kSlice, a.tiles_k, T::BM), tiles * a.tiles_k);
    }
    if (sender == 1) {
      const int row = n0 * a.tiles_k;  // a column of a stage is 128 bytes
      return send_boxes<Columns>(t, columns, rt::PackedWalk<BN, 1, 0>(t, a.b, row, -1), a.tiles_k);
    }
    t.wait_for_inputs();
    multiply(t, a, columns, m0, n0, tiles);
  }

 private:
  // The products of a warp group's rows of all tiles.
  RT_DEVICE static void multiply(const rt::Task& t, const Args& a, char* columns, int m0, int n0, int tiles) {
    const typename T::At at(t.tid);
    Ring boxes(t, T::first(t), at.row / 64);
    typename Columns::Reader coming(t, columns, 0);
    RK_UNROLL(1)
    for (int s = 0; s < a.tiles_k; ++s) coming.take();
    RK_UNROLL(1)
    for (int i = 0; i < tiles; ++i) {
      multiply_and_store<T, Epi>(t, a.out, a.epi, {0, m0 + i * T::BM, n0, a.M, a.N},
                                 [&](typename T::Acc& acc) { run(boxes, columns, a.tiles_k, acc); });
    }
  }

  // Adds the products of a tile to acc.
  RT_DEVICE static void run(Ring& boxes, const char* b, int count, typename T::Acc& acc) {
    RK_UNROLL(1)
    for (int s = 0; s < count; ++s, b += T::kStageB) {
      const rt::OperandPlace rows = rt::operand_in_warp(boxes.ahead()), columns = rt::operand_in_warp(b);
      boxes.take();
      rt::multiply_begin();
      RT_UNROLL
      for (int k = 0; k < T::kSlice / T::kDeep; ++k) {
        begin_product<T>(rows + 32 * k, columns + k * (2 * T::kPitch), true, acc);
      }
      rt::multiply_end();
      rt::multiplied_but<1>();
      if (s > 0) boxes.done();
    }
    rt::multiplied(acc);
    // There is always a stage. Where the compiler knows that, and sums are only rounded, ptxas has the products wait
    // for each other: it moves reads of the sums among them.
    if (Epi::kLength > 0 || count > 0) boxes.done();
  }
};

}  // namespace rk
