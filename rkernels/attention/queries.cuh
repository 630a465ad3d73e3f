// Brings the queries of an rTask into shared memory, as tensor cores take them.
#pragma once

#include "attention/heads.cuh"
#include "common/mma.cuh"

namespace rk {

// BQ rows of queries of element type T, DM columns wide, LD elements from row to row. Mode is kLoadVec4 or kLoadByCol.
template <class T, int Threads, int BQ, int DM, int LD, int Mode>
struct QueryLoader {
  static constexpr int kVec = Mode == kLoadVec4 ? kPerLoad<T> : 1, kAcross = DM / kVec;

  // Copies the rows, asynchronously if they come as they are, and zeros where there is nothing. q is the first query of
  // the tile's first head.
  static RT_DEVICE void issue(int tid, const T* q, const HeadMatrix& matrix, const HeadRows& rows, const HeadTile& tile,
                              int depth, T* sq) {
    const NoPrologue::Args none{};
    RK_UNROLL(1)
    for (int e = tid; e < BQ * kAcross; e += Threads) {
      const int row = e / kAcross, col = e % kAcross * kVec;
      const HeadRow r(rows, row);
      const bool ok = r.inside(tile) && col < depth;
      const T* from = ok ? q + r.head * matrix.s2 + r.query * matrix.row + col * matrix.col : q;
      Transfer<T, T, kVec, NoPrologue> copy;
      copy.take(from, ok);
      copy.put(sq + row * LD + col, from, ok, none);
    }
  }

  // Multiplies what the thread itself has copied, which must have landed, with a factor, and rounds it to tf32. With
  // three products there are two planes of queries: what is left of each number stands BQ rows behind the number.
  template <int Products>
  static RT_DEVICE void split(int tid, float factor, float* sq) {
    RK_UNROLL(1)
    for (int e = tid; e < BQ * kAcross; e += Threads) {
      float* p = sq + e / kAcross * LD + e % kAcross * kVec;
      RT_UNROLL
      for (int i = 0; i < kVec; ++i) {
        Parts<Products, 1> x;
        x.set(0, p[i] * factor);
        p[i] = rk::bit_cast<float>(x.hi[0]);
        if constexpr (Products == 3) p[i + BQ * LD] = rk::bit_cast<float>(x.lo[0]);
      }
    }
  }
};

}  // namespace rk
