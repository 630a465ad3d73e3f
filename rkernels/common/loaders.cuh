// Loaders fill a stage of a tiled contraction (tile.cuh). Everything goes by cp.async unless a prologue
// has to see the elements on their way.
#pragma once

#include "common/tile.cuh"
#include "rt/cp_async_zero.cuh"
#include "rt/device.cuh"

namespace rk {

struct NoPrologue {
  struct Args {};
  static constexpr bool kIdentity = true;
  static RT_DEVICE float apply(const Args&, float x) { return x; }
};

// One element on its way to shared memory; ok says that there is one. Padding is zero after the
// prologue, not before.
template <class Pro>
RT_DEVICE void put1(float* dst, const float* src, bool ok, const typename Pro::Args& pro) {
  if constexpr (Pro::kIdentity) {
    rt::cp_async_or_zero<4>(dst, src, ok);
  } else {
    *dst = ok ? Pro::apply(pro, *src) : 0.0f;
  }
}

// Four neighbours, 16-byte aligned on both sides.
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

// How a strided operand is read: by runs of four columns, or one by one with lanes along the columns or
// along the rows, whichever are closer in memory.
enum LoadMode { kVec4 = 0, kByCol = 1, kByRow = 2, kPacked = 3 };

// A ROWS×COLS window of a strided matrix, put at [row][col] with LD floats a row. k runs along the
// columns for A (KCols) and along the rows for B. rows and cols are what is left of the matrix from the
// window's corner at k = 0.
template <int Threads, int ROWS, int COLS, int LD, bool KCols, int Mode, class Pro>
struct StridedLoader {
  const float* base;
  int64_t row_step, col_step;  // of 32 bits, as all strides
  int rows, cols;
  int tid;
  const typename Pro::Args& pro;

  RT_DEVICE const float* at(const float* from, int r, int c) const {
    return from + place(c, col_step, place(r, row_step));
  }

  RT_DEVICE void issue(float* stage, int k_tile) const {
    const int r0 = KCols ? 0 : k_tile * ROWS, c0 = KCols ? k_tile * COLS : 0;
    const float* src = at(base, r0, c0);
    const int left_rows = rows - r0, left_cols = cols - c0;
    if constexpr (Mode == kVec4) {
      constexpr int kQuads = COLS / 4, kCount = ROWS * kQuads;
      RT_UNROLL
      for (int i = 0; i < ceil_div(kCount, Threads); ++i) {
        const int e = tid + i * Threads, r = e / kQuads, c = e % kQuads * 4;
        if (kCount % Threads == 0 || e < kCount) {
          put4<Pro>(stage + r * LD + c, src + place(r, row_step, c), r < left_rows && c < left_cols, pro);
        }
      }
    } else {
      RK_UNROLL(4)
      for (int i = 0; i < ceil_div(ROWS * COLS, Threads); ++i) {
        const int e = tid + i * Threads;
        const int r = Mode == kByCol ? e / COLS : e % ROWS, c = Mode == kByCol ? e % COLS : e / ROWS;
        if (ROWS * COLS % Threads == 0 || e < ROWS * COLS) {
          put1<Pro>(stage + r * LD + c, at(src, r, c), r < left_rows && c < left_cols, pro);
        }
      }
    }
  }
};

// Constants packed as one contiguous ROWS×COLS block for each k tile, padding included.
template <int Threads, int ROWS, int COLS, int LD>
struct PackedLoader {
  const float* base;
  int tid;

  RT_DEVICE void issue(float* stage, int k_tile) const {
    constexpr int kQuads = COLS / 4, kCount = ROWS * kQuads;
    const float* src = base + place(k_tile, ROWS * COLS);
    RT_UNROLL
    for (int i = 0; i < ceil_div(kCount, Threads); ++i) {
      const int e = tid + i * Threads;
      if (kCount % Threads == 0 || e < kCount) {
        rt::cp_async16(stage + e / kQuads * LD + e % kQuads * 4, src + e * 4);
      }
    }
  }
};

}  // namespace rk
