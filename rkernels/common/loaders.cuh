// Loaders fill the stages of a tiled contraction (tile.cuh). They copy asynchronously, except where a prologue computes
// with the elements on their way.
#pragma once

#include "common/modes.cuh"
#include "common/tile.cuh"
#include "rt/device/device.cuh"

namespace rk {

struct NoPrologue {
  struct Args {};
  static constexpr bool kIdentity = true;
  static RT_DEVICE float apply(const Args&, float x) { return x; }
};

// Copies one element to shared memory if ok, and otherwise puts a zero there. The padding is what is zero behind the
// prologue: the prologue does not see it.
template <class Pro>
RT_DEVICE void put1(float* dst, const float* src, bool ok, const typename Pro::Args& pro) {
  if constexpr (Pro::kIdentity) {
    rt::cp_async_or_zero<4>(dst, src, ok);
  } else {
    *dst = ok ? Pro::apply(pro, *src) : 0.0f;
  }
}

// The same for four neighbours, 16-byte aligned on both sides.
template <class Pro>
RT_DEVICE void put4(float* dst, const float* src, bool ok, const typename Pro::Args& pro) {
  if constexpr (Pro::kIdentity) {
    rt::cp_async_or_zero<16>(dst, src, ok);
  } else {
    float4v v = {0, 0, 0, 0};
    if (ok) {
      v = *reinterpret_cast<const float4v*>(src);
      v = float4v{Pro::apply(pro, v.x), Pro::apply(pro, v.y), Pro::apply(pro, v.z), Pro::apply(pro, v.w)};
    }
    *reinterpret_cast<float4v*>(dst) = v;
  }
}

// Brings a ROWS×COLS window of a strided matrix to [row][col] of a stage, with LD floats a row. k runs along the
// columns for A (KCols) and along the rows for B. rows and cols are what is left of the matrix from the window's corner
// at k = 0. Each call of issue() brings the next k tile. The loader keeps copies of what it needs of an rTask's
// arguments: they are in shared memory, which any asynchronous copy may change as far as nvcc can know, so it would
// read them again after each copy.
template <int Threads, int ROWS, int COLS, int LD, bool KCols, int Mode, class Pro>
struct StridedLoader {
  // A thread's elements, or runs of four, are one below the other, and the lanes of a warp lie along the columns. Under
  // kLoadByRow a thread's elements are beside each other.
  static constexpr int kVec = Mode == kLoadVec4 ? 4 : 1;
  static constexpr int kAcross = Mode == kLoadByRow ? ROWS : COLS / kVec;
  static constexpr int kStep = Threads / kAcross, kCount = ROWS * COLS / kVec;
  static constexpr bool kAlongRows = Mode != kLoadByRow;
  static constexpr int kPitch = kStep * (kAlongRows ? LD : 1);
  static constexpr int kCopies = ceil_div(kCount, Threads),
                       kBatch = kCopies < 4 ? kCopies : 4;  // in all, in a turn of a loop
  static_assert(Threads % kAcross == 0 && (kCount % Threads == 0 || kCount < Threads),
                "threads cover whole lines of the window");

  const float* next;
  int row_step, col_step;
  int left_along, left_across;  // how much of the matrix is left from the thread's first element on
  int to;                       // where that is in a stage
  bool mine;
  const typename Pro::Args& pro;

  RT_DEVICE StridedLoader(const float* base, int64_t to_row, int64_t to_col, int rows, int cols, int tid,
                          const typename Pro::Args& prologue)
      : row_step(static_cast<int>(to_row)),
        col_step(Mode == kLoadVec4 ? 1 : static_cast<int>(to_col)),
        mine(kCount % Threads == 0 || tid < kCount),
        pro(prologue) {
    const int across = tid % kAcross * kVec, along = tid / kAcross;
    const int r = kAlongRows ? along : across, c = kAlongRows ? across : along;
    next = base + place(r, row_step, place(c, col_step));
    left_along = kAlongRows ? rows - r : cols - c;
    left_across = kAlongRows ? cols - c : rows - r;
    to = r * LD + c;
  }

  RT_DEVICE void issue(float* stage) {
    int left = left_across > 0 ? left_along : 0;
    const float* src = next;
    float* dst = stage + to;
    if (mine) {
      RK_UNROLL(1)
      for (int i = 0; i < kCopies; i += kBatch) {
        RT_UNROLL
        for (int b = 0; b < kBatch; ++b) {
          if constexpr (Mode == kLoadVec4) {
            put4<Pro>(dst + b * kPitch, src, b * kStep < left, pro);
          } else {
            put1<Pro>(dst + b * kPitch, src, b * kStep < left, pro);
          }
          src = ahead(src, kStep, kAlongRows ? row_step : col_step);
        }
        dst += kBatch * kPitch;
        left -= kBatch * kStep;
      }
    }
    next = KCols ? ahead(next, COLS, col_step) : ahead(next, ROWS, row_step);
    (KCols == kAlongRows ? left_across : left_along) -= KCols ? COLS : ROWS;
  }
};

// Brings constants that are packed as one contiguous ROWS×COLS block for each k tile, padding included.
template <int Threads, int ROWS, int COLS, int LD>
struct PackedLoader {
  static constexpr int kQuads = COLS / 4, kCount = ROWS * kQuads;
  static_assert(Threads % kQuads == 0, "threads cover whole rows of the block");

  const float* next;
  int to;
  bool mine;

  RT_DEVICE PackedLoader(const float* blocks, int tid)
      : next(blocks + 4 * tid), to(tid / kQuads * LD + tid % kQuads * 4), mine(kCount % Threads == 0 || tid < kCount) {
    static_assert(kCount % Threads == 0 || kCount < Threads);
  }

  RT_DEVICE void issue(float* stage) {
    if (mine) {
      RT_UNROLL
      for (int i = 0; i < ceil_div(kCount, Threads); ++i) {
        rt::cp_async16(stage + to + i * (Threads / kQuads * LD), next + i * Threads * 4);
      }
    }
    next += ROWS * COLS;
  }
};

}  // namespace rk
