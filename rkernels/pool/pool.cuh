// MaxPool, AveragePool, and the sums of LpPool, over two spatial axes without dilation, or over three with it; missing
// axes in front have extent 1. A thread computes the outputs of V channels at a time. Elements that the windows of
// neighbouring outputs share come from the cache.
#pragma once

#include "common/math.cuh"
#include "common/operand.cuh"
#include "common/tiles.cuh"
#include "rt/device/device.cuh"

namespace rk {

// Neighbouring threads compute neighbours along the width or, where LAST is set, channels: whichever lie beside each
// other. V is more than 1 only there; then the number of channels is a multiple of it, the V channels of an output lie
// beside each other too, and the addresses of both are aligned for loads and stores of all V.
template <bool MAX, bool INDICES, bool LAST, int V, int AXES, class T, class Pro, class Epi>
struct Pool {
  struct Axis {
    int32_t in, kernel, stride;
    Div dilation;        // of two axes 1, and not read
    int32_t before;      // padding
    int32_t limit;       // the first place behind input and padding, counted from the input's beginning
    int32_t index_step;  // by how much one place further on changes an element of the output Indices
  };
  struct Args {
    Tiles<AXES + 2> tiles;  // of the output [N][C]([D])[H][W] or, where LAST is set, [N]([D])[H][W][C/V]
    Strided<AXES + 2> src;  // [N][C]([D])[H][W]
    Axis axes[AXES];
    int32_t divisor;  // what a sum is divided by: 0 elements of the window, 1 those in the padding too, 2 nothing
    Strided<3> dst;   // [N][C][D·H·W]
    typename Pro::Args pro;
    typename Epi::Args epi;
    Strided<3> indices;
    int64_t plane;  // elements of the input for each batch and channel
  };
  using Element = decltype(Pro::apply(std::declval<const typename Pro::Args&>(), std::declval<T>()));
  using C = Calc<Element>;
  static_assert(AXES == 2 || AXES == 3);
  static constexpr int kFirst = LAST ? 1 : 2, kChannels = LAST ? AXES + 1 : 1;  // dims of tiles: the first axis's
  static constexpr int kThreads = 256;
  static constexpr int kShared = 0;
  static constexpr bool kEarly = true;
  // Rows of a window, and elements of each, that are loaded at a time: all of a window of 3×3. Where indices are
  // wanted, elements are visited in the order of the rows.
  static constexpr int kRows = INDICES ? 1 : 3, kAcross = 3;

  // Maxima of bytes are found four at a time, in words.
  static constexpr bool kBytes =
      MAX && !INDICES && Pro::kIdentity && V % 4 == 0 && sizeof(T) == 1 && !is_float<Element>;

  // The result of the elements of a window that have been visited so far.
  struct Seen {
    C value;          // extreme, or sum
    int count = 0;    // elements, if there are indices
    int64_t at = -1;  // index of the extreme
  };

  RT_DEVICE static C least() {
    if constexpr (is_float<Element>)
      return C(-fn::inf_f());
    else
      return C(kLowest<Element>);
  }

  RT_DEVICE static void see(Seen& s, C x, int64_t at) {
    if constexpr (INDICES) {
      // Of equal elements the first one stays, and so does the first NaN.
      if (s.count == 0 || x > s.value || (!(x == x) && s.value == s.value)) s.value = x, s.at = at;
      ++s.count;
    } else if constexpr (MAX && std::is_same_v<C, float>) {
      s.value = rt::larger(x, s.value);
    } else if constexpr (MAX) {
      if (x > s.value || !(x == x)) s.value = x;
    } else {
      s.value += x;
    }
  }

