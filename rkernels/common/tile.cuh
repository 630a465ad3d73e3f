// The inner part of all tiled contractions: a BM×BN tile of C += A·B, fed through a ring of ST stages
// in shared memory. A stage holds BM rows of A, BK long (padded against bank conflicts), or BK columns of A,
// BM long; and BK rows of B, BN long. Who fills a stage is a loader's business (loaders.cuh); who takes the
// result, a sink's.
#pragma once

#include "common/drain.cuh"
#include "common/operand.cuh"
#include "common/tiles.cuh"
#include "rt/device/device.cuh"

namespace rk {

using rt::float4v;

RT_DEVICE constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }

// Takes the last digit, of base d, off n, which is not negative.
RT_DEVICE int take_digit(int& n, const Div& d) {
  const int q = d.quotient(n), digit = n - q * static_cast<int>(d.d);
  n = q;
  return digit;
}

// How a stage holds A: by rows as it comes from memory, or by columns as constants can be packed.
enum StageOrder { kRows = 0, kColumns = 1 };

template <class T>
struct Place;

// Each thread owns TM×TN elements of the tile: rows ty + i·TY, or in runs of 4 where A is held by columns,
// and columns in runs of up to 4. KG groups of threads share the tile's k range; their sums meet in shared
// memory.
template <int BM_, int BN_, int BK_, int TM_, int TN_, int KG_, int ST_, int OrderA_>
struct Tile {
  static constexpr int BM = BM_, BN = BN_, BK = BK_, TM = TM_, TN = TN_, KG = KG_, ST = ST_, OrderA = OrderA_;
  static constexpr bool kAcrossA = OrderA == kColumns, kAcrossB = true;  // held by values of k, or along k
  static constexpr int TX = BN / TN, TY = BM / TM;
  static constexpr int kGroup = TX * TY;
  static constexpr int kThreads = kGroup * KG;
  static constexpr int LDA = OrderA == kRows ? BK + 4 : BM, LDB = BN, LDC = BN;  // floats from row to row
  static constexpr int kStageA = (OrderA == kRows ? BM : BK) * LDA, kStageB = BK * LDB;
  static constexpr int kRing = ST * (kStageA + kStageB);
  static constexpr int kSums = KG * BM * LDC;
  static constexpr int kShared = 4 * (kRing > kSums ? kRing : kSums);
  static constexpr int kVec = TN < 4 ? TN : 4, kVecA = OrderA == kRows ? 1 : 4;
  static constexpr int kSlice = BK / KG;
  using Element = float;  // of a stage
  using Acc = float[TM][TN];
  // The block of packed constants in a stage: on the left, and on the right.
  static constexpr int kLeftRows = BK, kLeftCols = BM, kRightRows = BK, kRightCols = BN;
  using At = Place<Tile>;
  static_assert(TX % 8 == 0 && TY % 4 == 0 && kGroup % 32 == 0, "a warp covers 8 by 4 threads");
  static_assert(kSlice % 4 == 0 && TM % kVecA == 0 && TN % kVec == 0 && (kVec == 4 || TN == kVec), "vector widths");
};

// Where a thread stands in its group: warps are 8 wide and 4 high, so that one warp's reads of A and of
// B touch few rows and whole lines.
template <class T>
struct Place {
  int tx, ty, group;
  RT_DEVICE explicit Place(int tid) {
    const int lane = tid % 32, warp = tid % T::kGroup / 32;
    group = rt::settled(tid / T::kGroup);
    tx = rt::settled(warp % (T::TX / 8) * 8 + lane % 8);
    ty = rt::settled(warp / (T::TX / 8) * 4 + lane / 8);
  }
  RT_DEVICE int row(int i) const { return i / T::kVecA * (T::TY * T::kVecA) + ty * T::kVecA + i % T::kVecA; }
  RT_DEVICE int col(int j) const { return j / T::kVec * (T::TX * T::kVec) + tx * T::kVec + j % T::kVec; }
};

template <int N>
RT_DEVICE void load_run(float* dst, const float* src) {
  if constexpr (N == 4) {
    const float4v v = *reinterpret_cast<const float4v*>(src);
    dst[0] = v.x, dst[1] = v.y, dst[2] = v.z, dst[3] = v.w;
  } else if constexpr (N == 2) {
    const Pack<float, 2> v = *reinterpret_cast<const Pack<float, 2>*>(src);
    dst[0] = v.v[0], dst[1] = v.v[1];
  } else {
    RT_UNROLL
    for (int i = 0; i < N; ++i) dst[i] = src[i];
  }
}

