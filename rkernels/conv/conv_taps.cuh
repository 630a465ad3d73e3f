// Convolution over channels-last images by the warp groups of tensor cores, for filters of several taps: what an rTask
// reads of the image is brought once for all taps. Images are seen as one line of pixels, the grid, in which each row
// is followed by zeros, and the rows of each image by rows of zeros:
//
//	grid     row 0 of image 0 │ 0 │ row 1 │ 0 │ … │ last row │ 0 │ 0 … 0 │ row 0 of image 1 │ 0 │ …
//
// There, a tap of the filter is the same distance from all output positions: the padding of one row is that of the next
// one, too. So BM neighbours of the grid are the rows of a tile, and what they read under a tap is BM neighbours as
// well, so far further on. Some rows of a tile are at places of zeros, and are computed for nothing. With a stride of 2
// there are four grids, the phases: of even and odd columns of even and odd rows. A tap has one of them.
//
// 128 bytes of the channels of all pixels that a tile reads are brought at a time, as swizzled rows, of which tensor
// cores read 64 from any pixel on. While they multiply the taps of some channels, the
// next channels come. The filter is streamed, one tap of these channels after another. Integers of 8 bits have a zero
// point, which stands where others have zeros.
#pragma once

#include "common/loaders.cuh"
#include "common/wgmma.cuh"
#include "conv/gather.cuh"
#include "rt/device/device.cuh"

namespace rk {

// WG warp groups share the BM rows. ROOM is the bytes of shared memory beside the ring of the filter. X is the
// element type of the image, E that of the filter. They are one type, float for products of tf32, or integers of 8
// bits with a sign or without.
template <int BM, int BN, int WG, int Products, int ROOM, class X, class E, class Epi, class Pro>
struct ConvTaps {
  // Each group has 64 rows of every 64·WG, and multiplies them one after another by the same columns.
  using T = GroupTile<X, E, 64 * WG, BN, 1, 4, Products, true>;
  static constexpr int kParts = BM / T::BM;
  using Acc = typename T::Acc[kParts];
  static constexpr int kThreads = T::kThreads;
  static constexpr int kShared = ROOM;
  static constexpr int kStreamStep = T::kStageB;
  static constexpr int kUnit = 16 / static_cast<int>(sizeof(E));  // elements that are copied at a time
  static constexpr int kPixel = 128, kUnits = kPixel / 16;        // what a stage has of a pixel: bytes, and copies
  using In = StagedAs<E, X>;
  static_assert(ROOM >= kParts * T::kSums, "the sums stand where the image stood");

  struct Args {
    rt::Ref x, w, table;  // table has where in the patch each tap begins, and then the phases
    rt::Operand3 out;     // [image·split][position][channel]; the images of a batch may be one that is so deep
    Div groups;
    int32_t out_channels, in_channels;  // of a group
    Div tiles_m, tiles_n;
    int32_t stages, split_stages;  // of 128 bytes of channels: of a group, and of one split
    Div splits;
    Div grid_rows, grid_columns;  // of an image
    int32_t depth;                // images that are one
    int32_t taps;
    int32_t before;    // places from where a tile begins to read to its first position
    Div pixels;        // that a tile reads of a phase
    int32_t count;     // that a tile reads of all phases
    int32_t stage;     // bytes from one stage of the image to the next
    int32_t first;     // where the first one may begin, behind taps and places of pixels
    uint32_t padding;  // what stands outside of an input of 8 bits, in each byte
    Window win;
    typename Epi::Args epi;
    typename Pro::Args pro;
  };

  // rTasks count (image, split, tile of the grid, group, tile of channels), the last one fastest.
  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    int image = rtask;
    const int nt = take_digit(image, a.tiles_n), group = take_digit(image, a.groups);
    const int q0 = take_digit(image, a.tiles_m) * BM, i0 = image, split = take_digit(image, a.splits);
    const int stage = split * a.split_stages;
    const int count = a.stages - stage < a.split_stages ? a.stages - stage : a.split_stages;
    find_places(t, a, q0);
    const int channel = stage * T::BK;
    const In* x = t.inputs(t.template ptr<const In>(a.x) + place(image, a.win.step_n, group * a.in_channels + channel));
    Acc acc = {};
    TapProducts products(t, a, x, a.in_channels - channel, count);
    products.run(acc);
    const int c0 = group * a.out_channels, p0 = Grid(a, q0).position, end = Grid(a, q0 + BM).position;
    drain(t, a, acc, q0, {i0, p0, c0 + nt * BN, end, c0 + a.out_channels});
  }

