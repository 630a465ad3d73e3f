// out[b][q] = softmax(scale·Q[b][q]·Kᵀ[b] + mask[b][q])·V[b] on tensor cores, for so few keys that the registers of a
// block hold all of K and V at once. An rTask asks for everything when its inputs are there, and waits for memory once.
//
// Nothing is staged: what a lane loads, runs of 16 bytes, are words of its fragments. Products do not care in which
// order depths of Q and K are counted, nor columns of V:
//
//   Q, K   Lane (g, q) loads runs q, q + 4 … of row g. Words 0 and 1 of a run stand where a fragment has depths q and
//          q + 4 of tf32, or 2q and 2q + 8 and their neighbours of 16 bits; words 2 and 3 are of the next product.
//   V      Lane (g, q) loads runs g, g + 8 … of rows 2q and 2q + 1: the keys whose weights it has. Element c of a run
//          stands where fragment c has column g. Of the sums a lane has runs 2q and 2q + 1 of its rows then.
//
// A warp has 16 rows and KT keys. KG warps share rows; behind the rTask's only barrier their sums are joined:
//
//   rows \ keys    KT  KT  …
//   16             w0  w2          w: warp of the block; here RG = 2
//   16             w1  w3
#pragma once

#include <cmath>

#include "attention/results.cuh"
#include "common/mma_narrow.cuh"

namespace rk {

// Products of 16-bit floats, 16 deep. The weights of two fragments of keys are the left operand of one product.
template <class T>
struct DirectProducts {
  static constexpr int kFragments = 2;

  static RT_DEVICE void multiply(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    HalfProducts<T>::multiply(d, a, b);
  }
  static RT_DEVICE void weights(const float (*p)[4], uint32_t (&a)[4]) {
    RT_UNROLL
    for (int e = 0; e < 4; ++e) a[e] = narrow_pair<T>(p[e / 2][e % 2 * 2], p[e / 2][e % 2 * 2 + 1]);
  }
  // Element c of two rows in the words of a right operand, for each of the fragments of keys.
  template <class Words>
  static RT_DEVICE void values(const Words (&low)[2], const Words (&high)[2], int c, uint32_t (&b)[2]) {
    b[0] = pair(low, c), b[1] = pair(high, c);
  }

 private:
  template <class Words>
  static RT_DEVICE uint32_t pair(const Words (&rows)[2], int c) {
    const uint32_t x = rows[0].v[c / 2], y = rows[1].v[c / 2];
    return c % 2 == 0 ? (x & 0xffffu) | y << 16 : x >> 16 | (y & 0xffff0000u);
  }
};

// Products of float32, as tf32, 8 deep. Numbers are rounded where they are multiplied.
template <>
struct DirectProducts<float> {
  static constexpr int kFragments = 1;

  static RT_DEVICE void multiply(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    uint32_t left[4], right[2];
    RT_UNROLL
    for (int i = 0; i < 4; ++i) left[i] = rt::to_tf32(rk::bit_cast<float>(a[i]));
    RT_UNROLL
    for (int i = 0; i < 2; ++i) right[i] = rt::to_tf32(rk::bit_cast<float>(b[i]));
    rt::mma_tf32(d, left, right);
  }
  static RT_DEVICE void weights(const float (*p)[4], uint32_t (&a)[4]) {
    RT_UNROLL
    for (int e = 0; e < 4; ++e) a[e] = rk::bit_cast<uint32_t>(p[0][e / 2 + e % 2 * 2]);
  }
  template <class Words>
  static RT_DEVICE void values(const Words (&rows)[2], const Words (&)[2], int c, uint32_t (&b)[2]) {
    b[0] = rows[0].v[c], b[1] = rows[1].v[c];
  }
};

// T is the element type of Q, K and V. DM is the head size of Q, K and V alike. There is one key at least, and strides
// of operands have 32 bits. Without Masked there is no mask. If Masked is 2 it is a constant, which is asked for before
// the rTask's inputs have come: for each fragment of scores a run of 16 bytes a lane, times log2(e), and -inf for keys
// that do not exist. Its rows are the tiles of rows then.
template <class T, int DM, int RG, int KG, int KT, int Products, int Masked, class Epi>
struct AttentionDirect {
  static constexpr bool kEarly = true;
  static constexpr int kThreads = 32 * RG * KG, BQ = 16 * RG, NI = KT / 8;
  static constexpr int kRun = kPerLoad<T>, kRuns = DM / (4 * kRun);  // of Q and K, for a lane and a row
  static constexpr int kWide = DM / 8 < kRun ? DM / 8 : kRun, kLoads = DM / (8 * kWide);  // of V
  using Multiply = DirectProducts<T>;
  using Softmax = RunningSoftmax<1, NI, DM / 8, (Masked == 1)>;
  using Scores = typename Softmax::Scores;
  // Sums in shared memory. Rows are padded, and halves of a row exchange neighbouring chunks of 16 bytes, so that
  // neither lanes that put runs nor threads that read rows meet in a bank.
  static constexpr bool kCrossed = kWide == 8;
  static constexpr int LDC = DM + (kCrossed ? 8 : 4);
  static constexpr int kSums = 4 * KG * BQ * LDC, kShared = kSums + 8 * KG * BQ;