// acc += a·b.
template <int TM, int TN>
RT_DEVICE void multiply(const float (&a)[TM], const float (&b)[TN], float (&acc)[TM][TN]) {
  RT_UNROLL
  for (int i = 0; i < TM; ++i) {
    RT_UNROLL
    for (int j = 0; j < TN; ++j) acc[i][j] += a[i] * b[j];
  }
}

// A thread's part of one row, of runs of V elements Step apart.
template <int V, int Step, int N>
RT_DEVICE void load_runs(float (&dst)[N], const float* src) {
  RT_UNROLL
  for (int j = 0; j < N; j += V) load_run<V>(dst + j, src + j / V * Step);
}

// acc += A·B of one stage, this group's share of k, where A is held by columns. What a thread needs of one k is
// on its way while the one before is multiplied; behind the last one comes the first one again, which is less
// code than a branch.
template <class T>
RT_DEVICE void multiply_columns(const Place<T>& at, const float* sa, const float* sb, float (&acc)[T::TM][T::TN]) {
  constexpr int kTurn = 128 / (T::TM * T::TN);  // k deep
  static_assert(kTurn % 2 == 0 && T::kSlice % kTurn == 0, "a slice is whole turns");
  sa += at.group * T::kSlice * T::BM + at.ty * T::kVecA;
  sb += at.group * T::kSlice * T::BN + at.tx * T::kVec;
  float a[2][T::TM], b[2][T::TN];
  const auto fetch = [&](int slot, const float* col, const float* row) {
    load_runs<T::kVecA, T::TY * T::kVecA>(a[slot], col);
    load_runs<T::kVec, T::TX * T::kVec>(b[slot], row);
  };
  fetch(0, sa, sb);
  int k = 0;
  RK_UNROLL(1)
  do {
    RT_UNROLL
    for (int i = 1; i < kTurn; ++i) {
      fetch(i % 2, sa + i * T::BM, sb + i * T::BN);
      multiply(a[(i - 1) % 2], b[(i - 1) % 2], acc);
    }
    k += kTurn;
    if constexpr (kTurn < T::kSlice) {
      const int step = k < T::kSlice ? kTurn : kTurn - T::kSlice;
      sa += step * T::BM, sb += step * T::BN;
      fetch(0, sa, sb);
    }
    multiply(a[1], b[1], acc);
  } while (k < T::kSlice);
}

// The same where A is held by rows, of which a thread reads two k at a time where it owns 8×8 elements, else
// four.
template <class T>
RT_DEVICE void multiply_rows(const Place<T>& at, const float* sa, const float* sb, float (&acc)[T::TM][T::TN]) {
  constexpr int kRun = T::TM * T::TN >= 64 ? 2 : 4;
  sa += at.ty * T::LDA + at.group * T::kSlice;
  sb += at.group * T::kSlice * T::BN + at.tx * T::kVec;
  RK_UNROLL(T::TM * T::TN >= 32 ? 1 : 2)
  for (int k = 0; k < T::kSlice; k += kRun) {
    float a[T::TM][kRun];
    RT_UNROLL
    for (int i = 0; i < T::TM; ++i) load_run<kRun>(a[i], sa + i * T::TY * T::LDA);
    RT_UNROLL
    for (int kk = 0; kk < kRun; ++kk) {
      float b[T::TN];
      load_runs<T::kVec, T::TX * T::kVec>(b, sb + kk * T::BN);
      RT_UNROLL
      for (int i = 0; i < T::TM; ++i) {
        RT_UNROLL
        for (int j = 0; j < T::TN; ++j) acc[i][j] += a[i][kk] * b[j];
      }
    }
    sa += kRun, sb += kRun * T::BN;
  }
}

template <class T>
RT_DEVICE void multiply_stage(const Place<T>& at, const float* sa, const float* sb, float (&acc)[T::TM][T::TN]) {
  if constexpr (T::OrderA == kColumns) {
    multiply_columns(at, sa, sb, acc);
  } else {
    multiply_rows(at, sa, sb, acc);
  }
}

// Where stage number s of either operand is in the ring.
template <class T, class LoadA, class LoadB>
struct RingOf {
  typename T::Element* ring;
  RT_DEVICE typename T::Element* a(int s) const { return ring + s * T::kStageA; }
  RT_DEVICE typename T::Element* b(int s) const { return ring + T::ST * T::kStageA + s * T::kStageB; }

