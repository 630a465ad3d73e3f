// Depthwise convolution of channels-last images, as conv_depthwise.cuh, with what an rTask reads in shared memory: its
// patch of the image, and its weights as float32. All of that comes at once, so that the rTask waits for memory once. A
// thread computes four channels of RW positions in each of RH rows below each other, whose windows overlap. A row of
// the patch that it has loaded into registers serves all of them:
//
//	row of the patch      0 1 2 3 4 5 6 7        a filter of 7 rows, RH = 2, stride 1
//	filter row, sum 0     0 1 2 3 4 5 6
//	filter row, sum 1       0 1 2 3 4 5 6
//
// Lanes beside each other read positions that are RW·STRIDE apart. Where that is an even number these fall on the same
// banks, unless a place of the patch is left empty behind each so many positions.
#pragma once

#include "common/loaders.cuh"
#include "common/tile.cuh"
#include "conv/gather.cuh"
#include "rt/device/device.cuh"

namespace rk {

// FW is the filter's width and STRIDE that of positions in either direction. An rTask has QUADS times four channels,
// and ROOM bytes of shared memory. One copy brings LOAD channels of the image. X and W are the element types of input
// and weights; sums are float32.
template <int FW, int STRIDE, int RW, int RH, int QUADS, int LOAD, int ROOM, class X, class W, class Epi, class Pro>
struct ConvDepthwisePatch {
  static constexpr int kThreads = 256;
  static constexpr int kShared = ROOM;
  static constexpr bool kEarly = true;
  static constexpr int V = 4;                           // channels of a thread
  static constexpr int kSpan = (RW - 1) * STRIDE + FW;  // positions of the patch that a row of sums meets
  static constexpr int kStep = RW * STRIDE;             // positions from the windows of a thread to those of the next
  static constexpr bool kGaps = kStep % 2 == 0 && QUADS * V * sizeof(X) < 128;
  using Quad = Pack<float, V>;
  using Stored = Pack<X, V>;

  struct Args {
    rt::Ref x, w;      // w is packed as [tap][channel]
    rt::Operand3 out;  // [image][position][channel]
    Div segments;      // runs of RW positions in a row of the output
    int32_t groups;    // of RH rows, of an rTask
    int32_t channels;  // a multiple of four
    Div tiles_r, tiles_q;
    int32_t patch_rows;
    Div patch_columns;
    int32_t filter_h;
    int32_t patch;  // where it begins in shared memory, behind the weights
    Window win;
    typename Epi::Args epi;
    typename Pro::Args pro;
  };

  // rTasks count (image, tile of rows, tile of channels), the last one fastest.
  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    compute_tile(t, a, Tile(a, rtask), [] {});
  }

 protected:
  // What an rTask has: the image, the first row of its output, and the first channel.
  struct Tile {
    int image, row, channel;
    RT_DEVICE Tile(const Args& a, int rtask) {
      image = rtask;
      channel = take_digit(image, a.tiles_q) * QUADS * V;
      row = take_digit(image, a.tiles_r) * a.groups * RH;
    }
  };

  // Computes a tile, and returns the sum of what the thread has stored, of the thread's four channels. Before it waits
  // for the image it asks for its weights, and with bring_others for whatever else is constant.
  template <class Bring>
  static RT_DEVICE Quad compute_tile(const rt::Task& t, const Args& a, const Tile& tile, const Bring& bring_others) {
    Quad* weights = reinterpret_cast<Quad*>(t.smem);
    Stored* patch = reinterpret_cast<Stored*>(t.smem + a.patch);
    bring_weights(t, a, tile.channel, weights);
    bring_others();
    const int quad = t.tid % QUADS, channel = tile.channel + quad * V;
    int group = t.tid / QUADS;
    const int segment = take_digit(group, a.segments);
    const bool mine = group < a.groups && channel < a.channels;
    const auto shared = operands_of(t, a, tile.image, mine ? channel : 0);
    const Copies copies(a, tile.channel);
    const X* x = rt::settled_place(t.template ptr<const X>(a.x) + place(tile.image, a.win.step_n, tile.channel));
    const int h0 = tile.row * STRIDE - a.win.pad_h, rows = a.patch_rows;
    bring_rows<false>(t, copies, a.pro, x, h0, rows, patch, Ring{}, [&] { t.wait_for_inputs(); });
    rt::cp_async_commit();
    rt::cp_async_wait<0>();
    t.sync();
    if (!mine) return {};
    Quad sum[RH][RW] = {};
    const int pitch = places(a) * QUADS;
    add_rows<false>(a, weights + quad, patch + quad + group * RH * STRIDE * pitch + segment * place_of(kStep) * QUADS,
                    pitch, Ring{}, sum);
    return store_sums(t, a, shared, tile.image, tile.row + group * RH, segment * RW, channel, sum);
  }