  struct Args {
    HeadMatrix q, k, v, mask;
    rt::Operand3 out;  // see HeadPlace
    HeadRows rows;
    Div joined;
    int32_t batch;             // all heads of all batch entries
    int32_t keys, split_keys;  // alike: there are no splits
    int32_t depth, columns;    // of Q and K, of V
    // A query attends to keys from its own number plus `before` to its own number plus `behind`.
    int32_t before, behind;
    int32_t nan_to_zero;
    float scale;
    typename Epi::Args epi;
  };

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const HeadTile tile(a.rows, rtask);
    const Place at(t.tid);
    const int first = most(0, tile.q0 + a.before) + at.group * KT;
    const int end = most(1, least(a.keys, tile.q0 + tile.queries + a.behind));
    const typename Softmax::Rows rows(t, a, tile, at.row, end);
    Scores mask;
    if constexpr (Masked == 2) load_packed(t, a, tile, at, rtask, mask);
    Operands in(t, a, tile, at, first, end);
    t.wait_for_inputs();
    in.load();
    rt::sync_warp(t);  // or compilers load V behind the first products, when there are registers again
    if constexpr (Masked == 1) Softmax::load_mask(rows, first + 2 * at.q, mask);

    Scores x = {};
    score(in, x);
    const float factor = a.scale * kLog2e;
    RT_UNROLL
    for (int j = 0; j < NI; ++j) {
      RT_UNROLL
      for (int e = 0; e < 4; ++e) x[0][j][e] = Masked ? x[0][j][e] * factor + mask[0][j][e] : x[0][j][e] * factor;
    }
    // One branch around all that hides keys: with one for each end of them ptxas moves loads of V behind the first
    // product.
    if (Masked != 2 && !Softmax::all_seen(rows, tile, first)) Softmax::hide(rows, tile, first, first + 2 * at.q, x);
    typename Softmax::State s;
    weigh(x, s);
    in.clear(at, first, end);
    accumulate(in, x, s.out);
    finish(t, a, tile, at, s);
  }

 private:
  // Where a lane stands: its group of keys, its first row of the tile, and its place in fragments.
  struct Place {
    int tid, g, q, group, row;

    RT_DEVICE explicit Place(int tid)
        : tid(tid), g(tid % 32 / 4), q(tid % 4), group(tid / 32 / RG), row(tid / 32 % RG * 16 + g) {}
    // The first column of run `load` of V that the lane has sums of; it has twice as many as it loads.
    RT_DEVICE int column(int load) const { return (load * 8 + 2 * q) * kWide; }
  };

  // The first element of the tile's first head.
  template <class Element>
  static RT_DEVICE const Element* head(const rt::Task& t, const HeadMatrix& m, const HeadTile& tile) {
    return m.template head<Element>(t, tile.b0, tile.b1, tile.b2);
  }

  // Row number i of a matrix, computed where this is called.
  template <class Element>
  static RT_DEVICE const Element* row_of(const Element* first, int i, int64_t stride) {
    const int64_t place =
        rt::mad_wide(i, static_cast<int>(stride) * static_cast<int>(sizeof(Element)), rt::place_of(first));
    return rt::at_place<const Element>(place);
  }

  // Brings the mask of the warp's rows and keys, where it is a constant.
  static RT_DEVICE void load_packed(const rt::Task& t, const Args& a, const HeadTile& tile, const Place& at, int rtask,
                                    Scores& mask) {
    int rest = rtask;
    const int number = take_digit(rest, a.rows.tiles), warp = at.tid / 32 % RG * KG + at.group;
    const float* from = row_of(head<float>(t, a.mask, tile), number, a.mask.row) + (warp * NI * 32 + at.tid % 32) * 4;
    RT_UNROLL
    for (int j = 0; j < NI; ++j) {
      const auto run = rt::ld_const(reinterpret_cast<const Pack<float, 4>*>(from + j * 128));
      RT_UNROLL
      for (int e = 0; e < 4; ++e) mask[0][j][e] = run.v[e];
    }
  }

