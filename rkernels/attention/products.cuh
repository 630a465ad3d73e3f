// The two products of attention on tensor cores, Q·Kᵀ and weights · V, out of stages in shared memory: on float32 as
// tf32, and on 16 bits as they are.
#pragma once

#include "attention/queries.cuh"
#include "common/mma_narrow.cuh"

namespace rk {

// How warps share a tile of BQ queries and a stage of KG·KT keys; see attention_mma.cuh.
template <int BQ_, int DM_, int KG_, int KT_, int WQ_>
struct AttentionShape {
  static constexpr int BQ = BQ_, DM = DM_, KG = KG_, KT = KT_, WQ = WQ_;
  static constexpr int kThreads = BQ / WQ * KG * 32;
  static constexpr int kKeys = KG * KT;                         // of a stage
  static constexpr int MI = WQ / 16, NI = KT / 8, CI = DM / 8;  // fragments of a warp
  using Scores = float[MI][NI][4];                              // of a lane: rows and keys
  using Sums = float[MI][CI][4];                                // of a lane: rows and columns
  static_assert(BQ % WQ == 0 && WQ % 16 == 0 && KT % 8 == 0 && (NI == 1 || NI % 2 == 0) && DM % 32 == 0,
                "warps have whole fragments");

  // Where a lane stands: its warp's first row and first key of a stage, and its place in fragments.
  struct Place {
    int lane, g, q, group, row, key;

    RT_DEVICE explicit Place(int tid) : lane(tid % 32), g(lane / 4), q(lane % 4) {
      const int warp = tid / 32;
      group = rt::settled(warp / (BQ / WQ));
      row = rt::settled(warp % (BQ / WQ) * WQ);
      key = group * KT;
    }
  };
};

// Products of 16-bit floats, 16 deep. Operands stand in shared memory as they come from global memory, and scores are
// scaled behind the product. Weights are rounded to T, and need no exchange between lanes: what the first product
// leaves a lane of two neighbouring fragments is a fragment of the second one.
template <class T, class S, int Products>
struct AttentionProducts {
  static constexpr int LD = S::DM + 8, kPlanes = 1;
  static constexpr bool kScaleScores = true;
  using Place = typename S::Place;
  static_assert(S::NI % 2 == 0, "a fragment of weights has 16 keys");

  // Of the queries that the thread has copied.
  template <class Queries>
  static RT_DEVICE void prepare(int, float, T*) {}

  // x += Q·Kᵀ of the warp's rows and keys.
  static RT_DEVICE void add_scores(const Place& at, const T* sq, const T* sk, int depth, typename S::Scores& x) {
    const T* row_q = sq + (at.row + at.lane % 16) * LD + at.lane / 16 * 8;
    const T* row_k = sk + (at.key + at.lane / 16 * 8 + at.lane % 8) * LD + at.lane / 8 % 2 * 8;
    RK_UNROLL(2)
    for (int d = 0; d < depth; d += 16) {
      uint32_t k[S::NI][2];
      RT_UNROLL
      for (int j = 0; j < S::NI; j += 2) {
        uint32_t r[4];
        rt::load_fragments(r, row_k + d + 8 * j * LD);
        k[j][0] = r[0], k[j][1] = r[1], k[j + 1][0] = r[2], k[j + 1][1] = r[3];
      }
      RT_UNROLL
      for (int i = 0; i < S::MI; ++i) {
        uint32_t q[4];
        rt::load_fragments(q, row_q + d + 16 * i * LD);
        RT_UNROLL
        for (int j = 0; j < S::NI; ++j) HalfProducts<T>::multiply(x[i][j], q, k[j]);
      }
    }
  }

