// What cell.cuh and cell_resident.cuh share.
#pragma once

#include "common/modes.cuh"
#include "rt/device/device.cuh"

namespace rk {

template <int Kind>
constexpr int kCellRows = Kind == kCellLSTM || Kind == kCellGRULinear ? 4
                          : Kind == kCellGRUGates                     ? 2
                                                                      : 1;

// The gate that a row of a unit's weights belongs to, as far as x is concerned: where x holds products with W, it has
// one for each gate. -1 for a row that W has no part in.
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

// What x adds to the rows of unit j. If gates is not 0, x holds products with W as [unit][gate]; otherwise it adds
// zeros.
template <int Kind>
RT_DEVICE void read_projection(const rt::Task& t, const CellMatrix& x, int gates, int b, int j,
                               float (&out)[kCellRows<Kind>]) {
  RT_UNROLL
  for (int r = 0; r < kCellRows<Kind>; ++r) {
    out[r] = gates != 0 && cell_gate<Kind>(r) >= 0 ? x.read(t, b, j * gates + cell_gate<Kind>(r)) : 0.0f;
  }
}

}  // namespace rk
