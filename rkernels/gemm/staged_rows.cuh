// Rows of a product's left operand that come to shared memory in pieces, of which several are on the way at once.
#pragma once

#include "common/tile.cuh"
#include "common/types.cuh"
#include "rt/device/device.cuh"

namespace rk {

// Up to MB rows of type X. A piece is [row][k], Depth values of each row; there is room for so many pieces. Rows are 64
// bytes apart in the banks of shared memory, so that the lanes of two rows read all banks. V neighbours along k exist
// together or not at all.
template <class X, int V, int MB, int Depth, int Pieces, int Threads>
class StagedRows {
 public:
  static constexpr int kWide = static_cast<int>(16 / sizeof(X));
  static constexpr int LDA = Depth + 4 * kWide;
  static constexpr int kBytes = Pieces * MB * LDA * static_cast<int>(sizeof(X));

  // x is the first value of the first row, of which `left` exist; row and step are element strides.
  RT_DEVICE StagedRows(const rt::Task& t, const X* x, int64_t row, int64_t step, int rows, int left)
      : to_(reinterpret_cast<X*>(t.smem)), from_(x), row_(row), step_(step), tid_(t.tid), rows_(rows), left_(left) {}

  // Sends for the first pieces.
  RT_DEVICE void begin() {
    RK_UNROLL(1)
    for (int p = 1; p < Pieces; ++p) fetch();
  }

  // Sends for the next piece, with zeros where the operand ends.
  RT_DEVICE void fetch() {
    constexpr int kLoads = Depth / kWide;  // of a row
    RT_UNROLL
    for (int e = 0; e < MB * kLoads; e += Threads) {
      const int m = (e + tid_) / kLoads, k = (e + tid_) % kLoads * kWide;
      if (MB * kLoads % Threads != 0 && m >= MB) break;
      X* to = to_ + (fetched_ * MB + m) * LDA + k;
      const X* from = from_ + place(m, row_, place(k, step_));
      if constexpr (V == kWide) {
        const bool exists = m < rows_ && k < left_;
        rt::cp_async_or_zero<16>(to, exists ? from : from_, exists);
      } else {
        RT_UNROLL
        for (int i = 0; i < kWide; i += V) {
          Pack<X, V> held = {};
          if (m < rows_ && k + i < left_) held = *reinterpret_cast<const Pack<X, V>*>(from + i * step_);
          *reinterpret_cast<Pack<X, V>*>(to + i) = held;
        }
      }
    }
    rt::cp_async_commit();
    from_ += Depth * step_, left_ -= Depth;
    if (++fetched_ == Pieces) fetched_ = 0;
  }

  // Waits for the next piece. All threads call it. Then the piece before may be overwritten.
  RT_DEVICE const X* next(const rt::Task& t) {
    rt::cp_async_wait<Pieces - 2>();
    t.sync();
    const X* piece = to_ + here_ * (MB * LDA);
    if (++here_ == Pieces) here_ = 0;
    return piece;
  }

 private:
  X* to_;
  const X* from_;
  int64_t row_, step_;
  int tid_, rows_, left_;       // left_: how many values of k there are from from_ on
  int fetched_ = 0, here_ = 0;  // places of pieces
};

}  // namespace rk
