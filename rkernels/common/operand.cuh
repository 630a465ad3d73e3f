// Operands of epilogues and maps: tensors seen as [i0][i1][i2] through element strides.
#pragma once

#include "common/tiles.cuh"
#include "rt/device/device.cuh"

namespace rk {

// The place of coordinate i along an axis with the given stride, counted from place `from`. Coordinates and strides fit
// 32 bits.
RT_DEVICE int64_t place(int i, int64_t stride, int64_t from = 0) {
  return rt::mad_wide(i, static_cast<int>(stride), from);
}

// The place of an element behind the operand's first.
RT_DEVICE int64_t element(const rt::Operand3& o, int i0, int i1, int i2) {
  return place(i2, o.s2, place(i1, o.s1, place(i0, o.s0)));
}

// The address n strides behind p in global memory. Where n is a constant it takes one instruction.
template <class T>
RT_DEVICE T* ahead(T* p, int n, int stride) {
  return rt::at_place<T>(rt::mad_wide(stride, n * static_cast<int>(sizeof(T)), rt::place_of(p)));
}

// What the elements of T are: those of a pack, or T itself.
template <class T>
struct ElementOf {
  using type = T;
};
template <class T, int N>
struct ElementOf<Pack<T, N>> {
  using type = T;
};

// The address of element (i0, i1, i2) of an operand. What the elements of a row share is computed apart from i1, along
// which tiles go, so that compilers compute it once.
template <class T>
RT_DEVICE const T* place_in(const rt::Task& t, const rt::Operand3& o, int i0, int i1, int i2) {
  using Element = typename ElementOf<T>::type;
  const Element* column = t.template ptr<const Element>(o.ref) + place(i2, o.s2, place(i0, o.s0));
  return reinterpret_cast<const T*>(column + place(i1, o.s1));
}

// Element (i0, i1, i2) of an operand that may have been produced inside the program. If T is a pack, it and its
// neighbours along i2.
template <class T>
RT_DEVICE T operand(const rt::Task& t, const rt::Operand3& o, int i0, int i1, int i2) {
  return *place_in<T>(t, o, i0, i1, i2);
}

// The same of a constant operand, of which a pack may be two loads.
template <class T>
RT_DEVICE T const_operand(const rt::Task& t, const rt::Operand3& o, int i0, int i1, int i2) {
  const T* at = place_in<T>(t, o, i0, i1, i2);
  if constexpr (sizeof(T) > 16) {
    using Half = Pack<uint32_t, 4>;
    static_assert(sizeof(T) == 32);
    const Half* halves = reinterpret_cast<const Half*>(at);
    const Half both[2] = {rt::ld_const(halves), rt::ld_const(halves + 1)};
    T pack;
    memcpy(&pack, both, sizeof pack);
    return pack;
  } else {
    return rt::ld_const(at);
  }
}

}  // namespace rk