  // Where rows lie one behind the other, and the last one is followed by the first one again: the place that a walk
  // begins at, and how many there are, both in the walk's own units.
  struct Ring {
    int begin = 0, size = 0;
  };

  // The place of a position in a row of the patch, and how many places a row has.
  static RT_DEVICE constexpr int place_of(int column) { return kGaps ? column + column / kStep : column; }
  static RT_DEVICE int places(const Args& a) { return place_of(static_cast<int>(a.patch_columns.d) - 1) + 1; }

  static RT_DEVICE void bring_weights(const rt::Task& t, const Args& a, int c0, Quad* weights) {
    const W* from = t.template ptr<const W>(a.w) + c0;
    const int count = a.filter_h * FW * QUADS;
    RK_UNROLL(2)
    for (int e = t.tid; e < count; e += kThreads) {
      const int channel = e % QUADS * V;
      if (c0 + channel >= a.channels) continue;
      const W* w = from + place(e / QUADS, a.channels, channel);
      if constexpr (std::is_same_v<W, float>) {
        rt::cp_async16(weights + e, w);
      } else {
        weights[e] = floats(rt::ld_const(reinterpret_cast<const Pack<W, V>*>(w)));
      }
    }
  }

  // What copies need of the arguments, in registers, for channels from c0 on: with each copy the compiler takes the
  // arguments for changed, and would read them again.
  struct Copies {
    Div columns;
    int in_h, in_w, step_h, step_w, pad_w, channels, pitch;
    RT_DEVICE Copies(const Args& a, int c0)
        : columns(a.patch_columns),
          in_h(a.win.in_h),
          in_w(a.win.in_w),
          step_h(static_cast<int>(a.win.step_h)),
          step_w(static_cast<int>(a.win.step_w)),
          pad_w(a.win.pad_w),
          channels(a.channels - c0),
          pitch(places(a) * QUADS * V) {}
  };

  // Copies so many rows of the image from h0 on to patch, with Wraps to rows of a ring there. What is outside of the
  // image is zero, and so are the channels behind the last one. wait() is called when the places of the first ones are
  // known.
  template <bool Wraps, class Wait>
  static RT_DEVICE void bring_rows(const rt::Task& t, const Copies& c, const typename Pro::Args& pro, const X* image,
                                   int h0, int rows, Stored* patch, Ring ring, const Wait& wait) {
    using Copy = Transfer<X, X, LOAD, Pro>;
    // Copies whose places are found together, since that is a chain of operations. kLoads is those of a pixel.
    constexpr int kBatch = Copy::kAsync ? 4 : 16 / LOAD, kLoads = QUADS * V / LOAD;
    const int count = rows * static_cast<int>(c.columns.d) * kLoads;
    bool first = true;
    RK_UNROLL(1)
    for (int e = t.tid; first || e < count; e += kBatch * kThreads, first = false) {
      Copy copies[kBatch];
      const X* from[kBatch];
      int to[kBatch];
      bool ok[kBatch];
      RT_UNROLL
      for (int b = 0; b < kBatch; ++b) {
        int h = (e + b * kThreads) / kLoads;
        const int channel = (e + b * kThreads) % kLoads * LOAD, column = take_digit(h, c.columns), w = column - c.pad_w;
        int row = h + ring.begin;
        if (Wraps && row >= ring.size) row -= ring.size;
        to[b] = row * c.pitch + place_of(column) * QUADS * V + channel;
        h += h0;
        ok[b] = static_cast<unsigned>(h) < static_cast<unsigned>(c.in_h) &
                static_cast<unsigned>(w) < static_cast<unsigned>(c.in_w) & channel < c.channels;
        from[b] = rt::settled_place(image + place(h, c.step_h, place(w, c.step_w, channel)));
      }
      if (first) wait();
      RT_UNROLL
      for (int b = 0; b < kBatch; ++b) copies[b].take(from[b], ok[b] && e + b * kThreads < count);
      RT_UNROLL
      for (int b = 0; b < kBatch; ++b) {
        if (e + b * kThreads >= count) break;
        copies[b].put(reinterpret_cast<X*>(patch) + to[b], from[b], ok[b], pro);
      }
    }
  }

  // A quad of the patch comes in one load, which nvcc would not make of elements of 16 bits.
  static RT_DEVICE Quad quad_at(const Stored* from) {
    using Words = Pack<uint32_t, sizeof(Stored) / 4>;
    return floats(bit_cast<Stored>(*reinterpret_cast<const Words*>(from)));
  }

