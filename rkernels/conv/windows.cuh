// Implicit GEMM out of a patch of an image in shared memory. What an rTask reads of the image stands there once, in
// units of 16 bytes. A row of the left operand is the window of an output position. The windows of neighbouring
// positions overlap, and a row of a fragment may begin at any 16 bytes, so the left operand is never written down:
//
//   weights   a line for each output channel: its units of k, then one that is not used, so that neighbouring lines
//             fall on different banks
//   offsets   how far unit u of k is from the first unit of a window; -1 stands for the unit of zeros
//   zeros     a unit, directly before the patch
//   patch     the units of the image
#pragma once

#include "common/mma_narrow.cuh"
#include "common/operand.cuh"
#include "rt/device/device.cuh"

namespace rk {

// T is the tile that the warps share, whose depth of stages plays no part here, and E is what is multiplied.
template <class T, int Products, class E>
struct Windows {
  static constexpr int kUnit = 16 / static_cast<int>(sizeof(E));  // elements
  using Unit = Pack<E, kUnit>;

  // What stands in shared memory. `depth` is the units of a line of weights.
  struct Operands {
    E* weights;
    int depth, line;  // of a line: its units of k, and the elements from one line to the next
    int* offsets;
    Unit *zeros, *patch;
    RT_DEVICE Operands(const rt::Task& t, int units, int patch_at) {
      weights = reinterpret_cast<E*>(t.smem);
      depth = units;
      line = (depth + 1) * kUnit;
      patch = reinterpret_cast<Unit*>(t.smem + patch_at);
      zeros = patch - 1;
      offsets = reinterpret_cast<int*>(weights + T::BN * line);
    }
  };

  // Begins to bring the packed lines of the tile, the first of which is line n0.
  static RT_DEVICE void bring_weights(const rt::Task& t, const rt::Ref& packed, const Div& depth, int n0,
                                      const Operands& in) {
    const E* from = t.template ptr<const E>(packed) + place(n0, in.depth * kUnit);
    RK_UNROLL(2)
    for (int i = t.tid; i < T::BN * in.depth; i += T::kThreads) {
      rt::cp_async16(in.weights + (i + depth.quotient(i)) * kUnit, from + i * kUnit);
    }
  }

  // Tensor cores cut off the bits of float32 that tf32 has not; numbers are rounded instead.
  static RT_DEVICE E multiplied(float x) {
    if constexpr (std::is_same_v<E, float> && Products == 1) {
      return rk::bit_cast<float>(rt::to_tf32(x));
    } else {
      return E(x);
    }
  }

  // The lane's rows of the fragments of the left operand, at unit u of k or, in the upper lanes, the next one.
  // window(m) is the first unit of the window of position m of the tile.
  struct Rows {
    const Unit* windows[T::MI];
    const int* offsets;
    const Unit* zeros;
    template <class Window>
    RT_DEVICE Rows(const Operands& in, const typename T::At& at, const Window& window)
        : offsets(in.offsets + at.lane / 16), zeros(in.zeros) {
      RT_UNROLL
      for (int i = 0; i < T::MI; ++i) windows[i] = window(at.m + 16 * i + at.lane % 16);
    }
    RT_DEVICE void load(uint32_t (&r)[4], int i, int u) const {
      const int offset = offsets[u];
      rt::load_fragments(r, offset >= 0 ? windows[i] + offset : zeros);
    }
  };

  // acc += A·B of a tile.
  static RT_DEVICE void multiply(const Operands& in, const Rows& rows, typename T::At& at, typename T::Acc& acc) {
    if constexpr (Products == 3) {
      const float* columns = in.weights + split_column(at, in.line, in.depth * kUnit / 2);
      RK_UNROLL(1)
      for (int u = 0; u < in.depth; u += 4) {
        multiply_split(at, columns + u / 2 * kUnit, in.line, acc, [&](WideFragment& wide, int i) {
          uint32_t r[2][4];
          rows.load(r[0], i, u), rows.load(r[1], i, u + 2);
          wide.take(r);
        });
      }
    } else {
      // A load brings the weights of two fragments' columns; where there is no second one, of one fragment twice.
      const E* columns = in.weights + (at.n + at.lane % 8) * in.line + at.lane / 8 % 2 * kUnit;
      const int second = at.lane / 16 * 8 * in.line;
      RK_UNROLL(2)
      for (int u = 0; u < in.depth; u += 2) {
        uint32_t left[T::MI][4];
        RT_UNROLL
        for (int i = 0; i < T::MI; ++i) rows.load(left[i], i, u);
        RT_UNROLL
        for (int j = 0; j < T::NI; j += 2) {
          const bool pair = j + 1 < T::NI;
          uint32_t r[4];
          rt::load_fragments(r, columns + 8 * j * in.line + u * kUnit + (pair ? second : 0));
          const uint32_t right[2][2] = {{r[0], r[1]}, {r[2], r[3]}};
          RT_UNROLL
          for (int i = 0; i < T::MI; ++i) {
            multiply_fragments<E>(acc[i][j], left[i], right[0]);
            if (pair) multiply_fragments<E>(acc[i][pair ? j + 1 : j], left[i], right[1]);
          }
        }
      }
    }
  }

  // Computes `count` positions of an rTask, tile after tile, and stores them. rows(at, m0) are the Rows of the tile
  // that begins with position m0. `place` is that of the first tile; the sums of a tile begin at sums_at.
  template <class Epi, class TileRows>
  static RT_DEVICE void compute(const rt::Task& t, const Operands& in, const ConstantScale<T>& scale, int count,
                                int sums_at, const rt::Operand3& out, const typename Epi::Args& epi, TilePlace place,
                                const TileRows& rows) {
    float* sums = reinterpret_cast<float*>(t.smem + sums_at);
    RK_UNROLL(1)
    for (int m0 = 0; m0 < count; m0 += T::BM) {
      typename T::Acc acc = {};
      typename T::At at(t.tid);
      if constexpr (Products == 3) at.scale = scale.inverse;
      multiply(in, rows(at, m0), at, acc);
      t.sync();  // the sums of the tile before have left, and those of a single tile may lie on the patch
      put_sums(at, acc, sums);
      t.sync();
      drain_sums<T::kThreads, T::BM, T::BN, T::LDC, 1, 16, Epi>(t, sums, out, epi, place);
      place.i1 += T::BM;
    }
  }
};

}  // namespace rk