 private:
  // A place of the grid. `position` is how many positions of the output come before it.
  struct Grid {
    int n, h, w;
    int position;
    bool exists;  // it is a position of the output
    RT_DEVICE Grid(const Args& a, int q) {
      const int out_h = static_cast<int>(a.win.out_h.d), out_w = static_cast<int>(a.win.out_w.d);
      n = q;
      w = take_digit(n, a.grid_columns), h = take_digit(n, a.grid_rows);
      exists = n < a.depth && h < out_h && w < out_w;
      const int left = h >= out_h ? 0 : w < out_w ? w : out_w;
      position = n >= a.depth ? a.depth * out_h * out_w : (n * out_h + (h < out_h ? h : out_h)) * out_w + left;
    }
    // The place of a position.
    static RT_DEVICE int of(const Args& a, int position) {
      int n = position;
      const int w = take_digit(n, a.win.out_w), h = take_digit(n, a.win.out_h);
      return (n * static_cast<int>(a.grid_rows.d) + h) * static_cast<int>(a.grid_columns.d) + w;
    }
  };

  // The pixels of a phase: they are at these rows and columns of the input beyond multiples of the strides. What
  // positions read of them is from so many places from the first position on, up to so many from the last one.
  struct alignas(16) Phase {
    int32_t row, column, from, to;
  };

  // Writes down where taps begin and where each pixel of the tile is in the image, in elements; -1 for those that are
  // zero, or that none of the tile's positions reads.
  static RT_DEVICE void find_places(const rt::Task& t, const Args& a, int q0) {
    const int* table = t.template ptr<const int>(a.table);
    int* taps = reinterpret_cast<int*>(t.smem);
    for (int i = t.tid; i < a.taps; i += kThreads) taps[i] = rt::ld_const(table + i);
    const Phase* phases = reinterpret_cast<const Phase*>(table + (a.taps + 3) / 4 * 4);
    const int first = Grid::of(a, Grid(a, q0).position), last = Grid::of(a, Grid(a, q0 + BM).position - 1);
    int* places = taps + a.taps;
    for (int i = t.tid; i < a.count; i += kThreads) {
      int number = i;
      int n = q0 - a.before + take_digit(number, a.pixels);
      const Phase phase = rt::ld_const(phases + number);
      bool ok = n >= first + phase.from && n <= last + phase.to && n >= 0;
      if (!ok) n = 0;
      const int w = take_digit(n, a.grid_columns) * static_cast<int>(a.win.stride_w.d) + phase.column;
      const int h = take_digit(n, a.grid_rows) * static_cast<int>(a.win.stride_h.d) + phase.row;
      ok = ok && n < a.depth && h < a.win.in_h && w < a.win.in_w;
      places[i] = ok ? n * static_cast<int>(a.win.step_d) + h * static_cast<int>(a.win.step_h) +
                           w * static_cast<int>(a.win.step_w)
                     : -1;
    }
  }

  // The products of an rTask, stage after stage of channels.
  class TapProducts {
   public:
    RT_DEVICE TapProducts(const rt::Task& t, const Args& a, const In* x, int channels, int count)
        : t_(t),
          a_(a),
          at_(t.tid),
          stages_(t.stream),
          image_(rt::aligned_shared<T::kAlign>(t.smem + a.first)),
          to_(t.tid / kUnits * kPixel + 16 * (t.tid % kUnits ^ t.tid / kUnits % 8)),
          x_(x + t.tid % kUnits * kUnit),
          channels_(channels - t.tid % kUnits * kUnit),
          count_(count) {}

    // The first turn of the loop has nothing to multiply, and only sends for the first stage. So there is no other code
    // for that.
    RT_DEVICE void run(Acc& acc) {
      const int taps = a_.taps;
      const int* offsets = reinterpret_cast<const int*>(t_.smem);
      RK_UNROLL(1)
      for (int s = -1; s < count_; ++s) {
        if (s >= 0) t_.sync();  // the stage is there, for all threads
        const bool more = s + 1 < count_;
        const char* pixels = stage(s + 2) + kPixel * at_.row;
        RK_UNROLL(1)
        for (int tap = 0; tap < taps; ++tap) {
          if (s >= 0) {
            begin(pixels + kPixel * offsets[tap], acc);
            rt::multiplied_but<1>();
            if (s + tap > 0) stages_.done();
          }
          if (tap == 0 && more) {
            t_.sync();  // all groups have multiplied the stage before, whose place is free now
            send();
          }
          if (s < 0) break;
        }
        if (more) prepare();
      }
      RT_UNROLL
      for (int part = 0; part < kParts; ++part) rt::multiplied(acc[part]);
      stages_.done();
      stages_.end();
    }

   private:
    RT_DEVICE char* stage(int s) const { return image_ + s % 2 * a_.stage; }

