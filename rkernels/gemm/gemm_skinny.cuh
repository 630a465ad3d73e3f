// C[b][m][n] = epilogue(Σ_k prologue(A[b][m][k]) · B[b][k][n]), summed in float32 on tensor cores, for 2 to 32 rows and
// a constant B of 16 bits or of float32, which is packed and streamed. The time of such a product is that in which its
// weights arrive. So B's columns are the rows of the instruction's left fragment, of which it takes 16, and the few
// rows of A are the columns of its right fragment, of which it takes 8:
//
//	         k                 rows of A
//	     ┌────────┐            ┌──────┐
//	  16 │weights │          k │      │  → 16 columns of C × 8 rows of C
//	cols.│        │            └──────┘
//	     └────────┘                8
//
// Weights go from the ring to registers, and are multiplied. What a warp multiplies at a time is a block: kDepth values
// of k, which are 64 bytes of a row of E, by C tiles of 16 columns. A lane has 16 of these 64 bytes, which make the
// right fragments of two instructions.
//
// A comes to registers from memory, since each warp has values of k of its own; while a block is multiplied, the rows
// of the next ones are on their way. With Staged, A comes to shared memory in pieces, of which several are on the way
// at once. An rTask of few slices has its first products later then; one of many would else have too few bytes of A on
// the way for the time that memory takes while weights stream.
//
// With Norm the rows of A are normalised, and with Pairs = 2 tiles of two products take turns, as in streamed_rows.cuh.
#pragma once

#include <cmath>
#include <cstring>

#include "common/mma_narrow.cuh"
#include "gemm/chunked_slices.cuh"
#include "gemm/staged_rows.cuh"

namespace rk {

// What a lane has of an operand of two instructions: the words of one after those of the other. Products are made of
// elements of type E, of float as tf32; with three of them each number is the sum of two parts.
template <class E, int Products, int N>
struct SkinnyParts {
  uint32_t words[N];
  RT_DEVICE void set(int i, uint32_t word) { words[i] = word; }
};
template <int N>
struct SkinnyParts<float, 3, N> {
  Parts<3, N> both;
  RT_DEVICE void set(int i, uint32_t word) { both.set(i, rk::bit_cast<float>(word)); }
};

// How 8 warps divide the product. WK warps share the k of the same C tiles of columns; the 8/WK sets of such warps have
// C tiles each, which together are the columns of an rTask. Weights are in slices: a block of each warp. MB is the most
// rows, X the element type of A, of which one load brings V values.
// W is E, or half where products are made of float: these numbers are in tf32 what they are in float16.
template <int MB, int C, int WK, int V, int Products, int Norm, int Pairs, int Staged, class X, class E, class W,
          class Epi, class Pro>
struct GemmSkinny {
  static constexpr int kThreads = 256;
  static constexpr int kRows = MB / 8;                     // right fragments
  static constexpr int kColumns = 16 * C * (8 / WK);       // of B, or of both
  static constexpr int kOwn = kPerLoad<E>;                 // values of k that a lane has of a block
  static constexpr int kDepth = 4 * kOwn;                  // values of k of a block
  static constexpr bool kWidened = !std::is_same_v<W, E>;  // weights are halves
  static constexpr int kLines = kWidened ? 1 : 2;          // of a lane in a block of a tile
  static constexpr int kStreamStep = kLines * C * 16 * kThreads;
  // Staged rows: a piece has the rows' values for kPieceSlices slices.
  static constexpr int kSliceDepth = kDepth * WK, kWide = static_cast<int>(16 / sizeof(X));
  static constexpr int kSliceBytes = MB * kSliceDepth * static_cast<int>(sizeof(X));
  static constexpr int kPieceSlices = kSliceBytes < 8192 ? 8192 / kSliceBytes : 1;
  using Rows = StagedRows<X, V, MB, kPieceSlices * kSliceDepth, kSliceBytes <= 8192 ? 4 : 3, kThreads>;
  static constexpr int kRowBytes = Rows::kBytes, LDA = Rows::LDA;
  static constexpr int LDC = kColumns + 4;  // of partial sums [wk][m][column], in place of A
  static constexpr int kSums = 4 * WK * MB * LDC;
  static constexpr int kOperands = Staged && kRowBytes > kSums ? kRowBytes : kSums;
  static constexpr int kShared = kOperands + 4 * Norm * WK * MB;  // and sums of squares [m][wk], of distances
  static_assert(kOwn % V == 0 && C % Pairs == 0 && (MB == 8 || Norm == 0 && Pairs == 1), "");
  static_assert(!kWidened || std::is_same_v<W, half> && std::is_same_v<E, float> && Products == 1, "");

