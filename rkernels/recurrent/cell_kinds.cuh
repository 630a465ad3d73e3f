// What the recurrent cells share.
#pragma once

#include "rt/device.cuh"

namespace rk {

// What the rows of a unit are, in order: RNN, one gate; LSTM, i o f c; GRU with linear_before_reset, z, r,
// the candidate's input half and its hidden half. GRU without it needs r of all units before the
// candidate, hence two rOperators: kGruGates leaves z and r·h, kGruState takes them.
enum CellKind { kRnn = 0, kLstm = 1, kGruLinear = 2, kGruGates = 3, kGruState = 4 };

template <int Kind>
constexpr int kCellRows = Kind == kLstm || Kind == kGruLinear ? 4 : Kind == kGruGates ? 2 : 1;

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

}  // namespace rk
