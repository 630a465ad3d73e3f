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

// Copies 64 rows of queries, number `first_row` of the tile and those behind it, by the threads of a warp group, and
// zeros where there is nothing. With Together a tile has so many queries of each head.
template <class T, int DM, int Together, class Args>
RT_DEVICE void issue_queries(const rt::Task& t, const Args& a, const HeadTile& tile, int first_row, int tid, T* sq) {
  constexpr int kRows = 64;
  using Blocks = HeadBlocks<kRows, DM, 128>;
  using Loader = HeadLoader<T, kRows, DM, 128>;
  const T* q = a.q.template head<T>(t, tile.b0, tile.b1, tile.b2);
  const int to_row = static_cast<int>(a.q.row), to_head = static_cast<int>(a.q.s2);
  const int row = tid / Blocks::kAcross, run = tid % Blocks::kAcross, first = Loader::place(tid);
  if constexpr (Together) {
    constexpr int kOfHead = Together / Blocks::kDown;  // copies
    static_assert(Together % Blocks::kDown == 0, "copies of a thread are rows of whole heads");
    int head = first_row / Together;
    const T* from = q + rk::place(head, to_head, rk::place(tile.q0 + row, to_row, run * Blocks::kRun));
    const int rows = run * Blocks::kRun < a.depth ? tile.queries - row : 0;
    RT_UNROLL
    for (int i = 0; i < Blocks::kCopies; i += kOfHead) {
      const int left = head++ < tile.heads ? rows : 0;
      RT_UNROLL
      for (int j = 0; j < kOfHead; ++j) {
        rt::cp_async_or_zero<16>(sq + Blocks::place_of_copy(first, i + j), ahead(from, j * Blocks::kDown, to_row),
                                 j * Blocks::kDown < left);
      }
      from = ahead(from, 1, to_head);
    }
    return;
  }
  if (tile.heads == 1) {
    Loader rows(q + rk::place(tile.q0 + first_row, to_row), to_row, tile.queries - first_row, a.depth, tid);
    return rows.template issue<0>(sq, first);
  }
  RK_UNROLL(1)
  for (int i = 0; i < Blocks::kCopies; ++i) {
    const HeadRow r(a.rows, first_row + row + i * Blocks::kDown);
    const int64_t from = rk::place(r.head, to_head, rk::place(tile.q0 + r.query, to_row, run * Blocks::kRun));
    rt::cp_async_or_zero<16>(sq + Blocks::place_of_copy(first, i), q + from,
                             run * Blocks::kRun < a.depth && r.inside(tile));
  }
}

}  // namespace rk
