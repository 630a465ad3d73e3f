// C[m][n] = epilogue(Σ_k A[m][k] · B[k][n]) in tf32 or 16 bits, summed in float32, for a constant B that is packed and
// streamed, and an A whose tiles the copy engine brings (TMA). An rTask is a column of tiles of 128×BN results that
// lie below each other. It keeps its columns of B in shared memory, so that short sums by tall matrices move little
// beside A and the results:
//
//   rows of the result     0 … 127     128 … 255   256 … 383
//   warp group 0           multiply │ drain │ multiply │ drain │ multiply │ …      64 rows of each tile
//   warp group 1           ── multiply │ drain │ multiply │ drain │ …              the other 64
//   sender                 boxes of A ─────────────────────────────────────▶
//
// The warp groups share no ring, so that neither waits for the other one. What the epilogue adds comes while the
// products of its tile are made.
#pragma once

#include "common/wgmma_boxes.cuh"

namespace rk {

// ROOM is the bytes of shared memory for B.
template <int BN, int ST, int Products, int ROOM, class E, class Epi>
struct GemmColumn {
  static_assert(Products == 1);
  using T = StripTile<E, 128, BN, 1, ST>;
  using Ring = typename T::Ring;
  static constexpr int kThreads = T::kThreads + 32;  // with the sender
  static constexpr int kPlaceB = T::kShared - T::Rings::kAlign;
  static constexpr int kShared = T::Rings::kAlign + kPlaceB + ROOM;
  static constexpr int kStreamStep = T::kStageB;

  struct Args {
    rt::TiledMatrix a;
    rt::Ref b;
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
    if (rt::settled(t.tid / 32) == T::kThreads / 32) return send(t, a, m0, tiles);
    multiply(t, a, m0, n0, tiles);
  }

 private:
  RT_DEVICE static char* resident(const rt::Task& t) { return T::first(t) + kPlaceB; }

  // Sends for the rows from m0 on, for one tile after another.
  RT_DEVICE static void send(const rt::Task& t, const Args& a, int m0, int tiles) {
    using Walk = rt::MatrixWalk<64, 1>;
    auto sender = T::sender(t, Walk(t, a.a, 0, m0, T::kSlice, a.tiles_k, T::BM));
    sender.open(4);
    t.wait_for_inputs();
    const int stages = tiles * a.tiles_k, first = sender.fill(stages);
    t.sync();  // B stays from here on
    sender.refill(stages - first);
    t.stream.leave(a.tiles_k * T::kStageB);
  }

  // Takes B from the stream, and puts it down where it stays. Behind it all threads have met, and tensor cores may read
  // it.
  RT_DEVICE static void take_b(const rt::Task& t, const Args& a, char* to) {
    using Part = Pack<uint32_t, 4>;
    GroupStages<T> stages(t.stream, T::warps(t));
    RK_UNROLL(1)
    for (int s = 0; s < a.tiles_k; ++s) {
      const char* from = stages.next();
      RT_UNROLL
      for (int i = 0; i < T::kStageB; i += 16 * T::kThreads) {
        const int at = i + 16 * t.tid;
        if (T::kStageB % (16 * T::kThreads) == 0 || at < T::kStageB) {
          *reinterpret_cast<Part*>(to + at) = *reinterpret_cast<const Part*>(from + at);
        }
      }
      to += T::kStageB;
      stages.done();
    }
    stages.end();
    rt::operands_written();
    t.sync();
  }

  // The products of a warp group's rows of all tiles.
  RT_DEVICE static void multiply(const rt::Task& t, const Args& a, int m0, int n0, int tiles) {
    const typename T::At at(t.tid);
    Ring boxes = T::ring(t, at);
    char* b = resident(t);
    take_b(t, a, b);
    t.wait_for_inputs();
    RK_UNROLL(1)
    for (int i = 0; i < tiles; ++i) {
      const TilePlace place{0, m0 + i * T::BM, n0, a.M, a.N};
      typename T::Acc acc = {};
      if constexpr (kDrainsAlone<T, Epi>) {
        using Drain = GroupDrain<T, Epi>;
        static_assert(Drain::kBytes <= T::kSumBytes);
        Drain drain(t, reinterpret_cast<char*>(T::sums(t, at.group)), at.group, at.row, a.out, a.epi, place);
        typename Drain::Early early;
        drain.load(early);
        run(boxes, b, a.tiles_k, acc);
        drain.store(acc, early);
      } else {
        run(boxes, b, a.tiles_k, acc);
        drain_group<T, Epi>(t, acc, a.out, a.epi, place);
      }
    }
  }

  // Adds the products of a tile to acc.
  RT_DEVICE static void run(Ring& boxes, const char* b, int count, typename T::Acc& acc) {
    RK_UNROLL(1)
    for (int s = 0; s < count; ++s, b += T::kStageB) {
      const rt::OperandPlace rows = rt::operand_in_warp(boxes.next()), columns = rt::operand_in_warp(b);
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
    boxes.done();
  }
};

}  // namespace rk
