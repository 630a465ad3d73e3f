// Iteration spaces cut into rTasks, and strided operands addressed by their coordinates.
#pragma once

#include "common/types.cuh"
#include "rt/device/device.cuh"

namespace rk {

// Division by a number known before the launch: for n < 2^31 the quotient is a high product and a shift.
struct Div {
  uint32_t d, mul, shift;

  RT_DEVICE int quotient(int n) const {
    const uint32_t high = uint32_t((uint64_t(uint32_t(n)) * mul) >> 32);
    return int((high + uint32_t(n)) >> shift);
  }
};

// An iteration space of extents dims, cut into counts tiles along each dim; extent is a tile's, the last
// one along a dim may be smaller. rTasks are the tiles in row-major order.
template <int RANK>
struct Tiles {
  int32_t dims[RANK];
  Div extent[RANK];
  Div counts[RANK];

  struct Tile {
    int lo[RANK];  // first coordinates
    int n[RANK];   // extents
    int size;      // product of n
    int span;      // product of the extents
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

// The coordinates of element e of a tile in row-major order of the tiles' common extents. In a tile that
// is smaller than others these are right for e < size when only its outermost dim of more than one
// element is cut short, which is so for tiles that are chunks of one dim with whole dims behind it;
// others count to span and ask inside.
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

// A view: its first element and element strides. Negative strides and 0 are legal.
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

// N elements that move as one.
template <class T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Pack {
  T v[N];
};

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