  // The same of V channels.
  struct Each {
    Seen seen[V];
    RT_DEVICE Each() {
      RT_UNROLL
      for (int v = 0; v < V; ++v) seen[v].value = MAX ? least() : C(0);
    }
    RT_DEVICE void see_pack(const Args& a, const Pack<T, V>& pack, int64_t at) {
      RT_UNROLL
      for (int v = 0; v < V; ++v) see(seen[v], C(Pro::apply(a.pro, pack.v[v])), at);
    }
    RT_DEVICE C value(int v) const { return seen[v].value; }
    RT_DEVICE int64_t at() const { return seen[0].at; }
  };
  // The maxima of V bytes as pairs of 16 bits: of those at even places the lower halves, of the others the upper ones,
  // have the byte. Bytes with a sign are in the order of those without one when their first bit is changed.
  struct Bytes {
    using Words = Pack<uint32_t, (V + 3) / 4>;
    static constexpr uint32_t kFlip = std::is_signed_v<T> ? 0x80808080u : 0;
    uint32_t even[V / 4 + 1] = {}, odd[V / 4 + 1] = {};
    RT_DEVICE void see_pack(const Args&, const Pack<T, V>& pack, int64_t) {
      const Words words = bit_cast<Words>(pack);
      RT_UNROLL
      for (int i = 0; i < V / 4; ++i) {
        even[i] = rt::larger_pairs(even[i], (words.v[i] ^ kFlip) & 0x00ff00ffu);
        odd[i] = rt::larger_pairs(odd[i], (words.v[i] ^ kFlip) & 0xff00ff00u);
      }
    }
    RT_DEVICE C value(int v) const { return C(static_cast<T>(((even[v / 4] | odd[v / 4]) ^ kFlip) >> 8 * (v % 4))); }
    RT_DEVICE int64_t at() const { return -1; }
  };
  using Visited = std::conditional_t<kBytes, Bytes, Each>;

  // The places of a window along an axis that lie in the input: begin + k·dilation for k in [from, to).
  struct Range {
    int begin, from, to;
  };

  RT_DEVICE static int dilation(const Axis& x) { return AXES == 2 ? 1 : static_cast<int>(x.dilation.d); }

  // How many steps of the dilation it takes to cover n places, but no more than the kernel has.
  RT_DEVICE static int steps(const Axis& x, int n) {
    int k = n <= 0 ? 0 : n;
    if (AXES > 2 && n > 0) k = x.dilation.quotient(n + dilation(x) - 1);
    return k < x.kernel ? k : x.kernel;
  }

  RT_DEVICE static Range range(const Axis& x, int out) {
    const int begin = out * x.stride - x.before;
    return {rt::settled(begin), rt::settled(steps(x, -begin)), rt::settled(steps(x, x.in - begin))};
  }

  // How many places of a window along an axis lie in the input or its padding.
  RT_DEVICE static int padded(const Axis& x, int out) { return steps(x, x.limit - (out * x.stride - x.before)); }

  RT_DEVICE static int length(const Range& r) { return r.to > r.from ? r.to - r.from : 0; }

  // How far the places of windows are apart along each axis, in elements of the input.
  struct Steps {
    int along[AXES];
    RT_DEVICE explicit Steps(const Args& a) {
      RT_UNROLL
      for (int d = 0; d < AXES; ++d) along[d] = rt::settled(dilation(a.axes[d]) * a.src.s[2 + d]);
    }
  };

  // Where an output's window is.
  struct Window {
    Range along[AXES];
    const T* first;  // place 0 of all axes, which need not exist
    int n = 1;       // elements in the input
    RT_DEVICE Window(const rt::Task& t, const Args& a, const int (&at)[AXES + 2]) {
      int corner = 0;
      RT_UNROLL
      for (int d = 0; d < AXES; ++d) {
        along[d] = range(a.axes[d], at[2 + d]);
        corner += along[d].begin * a.src.s[2 + d];
        n *= length(along[d]);
      }
      first = rt::settled_place(t.ptr<const T>(a.src.ref) + at[0] * a.src.s[0] + at[1] * a.src.s[1] + corner);
    }
  };

  RT_DEVICE static void visit(const Args& a, const Steps& steps, const Window& w, Visited& seen) {
    if constexpr (AXES == 2) {
      visit_plane(a, steps, w, w.first, 0, seen);
    } else {
      RK_NO_UNROLL
      for (int i = w.along[0].from; i < w.along[0].to; ++i) {
        visit_plane(a, steps, w, w.first + i * steps.along[0], index(a, w, 0, i), seen);
      }
    }
  }

  // What place `step` of a window along an axis adds to the index of an element.
  RT_DEVICE static int64_t index(const Args& a, const Window& w, int axis, int step) {
    if (!INDICES) return 0;
    return int64_t(w.along[axis].begin + step * dilation(a.axes[axis])) * a.axes[axis].index_step;
  }