    // Begins to bring the next stage of the image: a thread has 16 bytes of every so many pixels, at the same place of
    // each row, since that many is a multiple of eight.
    RT_DEVICE void send() {
      using Copy = Transfer<In, E, kUnit, Pro>;
      constexpr int kStep = kThreads / kUnits, kBatch = 4;
      static_assert(kStep % 8 == 0);
      const int* places = reinterpret_cast<const int*>(t_.smem) + a_.taps;
      const int pixels = a_.count;
      const In* x = x_;
      const Padding<In> padding(a_.padding);
      const bool exist = channels_ > 0;
      char* to = stage(sent_) + to_;
      RK_UNROLL(1)
      for (int i = t_.tid / kUnits; i < pixels; i += kBatch * kStep, to += kBatch * kStep * kPixel) {
        Copy copies[kBatch];
        const In* from[kBatch];
        bool ok[kBatch];
        RT_UNROLL
        for (int b = 0; b < kBatch; ++b) {
          const int at = i + b * kStep, found = at < pixels ? places[at] : -1;
          ok[b] = found >= 0 && exist;
          from[b] = x + (ok[b] ? found : 0);
          copies[b].take(from[b], ok[b]);
        }
        RT_UNROLL
        for (int b = 0; b < kBatch; ++b) {
          if (i + b * kStep < pixels) {
            put_padded(copies[b], reinterpret_cast<E*>(to + b * kStep * kPixel), from[b], ok[b], a_.pro, padding);
          }
        }
      }
      rt::cp_async_commit();
      ++sent_;
      x_ += T::BK, channels_ -= T::BK;
    }

    // Waits for what the thread has sent for, and lets tensor cores read it. They would cut off the bits of float32
    // that tf32 has not; numbers are rounded instead.
    RT_DEVICE void prepare() {
      rt::cp_async_wait<0>();
      if constexpr (std::is_same_v<E, float>) {
        using Four = Pack<float, kUnit>;
        char* to = stage(sent_ - 1) + to_;
        const int pixels = a_.count;
        RK_UNROLL(4)
        for (int i = t_.tid / kUnits; i < pixels; i += kThreads / kUnits, to += kThreads / kUnits * kPixel) {
          Four* four = reinterpret_cast<Four*>(to);
          Four values = *four;
          RT_UNROLL
          for (int e = 0; e < kUnit; ++e) values.v[e] = rk::bit_cast<float>(rt::to_tf32(values.v[e]));
          *four = values;
        }
      }
      rt::operands_written();
    }

    // Begins the products of a tap, whose pixel of the group's first row is given.
    RT_DEVICE void begin(const char* pixel, Acc& acc) {
      const rt::OperandPlace first = rt::operand_in_warp(pixel), b = rt::operand_in_warp(stages_.ahead());
      stages_.next();
      rt::multiply_begin();
      RT_UNROLL
      for (int k = 0; k < kPixel / 32; ++k) {
        RT_UNROLL
        for (int part = 0; part < kParts; ++part) {
          begin_product<T>(first + (kPixel * part * T::BM + 32 * k), b + k * (2 * T::kPitch), true, acc[part]);
        }
      }
      rt::multiply_end();
    }

    const rt::Task& t_;
    const Args& a_;
    typename T::At at_;
    GroupStages<T> stages_;
    char* image_;   // the stages
    int to_;        // the thread's place in a stage
    const In* x_;   // the thread's part of the next stage's channels
    int channels_;  // of the group, from there on
    int count_;
    int sent_ = 0;
  };

  // Stores what positions of the output have. If threads cannot by themselves, some columns after another: positions
  // are neighbours there, and come together when the sums are put down.
  static RT_DEVICE void drain(const rt::Task& t, const Args& a, const Acc& acc, int q0, const TilePlace& place) {
    const typename T::At at(t.tid);
    // The position of the thread's first or second row of a part, or -1.
    const auto position = [&](int part, int second) {
      const Grid row(a, q0 + part * T::BM + at.m + at.g + second * 8);
      return row.exists ? row.position : -1;
    };
    if constexpr (kDrainsAlone<T, Epi>) {
      GroupDrain<T, Epi, kHeldBeside, kParts>::store_parts(t, acc, a.epi, [&](int part) {
        const int rows[2] = {position(part, 0), position(part, 1)};
        return SumPlace<typename Epi::Out>::template of<T>(t, a.out, place, rows[0] < 0 ? place.end1 : rows[0],
                                                           rows[1] < 0 ? place.end1 : rows[1]);
      });
    } else {
      int rows[kParts][2];
      RT_UNROLL
      for (int i = 0; i < 2 * kParts; ++i) {
        const int p = position(i / 2, i % 2);
        rows[i / 2][i % 2] = p < 0 ? -1 : p - place.i1;
      }
      constexpr int kMost = kParts * BN > 128 ? 8 : 16;  // beside the sums of the columns that come later
      using Sum = SumOnTheWay<T, Epi>;
      Sum* sums = reinterpret_cast<Sum*>(t.smem);
      TilePlace columns = place;
      RK_UNROLL(1)
      for (int from = 0; from < BN && columns.i2 < place.end2; from += T::kColumns) {
        t.sync();
        RT_UNROLL
        for (int part = 0; part < kParts; ++part) put_columns<T, true>(at, acc[part], rows[part], from, sums);
        t.sync();
        drain_sums<kThreads, BM, T::kColumns, kRowPitch<T, Sum>, 1, kMost, Epi>(t, sums, a.out, a.epi, columns);
        columns.i2 += T::kColumns;
      }
    }
  }
};

}  // namespace rk