  // What a lane has of Q, K and V. Everything is loaded without branches, so that all is on its way together, from
  // places that are computed before the inputs are there. Where there is no key the last one stands, and where there is
  // no row the tile's first one; of hidden keys V becomes zero.
  struct Operands {
    using Words = Pack<uint32_t, 4>;
    using Values = Pack<uint32_t, kWide * sizeof(T) / 4>;
    const T *from_q[2], *from_k[NI], *from_v[NI][2];
    Words q[2][kRuns], k[NI][kRuns];
    Values v[kLoads][NI][2];

    RT_DEVICE Operands(const rt::Task& t, const Args& a, const HeadTile& tile, const Place& at, int first, int end) {
      const T* from = head<T>(t, a.k, tile) + at.q * kRun;
      RT_UNROLL
      for (int j = 0; j < NI; ++j) from_k[j] = row_of(from, least(first + 8 * j + at.g, end - 1), a.k.row);
      from = head<T>(t, a.q, tile) + at.q * kRun;
      RT_UNROLL
      for (int h = 0; h < 2; ++h) {
        const HeadRow r(a.rows, at.row + 8 * h);
        const bool exists = r.inside(tile);
        from_q[h] = row_of(row_of(from, exists ? r.head : 0, a.q.s2), tile.q0 + (exists ? r.query : 0), a.q.row);
      }
      from = head<T>(t, a.v, tile) + at.g * kWide;
      RT_UNROLL
      for (int j = 0; j < NI; ++j) {
        RT_UNROLL
        for (int e = 0; e < 2; ++e) from_v[j][e] = row_of(from, least(first + 8 * j + 2 * at.q + e, end - 1), a.v.row);
      }
    }
    RT_DEVICE void load() {
      RT_UNROLL
      for (int j = 0; j < NI; ++j) take_row(from_k[j], k[j]);
      RT_UNROLL
      for (int h = 0; h < 2; ++h) take_row(from_q[h], q[h]);
      RT_UNROLL
      for (int j = 0; j < NI; ++j) {
        RT_UNROLL
        for (int e = 0; e < 2; ++e) {
          RT_UNROLL
          for (int u = 0; u < kLoads; ++u) v[u][j][e] = words<Values, kWide>(from_v[j][e] + u * 8 * kWide);
        }
      }
    }
    // Makes V zero behind the end.
    RT_DEVICE void clear(const Place& at, int first, int end) {
      if (first + KT <= end) return;
      RT_UNROLL
      for (int j = 0; j < NI; ++j) {
        RT_UNROLL
        for (int e = 0; e < 2; ++e) {
          RT_UNROLL
          for (int u = 0; u < kLoads; ++u) {
            if (first + 8 * j + 2 * at.q + e >= end) v[u][j][e] = Values{};
          }
        }
      }
    }

   private:
    template <class To, int N>
    static RT_DEVICE To words(const T* p) {
      return rk::bit_cast<To>(*reinterpret_cast<const Pack<T, N>*>(p));
    }
    static RT_DEVICE void take_row(const T* row, Words (&to)[kRuns]) {
      RT_UNROLL
      for (int u = 0; u < kRuns; ++u) to[u] = words<Words, kRun>(row + u * 4 * kRun);
    }
  };

  // x += Q·Kᵀ of the warp's rows and keys.
  static RT_DEVICE void score(const Operands& in, Scores& x) {
    RT_UNROLL
    for (int w = 0; w < 2 * kRuns; ++w) {
      const int u = w / 2, i = w % 2 * 2;
      const uint32_t q[4] = {in.q[0][u].v[i], in.q[1][u].v[i], in.q[0][u].v[i + 1], in.q[1][u].v[i + 1]};
      RT_UNROLL
      for (int j = 0; j < NI; ++j) {
        const uint32_t k[2] = {in.k[j][u].v[i], in.k[j][u].v[i + 1]};
        Multiply::multiply(x[0][j], q, k);
      }
    }
  }

  // Turns scores into weights relative to the largest one of a row, and adds them up.
  static RT_DEVICE void weigh(Scores& x, typename Softmax::State& s) {
    RT_UNROLL
    for (int h = 0; h < 2; ++h) {
      float top = x[0][0][2 * h], sum = 0.0f;
      RT_UNROLL
      for (int j = 0; j < NI; ++j) top = fmaxf(top, fmaxf(x[0][j][2 * h], x[0][j][2 * h + 1]));
      top = rt::row_maximum(top);
      const float base = top == minus_infinity() ? 0.0f : top;
      RT_UNROLL
      for (int j = 0; j < NI; ++j) {
        RT_UNROLL
        for (int e = 2 * h; e < 2 * h + 2; ++e) sum += x[0][j][e] = rt::exp2(x[0][j][e] - base);
      }
      s.base[0][h] = top, s.sum[0][h] = sum;
    }
  }