  // Visits the elements along the last two axes, of which `first` is the window's place 0.
  RT_DEVICE static void visit_plane(const Args& a, const Steps& steps, const Window& w, const T* first, int64_t from,
                                    Visited& seen) {
    const Range &y = w.along[AXES - 2], &z = w.along[AXES - 1];
    RK_NO_UNROLL
    for (int j = y.from; j < y.to; j += kRows) {
      RK_NO_UNROLL
      for (int k = z.from; k < z.to; k += kAcross) {
        const T* src = first + (j * steps.along[AXES - 2] + k * steps.along[AXES - 1]);
        const int64_t at = from + index(a, w, AXES - 2, j) + index(a, w, AXES - 1, k);
        see_block(a, steps, src, y.to - j, z.to - k, at, seen);
      }
    }
  }

  // Visits kRows×kAcross elements of a window from src on, as far as there are so many rows and so many across. All are
  // asked for before the first of them is used, so that a small window waits once for the cache and not once for each
  // of its elements.
  RT_DEVICE static void see_block(const Args& a, const Steps& steps, const T* src, int rows, int across, int64_t index,
                                  Visited& seen) {
    Pack<T, V> pack[kRows][kAcross];
    RT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      RT_UNROLL
      for (int c = 0; c < kAcross; ++c) {
        if (r >= rows || c >= across) continue;
        const T* at = src + (r * steps.along[AXES - 2] + c * steps.along[AXES - 1]);
        pack[r][c] = *reinterpret_cast<const Pack<T, V>*>(at);
      }
    }
    RT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      RT_UNROLL
      for (int c = 0; c < kAcross; ++c) {
        if (r >= rows || c >= across) continue;
        seen.see_pack(a, pack[r][c], index);
        if (INDICES) index += int64_t(dilation(a.axes[AXES - 1])) * a.axes[AXES - 1].index_step;
      }
    }
  }

  // x / d, rounded as a division rounds it, by the reciprocal of d (Markstein's correction of x · 1/d). V divisions
  // would be a quarter of the kernel's code. What is rounded to 16 bits behind it needs no correction.
  RT_DEVICE static C quotient(C x, C d, C reciprocal) {
    if constexpr (sizeof(typename Epi::In) == 2) {
      return x * reciprocal;
    } else if constexpr (std::is_same_v<C, float>) {
      const float near = x * reciprocal, rest = fmaf(-near, d, x);
      return rest == rest ? fmaf(rest, reciprocal, near) : near;  // an infinite x leaves no rest
    } else {
      return x / d;
    }
  }

  // Stores the results of V channels, of which the windows' n elements in the input have been seen.
  RT_DEVICE static void put(const rt::Task& t, const Args& a, const int (&at)[AXES + 2], int place, int divisor, int n,
                            const Visited& seen) {
    using Out = typename Epi::Out;
    const int cube[3] = {at[0], at[1], place};
    const C reciprocal = MAX ? C(1) : C(1) / C(divisor);
    Pack<Out, V> out;
    RT_UNROLL
    for (int v = 0; v < V; ++v) {
      C result = seen.value(v);
      if constexpr (!MAX) result = quotient(result, C(divisor), reciprocal);
      out.v[v] = Epi::apply(t, a.epi, fn::Cast<typename Epi::In>(result), at[0], at[1] + v, place);
    }
    store_pack<Out, V>(t, a.dst, cube, out);
    if constexpr (INDICES) {
      const int64_t base = (int64_t(at[0]) * a.tiles.dims[kChannels] + at[1]) * a.plane;
      store<int64_t>(t, a.indices, cube, n == 0 ? 0 : base + seen.at());
    }
  }

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const auto tile = a.tiles.tile(rtask);
    const Steps steps(a);
    bool waits = true;
    RK_NO_UNROLL
    for (int e = t.tid; waits || e < tile.size; e += kThreads, waits = false) {
      const Coordinates<AXES + 2> c(a.tiles, tile, e);
      int at[AXES + 2] = {c.at[0], c.at[kChannels] * V};
      int place = 0, all = 1;  // of the output among those of its channel, and of the places of the window
      RT_UNROLL
      for (int d = 0; d < AXES; ++d) {
        at[2 + d] = c.at[kFirst + d];
        place = place * a.tiles.dims[kFirst + d] + at[2 + d];
        if (a.divisor == 1) all *= padded(a.axes[d], at[2 + d]);
      }
      place = rt::settled(place);
      const Window w(t, a, at);
      int divisor = a.divisor == 1 ? all : a.divisor == 0 ? w.n : 1;
      divisor = rt::settled(divisor);
      if (waits) t.wait_for_inputs();
      if (e >= tile.size) break;
      Visited seen;
      visit(a, steps, w, seen);
      put(t, a, at, place, divisor, w.n, seen);
    }
  }
};

}  // namespace rk
