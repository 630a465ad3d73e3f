// Layer normalisation of rows, (x - mean) / sqrt(variance + epsilon) · scale + bias, where x may be a sum, and one
// summand may be gathered:
//
//	x[row] = a[row] + b[row]                                         ADD; without it x is b
//	b[row] = b's units number index[row][0], index[row][1], …        GATHER: runs of elements, side by side
//	sum[row] = x[row]                                                SUM
//
// A warp has a row at a time, in registers, and reads it once. Rows are dense and 16-byte aligned.
#pragma once

#include "common/math.cuh"
#include "common/operand.cuh"
#include "common/tile.cuh"
#include "rt/device/device.cuh"

namespace rk {

// PER is how many quads of elements a lane has of a row.
template <int PER, bool ADD, bool GATHER, bool SUM, bool BIAS>
struct NormalizeRows {
  static constexpr int kThreads = 256, kWarps = kThreads / 32;
  static constexpr int kShared = 0;

  struct Args {
    rt::Ref a, b, index, sum, out, scale, bias;  // those that are not used are any
    int64_t a_step, b_step, sum_step, out_step;  // elements from one row to the next; from one unit to the next for b
    Div unit;                                    // quads of a unit
    int32_t units;                               // of a row
    int32_t rows, chunk;                         // of all rTasks, and of one
    int32_t n;                                   // elements of a row
    float epsilon;
  };

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& args, int rtask) {
    const int lane = t.tid % 32, first = rtask * args.chunk;
    const int end = args.rows < first + args.chunk ? args.rows : first + args.chunk;
    RK_UNROLL(1)
    for (int row = first + t.tid / 32; row < end; row += kWarps) normalize(t, args, row, lane);
  }

 private:
  static RT_DEVICE void normalize(const rt::Task& t, const Args& args, int row, int lane) {
    const int quads = args.n / 4;
    const float* a = t.ptr<const float>(args.a) + place(row, args.a_step);
    float* total = t.ptr<float>(args.sum) + place(row, args.sum_step);
    float4v x[PER];
    RT_UNROLL
    for (int u = 0; u < PER; ++u) {
      const int q = lane + 32 * u;
      x[u] = float4v{0, 0, 0, 0};
      if (q < quads) x[u] = *source(t, args, row, q);
    }
    if constexpr (ADD) {
      RT_UNROLL
      for (int u = 0; u < PER; ++u) {
        const int q = lane + 32 * u;
        if (q < quads) x[u] = plus(x[u], *reinterpret_cast<const float4v*>(a + 4 * q));
      }
    }
    if constexpr (SUM) {
      RT_UNROLL
      for (int u = 0; u < PER; ++u) {
        const int q = lane + 32 * u;
        if (q < quads) *reinterpret_cast<float4v*>(total + 4 * q) = x[u];
      }
    }
    float s = 0.0f;
    RT_UNROLL
    for (int u = 0; u < PER; ++u) s += (x[u].x + x[u].y) + (x[u].z + x[u].w);
    const float n = static_cast<float>(args.n), mean = all(t, s) / n;
    s = 0.0f;
    RT_UNROLL
    for (int u = 0; u < PER; ++u) {
      x[u] = plus(x[u], float4v{-mean, -mean, -mean, -mean});
      if (lane + 32 * u < quads) s += (x[u].x * x[u].x + x[u].y * x[u].y) + (x[u].z * x[u].z + x[u].w * x[u].w);
    }
    store(t, args, row, lane, x, 1.0f / fn::real::sqrt(all(t, s) / n + args.epsilon));
  }

  // Where quad q of a row is in b.
  static RT_DEVICE const float4v* source(const rt::Task& t, const Args& args, int row, int q) {
    const float* b = t.ptr<const float>(args.b);
    if constexpr (!GATHER) return reinterpret_cast<const float4v*>(b + place(row, args.b_step, 4 * q));
    const int unit = args.unit.quotient(q);
    const int from = rt::ld_const(t.ptr<const int>(args.index) + place(row, args.units, unit));
    const int within = q - unit * static_cast<int>(args.unit.d);
    return reinterpret_cast<const float4v*>(b + place(from, args.b_step, 4 * within));
  }

  static RT_DEVICE void store(const rt::Task& t, const Args& args, int row, int lane, const float4v (&x)[PER],
                              float inverse) {
    const float4v* scale = t.ptr<const float4v>(args.scale) + lane;
    const float4v* bias = t.ptr<const float4v>(args.bias) + lane;
    float4v* out = reinterpret_cast<float4v*>(t.ptr<float>(args.out) + place(row, args.out_step)) + lane;
    RT_UNROLL
    for (int u = 0; u < PER; ++u) {
      if (lane + 32 * u >= args.n / 4) continue;
      const float4v w = rt::ld_const(scale + 32 * u);
      float4v y = {x[u].x * inverse * w.x, x[u].y * inverse * w.y, x[u].z * inverse * w.z, x[u].w * inverse * w.w};
      if constexpr (BIAS) y = plus(y, rt::ld_const(bias + 32 * u));
      out[32 * u] = y;
    }
  }

  static RT_DEVICE float4v plus(float4v x, float4v y) { return {x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w}; }

  // The sum over the lanes of a warp, for all of them.
  static RT_DEVICE float all(const rt::Task& t, float s) {
    RT_UNROLL
    for (int mask = 16; mask > 0; mask /= 2) s += rt::shfl_xor(t, s, mask);
    return s;
  }
};

}  // namespace rk