  // out += weights · V of the stage.
  static RT_DEVICE void accumulate(const Place& at, const T* sv, const typename S::Scores& p, typename S::Sums& out) {
    const T* v = sv + (at.key + at.lane % 16) * LD + at.lane / 16 * 8;
    RT_UNROLL
    for (int j = 0; j < S::NI; j += 2) {
      uint32_t w[S::MI][4];
      RT_UNROLL
      for (int i = 0; i < S::MI; ++i) {
        RT_UNROLL
        for (int e = 0; e < 4; ++e) {
          const float* two = p[i][j + e / 2] + e % 2 * 2;
          w[i][e] = narrow_pair<T>(two[0], two[1]);
        }
      }
      RT_UNROLL
      for (int c = 0; c < S::CI; c += 2) {
        uint32_t r[4];
        rt::load_fragments_across(r, v + 8 * c);
        const uint32_t b[2][2] = {{r[0], r[1]}, {r[2], r[3]}};
        RT_UNROLL
        for (int i = 0; i < S::MI; ++i) {
          HalfProducts<T>::multiply(out[i][c], w[i], b[0]);
          HalfProducts<T>::multiply(out[i][c + 1], w[i], b[1]);
        }
      }
      v += 16 * LD;
    }
  }
};

// Products of float32, as one tf32 product or three. The queries are scaled and rounded or split once, in shared
// memory.
//
// The first product leaves a lane the columns 2q and 2q + 1 of a fragment, the second one wants depths q and q + 4 from
// it. The sum over keys has no order, so the lane's two columns are taken as these depths, and the rows of V are read
// in the same order.
template <class S, int Products>
struct AttentionProducts<float, S, Products> {
  static constexpr int LD = S::DM + 4, kPlanes = Products == 3 ? 2 : 1;
  static constexpr bool kScaleScores = false;
  using Place = typename S::Place;

  // Scales the queries that the thread has copied.
  template <class Queries>
  static RT_DEVICE void prepare(int tid, float factor, float* sq) {
    Queries::template split<Products>(tid, factor, sq);
  }

  // x += Q·Kᵀ of the warp's rows and keys, two fragments deep at a time.
  static RT_DEVICE void add_scores(const Place& at, const float* sq, const float* sk, int depth,
                                   typename S::Scores& x) {
    const float* row_q = sq + (at.row + at.lane % 16) * LD + at.lane / 16 * 4;
    // Of one fragment of keys both depths come in one load, of several one depth of two fragments.
    const float* row_k = S::NI == 1 ? sk + (at.key + at.lane % 8) * LD + at.lane / 8 * 4
                                    : sk + (at.key + at.lane / 16 * 8 + at.lane % 8) * LD + at.lane / 8 % 2 * 4;
    RK_UNROLL(1)
    for (int d = 0; d < depth; d += 16) {
      Parts<Products, 2> k[2][S::NI];
      const auto set = [&](Parts<Products, 2>& p, const uint32_t* r) {
        p.set(0, rk::bit_cast<float>(r[0])), p.set(1, rk::bit_cast<float>(r[1]));
      };
      RT_UNROLL
      for (int u = 0; u < (S::NI == 1 ? 1 : 2); ++u) {
        RT_UNROLL
        for (int j = 0; j < S::NI; j += 2) {
          uint32_t r[4];
          rt::load_fragments(r, row_k + d + 8 * u + 8 * j * LD);
          set(k[u][j], r);
          if constexpr (S::NI == 1) {
            set(k[1][j], r + 2);
          } else {
            set(k[u][j + 1], r + 2);
          }
        }
      }
      RT_UNROLL
      for (int u = 0; u < 2; ++u) {
        RT_UNROLL
        for (int i = 0; i < S::MI; ++i) {
          Parts<Products, 4> q;
          rt::load_fragments(q.hi, row_q + d + 8 * u + 16 * i * LD);
          if constexpr (Products == 3) rt::load_fragments(q.lo, row_q + d + 8 * u + (S::BQ + 16 * i) * LD);
          RT_UNROLL
          for (int j = 0; j < S::NI; ++j) multiply_parts(q, k[u][j], x[i][j]);
        }
      }
    }
  }

  // out += weights · V of the stage.
  static RT_DEVICE void accumulate(const Place& at, const float* sv, const typename S::Scores& p,
                                   typename S::Sums& out) {
    const float* v = sv + (at.key + 2 * at.q) * LD + at.g;
    RT_UNROLL
    for (int j = 0; j < S::NI; ++j) {
      Parts<Products, 4> w[S::MI];
      RT_UNROLL
      for (int i = 0; i < S::MI; ++i) {
        w[i].set(0, p[i][j][0]), w[i].set(1, p[i][j][2]), w[i].set(2, p[i][j][1]), w[i].set(3, p[i][j][3]);
      }
      RT_UNROLL
      for (int c = 0; c < S::CI; ++c) {
        Parts<Products, 2> b;
        b.set(0, v[8 * c]), b.set(1, v[8 * c + LD]);
        RT_UNROLL
        for (int i = 0; i < S::MI; ++i) multiply_parts(w[i], b, out[i][c]);
      }
      v += 8 * LD;
    }
  }
};

}  // namespace rk