  // Constants are on their way before the launches before have ended, and before any input is asked for: those of the
  // stages that are free at first, and to L2 what follows.
  RT_DEVICE void begin(const rt::Task& t, LoadA& load_a, LoadB& load_b, int count) const {
    if constexpr (LoadA::kConstant || LoadB::kConstant) {
      RK_UNROLL(1)
      for (int s = 0; s < T::ST - 1 && s < count; ++s) {
        if constexpr (LoadA::kConstant) load_a.issue(a(s));
        if constexpr (LoadB::kConstant) load_b.issue(b(s));
      }
      if constexpr (LoadA::kConstant) load_a.announce(count - (T::ST - 1));
      if constexpr (LoadB::kConstant) load_b.announce(count - (T::ST - 1));
    }
    t.wait_for_inputs();
  }
};

// The inverse of the scale of a constant that is packed as parts of float16 (split.cuh), which stands in memory. Tiles
// that take such parts say kSplit; others have no scale.
template <class T>
struct ConstantScale {
  static constexpr bool kUsed = requires { requires T::kSplit; };
  float inverse = 1.0f;
  ConstantScale() = default;
  RT_DEVICE ConstantScale(const rt::Task& t, const rt::Ref& ref) {
    if constexpr (kUsed) inverse = rt::ld_const(t.template ptr<const float>(ref));
  }
};

// Runs count k tiles through the ring. LoadA and LoadB have issue(stage) for one k tile after the other,
// called by all threads; what a thread copies is its own until the barrier after cp_async_wait. Loaders that have
// kConstant set bring nothing that the program produces; the others begin when the launches before have ended.
template <class T, class LoadA, class LoadB>
RT_DEVICE void multiply_tiles(const rt::Task& t, LoadA& load_a, LoadB& load_b, int count, typename T::Acc& acc,
                              const ConstantScale<T>& scale = {}) {
  using Element = typename T::Element;
  const RingOf<T, LoadA, LoadB> ring{reinterpret_cast<Element*>(t.smem)};
  typename T::At at(t.tid);
  if constexpr (ConstantScale<T>::kUsed) at.scale = scale.inverse;
  ring.begin(t, load_a, load_b, count);
  int stage = 0;  // to fill next; the one behind it is the next to multiply
  RK_UNROLL(1)
  for (int k_tile = 1 - T::ST; k_tile < count; ++k_tile) {
    if (k_tile >= 0) {
      rt::cp_async_wait<T::ST - 2>();
      t.sync();
    }
    if (k_tile + T::ST - 1 < count) {
      if (!LoadA::kConstant || k_tile >= 0) load_a.issue(ring.a(stage));
      if (!LoadB::kConstant || k_tile >= 0) load_b.issue(ring.b(stage));
    }
    rt::cp_async_commit();
    stage = stage + 1 == T::ST ? 0 : stage + 1;
    if (k_tile >= 0) {
      multiply_stage(at, ring.a(stage), ring.b(stage), acc);
    }
  }
  rt::cp_async_wait<0>();
}

// Puts what a thread owns of the tile into its group's sums.
template <class T>
RT_DEVICE void put_sums(const Place<T>& at, const float (&acc)[T::TM][T::TN], float* sums) {
  RT_UNROLL
  for (int i = 0; i < T::TM; ++i) {
    float* row = sums + (at.group * T::BM + at.row(i)) * T::LDC;
    RT_UNROLL
    for (int j = 0; j < T::TN; j += T::kVec) {
      if constexpr (T::kVec == 4) {
        *reinterpret_cast<float4v*>(row + at.col(j)) = float4v{acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]};
      } else {
        RT_UNROLL
        for (int v = 0; v < T::kVec; ++v) row[at.col(j) + v] = acc[i][j + v];
      }
    }
  }
}

// Stores every element of the tile through the epilogue. Going through shared memory makes lanes neighbours along i2,
// whatever the tile's shape.
template <class T, class Epi>
RT_DEVICE void drain_tile(const rt::Task& t, const typename T::Acc& acc, const rt::Operand3& out,
                          const typename Epi::Args& epi, const TilePlace& place) {
  using Sum = std::remove_all_extents_t<typename T::Acc>;
  Sum* sums = reinterpret_cast<Sum*>(t.smem);
  t.sync();
  put_sums(typename T::At(t.tid), acc, sums);
  t.sync();
  drain_sums<T::kThreads, T::BM, T::BN, T::LDC, T::KG, 16, Epi>(t, sums, out, epi, place);
}

// Stores one element of the result through the epilogue, and returns it; (i0, i1, i2) are its coordinates.
template <class Epi>
RT_DEVICE auto store(const rt::Task& t, const rt::Operand3& out, const typename Epi::Args& epi, float x, int i0, int i1,
                     int i2) {
  using Out = typename Epi::Out;
  const Out y = Epi::apply(t, epi, static_cast<typename Epi::In>(x), i0, i1, i2);
  t.template ptr<Out>(out.ref)[element(out, i0, i1, i2)] = y;
  return y;
}

}  // namespace rk