  struct Args {
    rt::Ref a, b;
    rt::Operand3 out;  // [split·batch][m][n]
    int32_t M, N, K;
    int32_t slices, split_slices;  // of a column tile, and of one split
    Div tiles_n, splits;
    Div batch1, batch2;          // batch = (b0·batch1 + b1)·batch2 + b2
    int64_t a0, a1, a2, am, ak;  // element strides of A over b0, b1, b2, m, k
    float epsilon;               // added to the mean square, or the variance
    typename Epi::Args epi;
    typename Pro::Args pro;
  };

  // Where a lane stands: as rows of fragments it has g and g + 8, along k the quarter t.
  struct Place {
    int tid, lane, warp, wk, wc, g, t;
    RT_DEVICE explicit Place(int id)
        : tid(id), lane(id % 32), warp(rt::settled(id / 32)), wk(warp % WK), wc(warp / WK), g(lane / 4), t(lane % 4) {}
  };

  using Left = SkinnyParts<E, Products, 4>;
  using Right = SkinnyParts<E, Products, 2>;
  using Sums = float[C][kRows][4];

  // The lane's values of A in one block, in loads of N: rows g, g + 8, …
  template <int N>
  struct Block {
    Pack<X, N> held[kRows][kOwn / N];
    int left;  // how many values of k there are from the lane's first on
  };

  // How many blocks of A are on their way to registers at once.
  static constexpr int kAhead = MB > 8 ? 2 : Products == 3 ? 3 : 4;

  // What a lane reads of A into registers. Instead of rows behind the last one it reads the last one again, since their
  // products are not stored.
  struct OwnRows {
    const X* at[kRows];  // of the next block
    int64_t ak;
    int left;

    RT_DEVICE OwnRows(const Args& a, const X* x, const Place& p, int k) : ak(V > 1 ? 1 : a.ak), left(a.K - k) {
      RT_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const int m = p.g + 8 * r;
        at[r] = x + place(m < a.M ? m : a.M - 1, a.am, place(k, ak));
      }
    }
    // Sends for a block, with zeros where A ends. All of the V values that a load brings exist, or none.
    RT_DEVICE void take(Block<V>& b) {
      b.left = left;
      RT_UNROLL
      for (int r = 0; r < kRows; ++r) {
        RT_UNROLL
        for (int i = 0; i < kOwn; i += V) {
          b.held[r][i / V] = Pack<X, V>{};
          if (i < left) b.held[r][i / V] = *reinterpret_cast<const Pack<X, V>*>(at[r] + i * ak);
        }
        at[r] += kDepth * WK * ak;
      }
      left -= kDepth * WK;
    }
  };

  static constexpr int kStagedLoad = kOwn < kWide ? kOwn : kWide;