  // out += weights · V of the warp's keys.
  static RT_DEVICE void accumulate(const Operands& in, const Scores& p, typename Softmax::Sums& out) {
    RT_UNROLL
    for (int j = 0; j < NI; j += Multiply::kFragments) {
      uint32_t w[4];
      Multiply::weights(&p[0][j], w);
      RT_UNROLL
      for (int c = 0; c < DM / 8; ++c) {
        uint32_t v[2];
        Multiply::values(in.v[c / kWide][j], in.v[c / kWide][j + Multiply::kFragments - 1], c % kWide, v);
        Multiply::multiply(out[0][c], w, v);
      }
    }
  }

  // Element i of those that a lane has of a row h behind the first column of run `load`.
  static RT_DEVICE float element_of(const typename Softmax::State& s, int h, int load, int i) {
    return s.out[0][load * kWide + i % kWide][2 * h + i / kWide];
  }

  // Joins the sums of all groups, and stores the rows.
  static RT_DEVICE void finish(const rt::Task& t, const Args& a, const HeadTile& tile, const Place& at,
                               typename Softmax::State& s) {
    RT_UNROLL
    for (int h = 0; h < 2; ++h) {
      s.sum[0][h] += rt::shfl_xor(t, s.sum[0][h], 1);
      s.sum[0][h] += rt::shfl_xor(t, s.sum[0][h], 2);
    }
    float* sums = reinterpret_cast<float*>(t.smem);
    auto* stats = reinterpret_cast<Pack<float, 2>*>(t.smem + kSums);
    RT_UNROLL
    for (int h = 0; h < 2; ++h) {
      const int row = at.row + 8 * h;
      put(s, h, at, sums + (at.group * BQ + row) * LDC);
      if (at.q == 0) stats[row * KG + at.group] = Pack<float, 2>{{s.base[0][h], s.sum[0][h]}};
    }
    t.sync();
    store_joined(t, a, tile, at.tid, sums, stats);
  }

  // Where a column is in a row of sums.
  static RT_DEVICE int crossed(int col) { return kCrossed ? col ^ col / 32 % 2 * 4 : col; }

  static RT_DEVICE void put(const typename Softmax::State& s, int h, const Place& at, float* row) {
    RT_UNROLL
    for (int u = 0; u < kLoads; ++u) {
      RT_UNROLL
      for (int i = 0; i < 2 * kWide; i += 4) {
        *reinterpret_cast<Pack<float, 4>*>(row + crossed(at.column(u) + i)) =
            Pack<float, 4>{{element_of(s, h, u, i), element_of(s, h, u, i + 1), element_of(s, h, u, i + 2),
                            element_of(s, h, u, i + 3)}};
      }
    }
  }

  static RT_DEVICE void store_joined(const rt::Task& t, const Args& a, const HeadTile& tile, int tid, const float* sums,
                                     const Pack<float, 2>* stats) {
    constexpr int kPack = Epi::kPack, kAcross = DM / kPack, kChunk = kPack < 4 ? kPack : 4;
    RK_UNROLL(1)
    for (int e = tid; e < BQ * kAcross; e += kThreads) {
      const int row = e / kAcross, col = e % kAcross * kPack;
      const HeadRow r(a.rows, row);
      if (!r.inside(tile)) break;
      if (col >= a.columns) continue;
      Pack<float, 2> of[KG];
      float max = minus_infinity(), sum = 0.0f;
      RT_UNROLL
      for (int g = 0; g < KG; ++g) of[g] = stats[row * KG + g], max = fmaxf(max, of[g].v[0]);
      const float base = max == minus_infinity() ? 0.0f : max;
      Pack<float, kPack> x = {};
      RT_UNROLL
      for (int g = 0; g < KG; ++g) {
        const float by = rt::exp2(of[g].v[0] - base);
        sum += by * of[g].v[1];
        RT_UNROLL
        for (int i = 0; i < kPack; i += kChunk) {
          const auto more =
              *reinterpret_cast<const Pack<float, kChunk>*>(sums + (g * BQ + row) * LDC + crossed(col + i));
          RT_UNROLL
          for (int c = 0; c < kChunk; ++c) x.v[i + c] += by * more.v[c];
        }
      }
      const bool nothing = a.nan_to_zero && !(sum > 0.0f);
      const float inverse = 1.0f / sum;
      RT_UNROLL
      for (int i = 0; i < kPack; ++i) x.v[i] = nothing ? 0.0f : x.v[i] * inverse;
      HeadColumn<Epi>(t, a, tile.batch(a.rows) + r.head, tile.q0 + r.query, col).template store<0>(t, a, x);
    }
  }
};

}  // namespace rk
