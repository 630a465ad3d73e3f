// Operands of epilogues and maps: tensors seen as [i0][i1][i2] through element strides.
#pragma once

#include "rt/device.cuh"

namespace rk {

// Element (i0, i1, i2) of an operand that may have been produced inside the program.
template <class T>
RT_DEVICE T operand(const rt::Task& t, const rt::Operand3& o, int i0, int i1, int i2) {
  return t.template ptr<const T>(o.ref)[i0 * o.s0 + i1 * o.s1 + i2 * o.s2];
}

// Element (i0, i1, i2) of a constant operand.
template <class T>
RT_DEVICE T const_operand(const rt::Task& t, const rt::Operand3& o, int i0, int i1, int i2) {
  return rt::ld_const(t.template ptr<const T>(o.ref) + i0 * o.s0 + i1 * o.s1 + i2 * o.s2);
}

}  // namespace rk
