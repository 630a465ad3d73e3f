// Rows of queries, keys and values in shared memory, as warp groups multiply them, and what brings them there.
#pragma once

#include "attention/heads.cuh"
#include "common/loaders.cuh"

namespace rk {

// Rows of up to DM numbers of 16 bits in shared memory, as matrix instructions take them: blocks of 64 columns one
// behind the other, each with ROWS swizzled rows of 128 bytes. Threads copy runs of 16 bytes.
template <int ROWS, int DM, int Threads>
struct HeadBlocks {
  static constexpr int kColumns = 64, kBlock = ROWS * kColumns;  // of a block; its elements
  static constexpr int kElements = (DM < kColumns ? 1 : DM / kColumns) * kBlock;
  static constexpr int kRun = 8, kAcross = DM / kRun, kDown = Threads / kAcross, kCopies = ROWS / kDown;
  static_assert(Threads % kAcross == 0 && ROWS % kDown == 0, "threads cover whole rows");

  // Where a run of a row begins.
  static RT_DEVICE int place(int row, int run) {
    return run / 8 * kBlock + row * kColumns + (run % 8 ^ row % 8) * kRun;
  }
  // Where the run of a thread's row number `copy` begins, of which the first one begins at `first`. The swizzle is the
  // same again after eight rows.
  static RT_DEVICE int place_of_copy(int first, int copy) {
    static_assert(kDown % 8 == 0 || kDown == 4, "rows of copies are swizzled in one or two ways");
    const int turned = kDown == 4 && copy % 2 ? first ^ 4 * kRun : first;
    return turned + copy * kDown * kColumns;
  }
};

// Brings rows of queries, keys or values, ROWS of them at a time, and zeros behind their end.
template <class T, int ROWS, int DM, int Threads>
class HeadLoader {
  using Blocks = HeadBlocks<ROWS, DM, Threads>;

 public:
  // `first` is the first row of all, of which there are `rows` with `columns` columns.
  RT_DEVICE HeadLoader(const T* first, int64_t to_row, int rows, int columns, int tid)
      : step_(static_cast<int>(to_row)) {
    const int row = tid / Blocks::kAcross, run = tid % Blocks::kAcross;
    next_ = first + rk::place(row, step_, run * Blocks::kRun);
    left_ = run * Blocks::kRun < columns ? rows - row : 0;
  }
  // Where the thread's first run is in shared memory.
  static RT_DEVICE int place(int tid) { return Blocks::place(tid / Blocks::kAcross, tid % Blocks::kAcross); }

  // Brings the next rows, and goes on by Step of them. `place` is place() of the thread.
  template <int Step>
  RT_DEVICE void issue(T* stage, int place) {
    const T* from = next_;
    RT_UNROLL
    for (int i = 0; i < Blocks::kCopies; ++i) {
      rt::cp_async_or_zero<16>(stage + Blocks::place_of_copy(place, i), from, i * Blocks::kDown < left_);
      from = ahead(from, Blocks::kDown, step_);
    }
    next_ = ahead(next_, Step, step_);
    left_ -= Step;
  }

 private:
  int step_, left_;
  const T* next_;
};

}  // namespace rk
