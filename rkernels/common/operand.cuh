// Operands of epilogues and maps: tensors seen as [i0][i1][i2] through element strides.
#pragma once

#include "rt/device.cuh"

namespace rk {

// The element's place behind the operand's first. Coordinates and strides fit 32 bits (boxes rely on
// that too), so each product is one wide multiplication.
RT_DEVICE int64_t element(const rt::Operand3& o, int i0, int i1, int i2) {
  return static_cast<int64_t>(i0) * static_cast<int32_t>(o.s0) + static_cast<int64_t>(i1) * static_cast<int32_t>(o.s1) +
         static_cast<int64_t>(i2) * static_cast<int32_t>(o.s2);
}

// Element (i0, i1, i2) of an operand that may have been produced inside the program.
template <class T>
RT_DEVICE T operand(const rt::Task& t, const rt::Operand3& o, int i0, int i1, int i2) {
  return t.template ptr<const T>(o.ref)[element(o, i0, i1, i2)];
}

// Element (i0, i1, i2) of a constant operand.
template <class T>
RT_DEVICE T const_operand(const rt::Task& t, const rt::Operand3& o, int i0, int i1, int i2) {
  return rt::ld_const(t.template ptr<const T>(o.ref) + element(o, i0, i1, i2));
}

}  // namespace rk
