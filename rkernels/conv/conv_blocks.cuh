// Convolution of images that it cuts into blocks: windows do not reach outside of the image, and a row of one is made
// of runs of 16 aligned bytes, as in the first layer of a vision transformer or where a stage of a network halves the
// image. It is a matrix product whose left operand lies in the image. An rTask has a small tile of it, and brings all
// that this needs at once, so that it waits for memory once.
//
//   unit    16 bytes of a window: 4 values of k in float32, 8 in 16 bits
//   step    4 units: a lane of a fragment of tensor cores has one in its row, whose values it takes as they lie. Which
//           ones of k they are for the tensor core plays no part, since weights are packed likewise.
//
// In shared memory each lane's units and weights stand as it reads them, so that no two lanes meet on a bank.
#pragma once

#include "common/mma_narrow.cuh"
#include "conv/gather.cuh"
#include "rt/device/device.cuh"

namespace rk {

// A warp has 16 rows and WN columns of the tile of BM×BN; warps that have the same ones share the steps. ROOM is the
// bytes of shared memory of an rTask. X is the element type of the image, E what is multiplied and what weights are
// packed as.
template <int BM, int BN, int WN, int ROOM, class X, class E, class Epi, class Pro>
struct ConvBlocks {
  static constexpr int kThreads = 256;
  static constexpr int kShared = ROOM;
  static constexpr bool kEarly = true;
  static constexpr int kRows = BM / 16, kColumns = BN / WN, kGroups = kThreads / 32 / (kRows * kColumns);
  static constexpr int kUnit = kPerLoad<X>, NI = WN / 8;
  static constexpr int kParts = kUnit * static_cast<int>(sizeof(E)) / 8;  // fragments of k that a step is
  static constexpr int kWords = 2 * kParts * NI;                          // weights of a lane, of a step
  static constexpr int kChunk = kWords % 4 == 0 ? 4 : 2;                  // words of them that lie beside each other
  static constexpr int kCopied = 2 * kRows;  // blocks of 8 rows, of each of which a warp copies a step at once
  static constexpr int kAtOnce = kThreads / 32 / kCopied;  // steps that the warps copy at once
  static constexpr int LDC = BN % 32 == 24 ? BN + 16 : BN + 8;
  static_assert(kRows * kColumns * kGroups * 32 == kThreads && kCopied * kAtOnce * 32 == kThreads);
  static_assert(kGroups * BM * LDC * 4 <= ROOM);
  using Columns = EarlyColumns<kThreads, BM, BN, 16, Epi>;
  using Unit = Pack<X, kUnit>;
  using Words = Pack<uint32_t, kChunk>;

  struct Args {
    rt::Ref x, w;
    rt::Operand3 out;  // [0][position][channel]
    int32_t out_channels;
    int32_t positions;  // of all images
    Div tiles_m;
    int32_t steps, units;           // of a window
    Div run, runs;                  // units of a run, and runs of an outer dim
    int32_t run_step, outer_step;   // elements from one to the next
    int32_t row_step, column_step;  // elements from a window to the next one
    int32_t weights;                // where they begin in shared memory
    Div rows, columns;              // of the output of an image
    int64_t image_step;
    typename Epi::Args epi;
    typename Pro::Args pro;
  };

  // rTasks count (tile of channels, tile of positions), the last one fastest.
  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    int nt = rtask;
    const int p0 = take_digit(nt, a.tiles_m) * BM;
    const int lane = t.tid % 32, warp = rt::settled(t.tid / 32), steps = a.steps;
    Unit* units = reinterpret_cast<Unit*>(t.smem);
    Words* weights = reinterpret_cast<Words*>(t.smem + a.weights);
    bring_weights(t, a, nt, steps, t.smem + a.weights);
    const TilePlace place = {0, p0, nt * BN, a.positions, a.out_channels};
    const Source source(t, a, p0);
    t.wait_for_inputs();
    Columns early(t, a.epi, place);
    bring_units(t, source, steps, units);
    rt::cp_async_commit();
    rt::cp_async_wait<0>();
    t.sync();

    const int rows = warp % kRows, columns = warp / kRows % kColumns, group = warp / (kRows * kColumns);
    const Unit* left = units + (group * kRows + rows) * 64 + lane;
    const Words* right = weights + (group * kColumns + columns) * (kWords / kChunk * 32) + lane;
    float sums[NI][4] = {};
    RK_UNROLL(2)
    for (int s = group; s < steps; s += kGroups) {
      uint32_t upper[2 * kParts], lower[2 * kParts], w[kWords];
      multiplied(a, *left, upper), multiplied(a, left[32], lower);
      RT_UNROLL
      for (int i = 0; i < kWords / kChunk; ++i) {
        const Words words = right[32 * i];
        RT_UNROLL
        for (int j = 0; j < kChunk; ++j) w[kChunk * i + j] = words.v[j];
      }
      RT_UNROLL
      for (int p = 0; p < kParts; ++p) {
        const uint32_t x[4] = {upper[2 * p], lower[2 * p], upper[2 * p + 1], lower[2 * p + 1]};
        RT_UNROLL
        for (int j = 0; j < NI; ++j) {
          const uint32_t y[2] = {w[2 * (kParts * j + p)], w[2 * (kParts * j + p) + 1]};
          multiply_fragments<E>(sums[j], x, y);
        }
      }
      left += kGroups * kRows * 64, right += kGroups * kColumns * (kWords / kChunk * 32);
    }

