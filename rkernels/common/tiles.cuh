// Iteration spaces cut into rTasks, and strided operands addressed by their coordinates.
#pragma once

#include "common/types.cuh"
#include "rt/device/device.cuh"
#include "rt/device/div.cuh"

namespace rk {

using rt::Div;

// An iteration space with the extents `dims`, cut into `counts` tiles along each dim. `extent` is that of a tile; the
// last tile along a dim may be smaller. Tile number n, in row-major order, is rTask n.
template <int RANK>
struct Tiles {
  int32_t dims[RANK];
  Div extent[RANK];
  Div counts[RANK];

  struct Tile {
    int lo[RANK];  // first coordinates
    int n[RANK];   // extents
    int size;      // product of n
    int span;      // product of the extents of a tile that is not smaller
  };

  RT_DEVICE Tile tile(int rtask) const {
    Tile t;
    t.size = t.span = 1;
    RT_UNROLL
    for (int d = RANK - 1; d >= 0; --d) {
      const int rest = d > 0 ? counts[d].quotient(rtask) : 0;
      const int extent_d = int(extent[d].d);
      t.lo[d] = (rtask - rest * int(counts[d].d)) * extent_d;
      t.n[d] = dims[d] - t.lo[d] < extent_d ? dims[d] - t.lo[d] : extent_d;
      t.size *= t.n[d];
      t.span *= extent_d;
      rtask = rest;
    }
    return t;
  }
};

// The coordinates of element e of a tile, in row-major order of the common extents of all tiles. There are two ways to
// visit the elements of a tile that is smaller than the others. If only its outermost dim of more than one element is
// cut short, its elements are those with e < size. That is so where tiles are chunks of one dim, with whole dims behind
// it. Otherwise count to span, and ask inside().
template <int RANK>
struct Coordinates {
  int at[RANK];

  RT_DEVICE Coordinates(const Tiles<RANK>& tiles, const typename Tiles<RANK>::Tile& tile, int e) {
    RT_UNROLL
    for (int d = RANK - 1; d > 0; --d) {
      const int rest = tiles.extent[d].quotient(e);
      at[d] = tile.lo[d] + e - rest * int(tiles.extent[d].d);
      e = rest;
    }
    at[0] = tile.lo[0] + e;
  }

  RT_DEVICE bool inside(const typename Tiles<RANK>::Tile& tile) const {
    bool in = true;
    RT_UNROLL
    for (int d = 0; d < RANK; ++d) in = in && at[d] < tile.lo[d] + tile.n[d];
    return in;
  }
};

// A view of a buffer: its first element, and strides in elements, which may be negative or 0.
template <int RANK>
struct Strided {
  rt::Ref ref;
  int32_t s[RANK];

  RT_DEVICE int offset(const int (&at)[RANK]) const {
    int o = 0;
    RT_UNROLL
    for (int d = 0; d < RANK; ++d) o += at[d] * s[d];
    return o;
  }
};

// N elements that are loaded and stored in one access.
template <class T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Pack {
  T v[N];
};

// How many elements of type T the widest load of a thread brings.
template <class T>
inline constexpr int kPerLoad = 16 / static_cast<int>(sizeof(T));

// The place of a Pack<T, N>, which compilers compute here.
template <class P, int RANK>
RT_DEVICE P* place_at(const rt::Task& t, const Strided<RANK>& o, const int (&at)[RANK]) {
  using Element = std::remove_reference_t<decltype(P::v[0])>;
  return rt::settled_place(reinterpret_cast<P*>(t.ptr<Element>(o.ref) + o.offset(at)));
}

// The pack at p if ok, otherwise zeros; then p is not read.
template <class P>
RT_DEVICE P load_if(const P* p, bool ok) {
  if constexpr (sizeof(P) == alignof(P)) {
    return rt::load_or_zero(p, ok);
  } else {
    P pack = {};
    if (ok) pack = *p;
    return pack;
  }
}

template <class T, int RANK>
RT_DEVICE T load(const rt::Task& t, const Strided<RANK>& o, const int (&at)[RANK]) {
  return t.ptr<const T>(o.ref)[o.offset(at)];
}

template <class T, int RANK>
RT_DEVICE void store(const rt::Task& t, const Strided<RANK>& o, const int (&at)[RANK], T x) {
  t.ptr<T>(o.ref)[o.offset(at)] = x;
}

template <class T, int N, int RANK>
RT_DEVICE Pack<T, N> load_pack(const rt::Task& t, const Strided<RANK>& o, const int (&at)[RANK]) {
  return *reinterpret_cast<const Pack<T, N>*>(t.ptr<const T>(o.ref) + o.offset(at));
}

template <class T, int N, int RANK>
RT_DEVICE void store_pack(const rt::Task& t, const Strided<RANK>& o, const int (&at)[RANK], const Pack<T, N>& x) {
  *reinterpret_cast<Pack<T, N>*>(t.ptr<T>(o.ref) + o.offset(at)) = x;
}

}  // namespace rk
