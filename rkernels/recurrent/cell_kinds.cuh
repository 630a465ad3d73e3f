// What the recurrent cells share.
#pragma once

#include "common/modes.cuh"
#include "rt/device/device.cuh"

namespace rk {

template <int Kind>
constexpr int kCellRows = Kind == kCellLSTM || Kind == kCellGRULinear ? 4
                          : Kind == kCellGRUGates                     ? 2
                                                                      : 1;

// The gate of one of a unit's rows whose product with W an x that is that product holds, -1 for a row that
// has none.
template <int Kind>
RT_DEVICE constexpr int cell_gate(int row) {
  if (Kind == kCellGRUState) return 2;
  return Kind == kCellGRULinear && row == 3 ? -1 : row;
}

// A matrix [batch][unit] with element strides.
struct CellMatrix {
  rt::Ref ref;
  int64_t row, col;

  RT_DEVICE float read(const rt::Task& t, int b, int j) const {
    return t.template ptr<const float>(ref)[b * row + j * col];
  }
  RT_DEVICE void write(const rt::Task& t, int b, int j, float x) const {
    t.template ptr<float>(ref)[b * row + j * col] = x;
  }
};

// What x, [unit][gate], adds to the rows of unit j: zeros unless there are gates.
template <int Kind>
RT_DEVICE void read_projection(const rt::Task& t, const CellMatrix& x, int gates, int b, int j,
                               float (&out)[kCellRows<Kind>]) {
  RT_UNROLL
  for (int r = 0; r < kCellRows<Kind>; ++r) {
    out[r] = gates != 0 && cell_gate<Kind>(r) >= 0 ? x.read(t, b, j * gates + cell_gate<Kind>(r)) : 0.0f;
  }
}

}  // namespace rk