    float* to =
        reinterpret_cast<float*>(t.smem) + (group * BM + 16 * rows + lane / 4) * LDC + columns * WN + lane % 4 * 2;
    t.sync();  // the sums stand where operands stood
    RT_UNROLL
    for (int j = 0; j < NI; ++j) {
      *reinterpret_cast<Pack<float, 2>*>(to + 8 * j) = {{sums[j][0], sums[j][1]}};
      *reinterpret_cast<Pack<float, 2>*>(to + 8 * j + 8 * LDC) = {{sums[j][2], sums[j][3]}};
    }
    t.sync();
    drain(t, a, place, early);
  }

 private:
  // The weights of a tile stand in memory as in shared memory.
  static RT_DEVICE void bring_weights(const rt::Task& t, const Args& a, int nt, int steps, char* to) {
    const int bytes = steps * (kColumns * kWords * 32 * 4);
    const char* from = t.template ptr<const char>(a.w) + place(nt, bytes);
    RK_UNROLL(1)
    for (int i = 16 * t.tid; i < bytes; i += 16 * kThreads) rt::cp_async16(to + i, from + i);
  }

  // A thread copies units of one row of the tile. Rows behind the last position are those of another one. All of that
  // is found out before the image is there, and kept in registers, since copies could change arguments as far as nvcc
  // knows.
  struct Source {
    const X* from;
    int units, run_step, outer_step;
    Div run, runs;
    RT_DEVICE Source(const rt::Task& t, const Args& a, int p0)
        : units(a.units), run_step(a.run_step), outer_step(a.outer_step), run(a.run), runs(a.runs) {
      const int last = a.positions - 1;
      int image = p0 + t.tid / 32 % kCopied * 8 + t.tid % 32 / 4;
      image = image < last ? image : last;
      const int column = take_digit(image, a.columns), row = take_digit(image, a.rows);
      from = t.template ptr<const X>(a.x) +
             place(image, a.image_step, place(row, a.row_step, place(column, a.column_step)));
    }
  };
  static RT_DEVICE void bring_units(const rt::Task& t, const Source& x, int steps, Unit* to) {
    to += t.tid;
    RK_UNROLL(1)
    for (int u = t.tid / 32 / kCopied * 4 + t.tid % 4; u < 4 * steps; u += 4 * kAtOnce) {
      int outer = u;
      const int within = take_digit(outer, x.run), middle = take_digit(outer, x.runs);
      rt::cp_async_or_zero<16>(to, x.from + (within * kUnit + middle * x.run_step + outer * x.outer_step), u < x.units);
      to += kThreads;
    }
  }

  // A lane's unit as words of fragments.
  static RT_DEVICE void multiplied(const Args& a, const Unit& unit, uint32_t (&words)[2 * kParts]) {
    const auto loaded = *reinterpret_cast<const Pack<uint32_t, 4>*>(&unit);
    if constexpr (std::is_same_v<X, E> && sizeof(X) == 2 && Pro::kIdentity) {
      RT_UNROLL
      for (int i = 0; i < 4; ++i) words[i] = loaded.v[i];
    } else {
      const Unit held = bit_cast<Unit>(loaded);
      float x[kUnit];
      RT_UNROLL
      for (int i = 0; i < kUnit; ++i) x[i] = float(Pro::apply(a.pro, held.v[i]));
      RT_UNROLL
      for (int i = 0; i < 2 * kParts; ++i) {
        if constexpr (sizeof(E) == 2) {
          words[i] = narrow_pair<E>(x[2 * i], x[2 * i + 1]);
        } else {
          words[i] = rt::to_tf32(x[i]);
        }
      }
    }
  }

  // Stores the tile through the epilogue.
  static RT_DEVICE void drain(const rt::Task& t, const Args& a, const TilePlace& place, Columns& columns) {
    const float* sums = reinterpret_cast<const float*>(t.smem);
    if constexpr (Epi::kPack > 1) {
      drain_packs<kThreads, BM, BN, LDC, kGroups, 16, Epi>(t, sums, a.out, a.epi, place, columns);
      return;
    }
    RK_UNROLL(1)
    for (int e = t.tid; e < BM * BN; e += kThreads) {
      const int row = e / BN, col = e % BN;
      float sum = 0;
      RT_UNROLL
      for (int g = 0; g < kGroups; ++g) sum += sums[(g * BM + row) * LDC + col];
      if (place.i1 + row < place.end1 && place.i2 + col < place.end2) {
        store<Epi>(t, a.out, a.epi, sum, place.i0, place.i1 + row, place.i2 + col);
      }
    }
  }
};

}  // namespace rk