  template <class S>
  static RT_DEVICE Quad floats(const Pack<S, V>& stored) {
    Quad x;
    RT_UNROLL
    for (int i = 0; i < V; ++i) x.v[i] = float(stored.v[i]);
    return x;
  }

  // Adds up the windows whose first elements are those at from, in rows of so many quads. With Wraps these are rows of
  // a ring, from ring.begin on.
  template <bool Wraps>
  static RT_DEVICE void add_rows(const Args& a, const Quad* weights, const Stored* from, int pitch, Ring ring,
                                 Quad (&sum)[RH][RW]) {
    RK_UNROLL(1)
    for (int h = 0; h < a.filter_h + (RH - 1) * STRIDE; ++h) {
      Quad xs[kSpan];
      RT_UNROLL
      for (int i = 0; i < kSpan; ++i) xs[i] = quad_at(from + place_of(i) * QUADS);
      RT_UNROLL
      for (int r = 0; r < RH; ++r) {
        const int fh = h - r * STRIDE;
        if (RH == 1 || static_cast<unsigned>(fh) < static_cast<unsigned>(a.filter_h)) {
          add_row(weights + fh * FW * QUADS, xs, sum[r]);
        }
      }
      from += pitch;
      if constexpr (Wraps) {
        if (++ring.begin == ring.size) from -= ring.size * pitch;
      }
    }
  }

  // Adds what a row of the filter makes of the positions xs.
  static RT_DEVICE void add_row(const Quad* weights, const Quad (&xs)[kSpan], Quad (&sum)[RW]) {
    RT_UNROLL
    for (int f = 0; f < FW; ++f) {
      const Quad w = weights[f * QUADS];
      RT_UNROLL
      for (int r = 0; r < RW; ++r) {
        RT_UNROLL
        for (int i = 0; i < V; ++i) sum[r].v[i] += xs[r * STRIDE + f].v[i] * w.v[i];
      }
    }
  }

  // Stores what the epilogue makes of sums, and returns the sum of that. `shared` are operands_of the channel.
  template <class Shared>
  static RT_DEVICE Quad store_sums(const rt::Task& t, const Args& a, const Shared& shared, int image, int row,
                                   int column, int channel, const Quad (&sum)[RH][RW]) {
    using Out = typename Epi::Out;
    const int width = static_cast<int>(a.win.out_w.d), left = width - column, step = static_cast<int>(a.out.s1);
    int p = row * width + column;
    // A number, so that the compiler sees at every store that it goes to global memory and changes no argument.
    int64_t line = rt::place_of(t.template ptr<Out>(a.out.ref) + element(a.out, image, p, channel));
    Quad total = {};
    RT_UNROLL
    for (int h = 0; h < RH; ++h) {
      if (row + h >= static_cast<int>(a.win.out_h.d)) break;
      int64_t to = line;
      RT_UNROLL
      for (int r = 0; r < RW; ++r) {
        if (r < left) store_quad(t, a, shared, sum[h][r], image, p + r, channel, to, total);
        to = rt::mad_wide(step, static_cast<int>(sizeof(Out)), to);
      }
      p += width;
      line = rt::mad_wide(step * width, static_cast<int>(sizeof(Out)), line);
    }
    return total;
  }

  // The operands of the epilogue that all positions share, if it computes four channels at once.
  static RT_DEVICE auto operands_of(const rt::Task& t, const Args& a, int image, int channel) {
    if constexpr (Epi::kPack == V) {
      return Epi::load_column(t, a.epi, image, 0, channel);
    } else {
      return 0;
    }
  }

  template <class Shared>
  static RT_DEVICE void store_quad(const rt::Task& t, const Args& a, const Shared& shared, const Quad& sum, int image,
                                   int p, int channel, int64_t to, Quad& total) {
    if constexpr (Epi::kPack == V) {
      using Out = typename Epi::Out;
      typename Epi::In in[V];
      RT_UNROLL
      for (int i = 0; i < V; ++i) in[i] = static_cast<typename Epi::In>(sum.v[i]);
      const auto own = Epi::load_row(t, a.epi, image, p, channel);
      const Pack<Out, V> out = Epi::apply_pack(a.epi, shared, own, in);
      *rt::at_place<Pack<Out, V>>(to) = out;
      RT_UNROLL
      for (int i = 0; i < V; ++i) total.v[i] += float(out.v[i]);
    } else {
      RT_UNROLL
      for (int i = 0; i < V; ++i) {
        total.v[i] += float(store<Epi>(t, a.out, a.epi, sum.v[i], image, p, channel + i));
      }
    }
  }
};

}  // namespace rk