  // Takes a block whose first values of the lane are at `first` in shared memory.
  static RT_DEVICE void take_staged(const X* first, int left, Block<kStagedLoad>& b) {
    b.left = left;
    RT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      RT_UNROLL
      for (int i = 0; i < kOwn; i += kStagedLoad) {
        b.held[r][i / kStagedLoad] = *reinterpret_cast<const Pack<X, kStagedLoad>*>(first + 8 * r * LDA + i);
      }
    }
  }

  // Of the lane's values of its row: the sum of their squares or, with Norm = 2, of their distances from the row's
  // first value and of the squares of these.
  struct Spread {
    float square = 0.0f, sum = 0.0f, first = 0.0f;

    RT_DEVICE void add(float x, bool exists) {
      if constexpr (Norm == 2) {
        x = exists ? x - first : 0.0f;
        sum += x;
      }
      square += x * x;
    }
  };

  // The right fragments of the two instructions of a block for row r of the lane, whose values are added to its spread.
  template <int N>
  static RT_DEVICE void fragments(const Args& a, const Block<N>& b, int r, Right (&out)[2], Spread& spread) {
    if constexpr (Pro::kIdentity && !Norm && std::is_same_v<X, E> && sizeof(E) == 2) {
      memcpy(out, b.held[r], sizeof out);
      return;
    }
    float x[kOwn];
    RT_UNROLL
    for (int i = 0; i < kOwn; ++i) {
      const X held = b.held[r][i / N].v[i % N];
      x[i] = Pro::kIdentity || i < b.left ? float(Pro::apply(a.pro, held)) : 0.0f;
      if constexpr (Norm) spread.add(x[i], i < b.left);
    }
    RT_UNROLL
    for (int w = 0; w < 4; ++w) {
      uint32_t word;
      if constexpr (std::is_same_v<E, float>) {
        word = Products == 3 ? rk::bit_cast<uint32_t>(x[w]) : rt::to_tf32(x[w]);
      } else {
        word = narrow_pair<E>(x[2 * w], x[2 * w + 1]);
      }
      out[w / 2].set(w % 2, word);
    }
  }

  static RT_DEVICE void multiply(const Left& left, const Right& right, float (&sums)[4]) {
    if constexpr (Products == 3) {
      multiply_parts<3>(left.both, right.both, sums);
    } else {
      multiply_fragments<E>(sums, left.words, right.words);
    }
  }

  // sums += a slice of weights · a block of A.
  template <int N>
  static RT_DEVICE void multiply_slice(const Args& a, const Block<N>& b, const char* slice, const Place& at, Sums& sums,
                                       Spread& spread) {
    struct alignas(16) Line {
      uint32_t words[4];
    };
    const Line* lines = reinterpret_cast<const Line*>(slice) + at.tid;
    Right right[kRows][2];
    RT_UNROLL
    for (int r = 0; r < kRows; ++r) fragments(a, b, r, right[r], spread);
    RT_UNROLL
    for (int c = 0; c < C; ++c) {
      RT_UNROLL
      for (int i = 0; i < 2; ++i) {
        const Line line = lines[(kLines * c + i % kLines) * kThreads];
        Left left;
        RT_UNROLL
        for (int w = 0; w < 4; ++w)
          left.set(w, kWidened ? widened_half(line.words[2 * i + w / 2], w % 2) : line.words[w]);
        RT_UNROLL
        for (int r = 0; r < kRows; ++r) multiply(left, right[r][i], sums[c][r]);
      }
    }
  }

  // Puts the lane's sums beside those of other warps: of the columns g and g + 8 of each tile, and of two neighbouring
  // rows of each right fragment.
  static RT_DEVICE void put_sums(const Place& at, const Sums& sums, float* partial) {
    float* to = partial + (at.wk * MB + 2 * at.t) * LDC + at.wc * C * 16 + at.g;
    RT_UNROLL
    for (int c = 0; c < C; ++c) {
      RT_UNROLL
      for (int r = 0; r < kRows; ++r) {
        RT_UNROLL
        for (int i = 0; i < 4; ++i) to[(8 * r + i % 2) * LDC + 16 * c + i / 2 * 8] = sums[c][r][i];
      }
    }
  }

  // The elements of C that a thread of up to 8 rows stores. What their epilogue needs is on its way before the product
  // is made.
  struct Outputs {
    static constexpr int kOut = kColumns / Pairs, kEach = ceil_div(8 * kOut, kThreads);
    typename Epi::Held held[kEach] = {};
    typename Epi::Brought brought[kEach] = {};
    int tid, batch, first, end1, end2;

    RT_DEVICE Outputs(const rt::Task& t, const Args& a, int i0, int n0)
        : tid(t.tid), batch(i0), first(n0), end1(a.M), end2(a.N) {
      RT_UNROLL
      for (int e = 0; e < kEach; ++e) {
        if (exists(e)) held[e] = Epi::hold(t, a.epi, batch, row(e), first + column(e));
      }
    }
    RT_DEVICE int row(int e) const { return (tid + e * kThreads) / kOut; }
    RT_DEVICE int column(int e) const { return (tid + e * kThreads) % kOut; }
    RT_DEVICE bool exists(int e) const { return row(e) < end1 && first + column(e) < end2; }

    RT_DEVICE void bring(const rt::Task& t, const Args& a) {
      RT_UNROLL
      for (int e = 0; e < kEach; ++e) {
        if (exists(e)) brought[e] = Epi::bring(t, a.epi, batch, row(e), first + column(e));
      }
    }
    RT_DEVICE void store(const rt::Task& t, const Args& a, const float* partial, const float* squares) const {
      RT_UNROLL
      for (int e = 0; e < kEach; ++e) {
        if (!exists(e)) continue;
        const int m = row(e), n = column(e);
        float by = 1.0f;
        if constexpr (Norm) {
          float square = 0;
          RT_UNROLL
          for (int i = 0; i < WK; ++i) square += squares[m * WK + i];
          square /= static_cast<float>(a.K);
          if constexpr (Norm == 2) {
            float mean = 0;
            RT_UNROLL
            for (int i = 0; i < WK; ++i) mean += squares[(MB + m) * WK + i];
            mean /= static_cast<float>(a.K);
            square = fmaxf(square - mean * mean, 0.0f);
          }
          by = sqrtf(square + a.epsilon);
        }
        const auto sum = [&](int column) {
          float x = partial[m * LDC + column];
          RT_UNROLL
          for (int i = 1; i < WK; ++i) x += partial[(i * MB + m) * LDC + column];
          return static_cast<typename Epi::In>(Norm ? x / by : x);
        };
        auto* to = t.template ptr<typename Epi::Out>(a.out.ref) + element(a.out, batch, m, first + n);
        if constexpr (Pairs == 2) {
          const int of_first = n / 16 * 32 + n % 16;
          *to = Epi::apply(a.epi, held[e], brought[e], sum(of_first), sum(of_first + 16));
        } else {
          *to = Epi::apply(a.epi, held[e], brought[e], sum(n));
        }
      }
    }
  };
  struct NoOutputs {
    RT_DEVICE NoOutputs(const rt::Task&, const Args&, int, int) {}
    RT_DEVICE void bring(const rt::Task&, const Args&) {}
  };

  // The sums of an rTask's slices, from slice number `first` on.
  template <class Out>
  static RT_DEVICE void multiply_own(const rt::Task& t, const Args& a, const X* x, const Place& at, int first,
                                     ChunkedSlices<kStreamStep>& slices, int count, Out& outputs, Sums& sums,
                                     Spread& spread) {
    OwnRows rows(a, x, at, (first * WK + at.wk) * kDepth + at.t * kOwn);
    Block<V> blocks[kAhead];
    RT_UNROLL
    for (int b = 0; b < kAhead; ++b) rows.take(blocks[b]);
    outputs.bring(t, a);
    RK_UNROLL(1)
    for (int i = 0; i < count; i += kAhead) {
      RT_UNROLL
      for (int b = 0; b < kAhead; ++b) {
        if (i + b >= count) break;
        multiply_slice(a, blocks[b], slices.next(), at, sums, spread);
        slices.done();
        if (i + b + kAhead < count) rows.take(blocks[b]);
      }
    }
  }
  template <class Out>
  static RT_DEVICE void multiply_staged(const rt::Task& t, const Args& a, const X* x, const Place& at, int first,
                                        ChunkedSlices<kStreamStep>& slices, int count, Out& outputs, Sums& sums,
                                        Spread& spread) {
    const int k0 = first * kSliceDepth, end = k0 + count * kSliceDepth;
    const int64_t ak = V > 1 ? 1 : a.ak;
    Rows rows(t, x + k0 * ak, a.am, ak, a.M, (end < a.K ? end : a.K) - k0);
    rows.begin();
    outputs.bring(t, a);
    const int own = at.wk * kDepth + at.t * kOwn;  // the lane's first value of a slice
    RK_UNROLL(1)
    for (int i = 0; i < count; i += kPieceSlices) {
      const X* piece = rows.next(t) + at.g * LDA + own;
      rows.fetch();
      RT_UNROLL
      for (int j = 0; j < kPieceSlices; ++j) {
        if (i + j >= count) break;
        Block<kStagedLoad> block;
        take_staged(piece + j * kSliceDepth, a.K - k0 - (i + j) * kSliceDepth - own, block);
        multiply_slice(a, block, slices.next(), at, sums, spread);
        slices.done();
      }
    }
  }

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const Place at(t.tid);
    int batch = rtask;
    const int n0 = take_digit(batch, a.tiles_n) * (kColumns / Pairs), i0 = batch;
    const int split = take_digit(batch, a.splits);
    const int b2 = take_digit(batch, a.batch2), b1 = take_digit(batch, a.batch1), b0 = batch;
    const int first = split * a.split_slices;
    const int count = a.slices - first < a.split_slices ? a.slices - first : a.split_slices;
    const X* x = t.template ptr<const X>(a.a) + place(b0, a.a0, place(b1, a.a1, place(b2, a.a2)));
    std::conditional_t<MB == 8, Outputs, NoOutputs> outputs(t, a, i0, n0);
    ChunkedSlices<kStreamStep> slices(t, count);
    x = t.inputs(x);
    Sums sums = {};
    Spread spread;
    if constexpr (Norm == 2) {
      spread.first = float(Pro::apply(a.pro, *ahead(x, at.g < a.M ? at.g : a.M - 1, static_cast<int>(a.am))));
    }
    if constexpr (Staged) {
      multiply_staged(t, a, x, at, first, slices, count, outputs, sums, spread);
      t.sync();  // all warps have read A
    } else {
      multiply_own(t, a, x, at, first, slices, count, outputs, sums, spread);
    }
    float* partial = reinterpret_cast<float*>(t.smem);
    float* squares = partial + kOperands / 4;
    put_sums(at, sums, partial);
    if constexpr (Norm) {
      RT_UNROLL
      for (int d = 1; d <= 2; d *= 2) {
        spread.square += rt::shfl_xor(t, spread.square, d);
        if constexpr (Norm == 2) spread.sum += rt::shfl_xor(t, spread.sum, d);
      }
      if (at.t == 0 && at.wc == 0) {
        squares[at.g * WK + at.wk] = spread.square;
        if constexpr (Norm == 2) squares[(MB + at.g) * WK + at.wk] = spread.sum;
      }
    }
    t.sync();
    if constexpr (MB == 8) {
      outputs.store(t, a, partial, squares);
    } else {
      drain_sums<kThreads, MB, kColumns, LDC, WK, 16, Epi>(t, partial, a.out, a.epi, {i0, 0, n0, a.M, a.N});
    }
  }
};

}  // namespace rk
