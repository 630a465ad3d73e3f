// The tile of a product on tensor cores that are driven by warp groups: wgmma.m64nNk8 on tf32 operands, m64nNk16 on
// those of 16 bits, with float32 sums, and m64nNk32 on integers of 8 bits, with int32 sums. What tf32 is says mma.cuh,
// and how three products of float16 make one of float32, split.cuh.
//
// A warp group multiplies 64 rows by all columns of the tile, so that B is read once from shared memory for 64 rows. It
// brings its rows of A by itself into a ring of its own, and waits for no other group but where stages of B run out.
// Two stages are in work at once: while tensor cores multiply one, the threads prepare the next.
//
//   threads        begin s │ s - 1 is done: give its B back │ A(s + 1) has come: send for more │ B(s + 1) has come │ …
//   tensor cores   s - 1   │ s ───────────────────────────────────────────────────────────────────────────────────▶ …
//
// Numbers of 16 bits and integers of 8 bits are multiplied as they are, and tensor cores read their A in shared memory.
// Numbers of float32 pass through registers, where they are rounded to tf32 or split: tensor cores would cut off what
// does not fit, which shows as a bias.
#pragma once

#include "common/mma.cuh"
#include "common/split.cuh"
#include "common/types.cuh"
#include "common/wgmma_sums.cuh"
#include "common/wgmma_stages.cuh"

namespace rk {

template <class T>
struct GroupPlace;

// KG groups of warp groups share the tile's k range: each takes 128 bytes of the depth of every stage, or with three
// products its share of 128 bytes. A's ring has ST stages. B comes from the stream, packed as [k / n][column][k % n] a
// stage, where n values are 16 bytes. With three products the values are of float16, and there are two such planes a
// stage, hi before lo. A is the element type of the left operand in memory, E of what is multiplied: of integers of 8
// bits these are the types of the left and of the right operand, and a stage holds bytes of either. Swizzled says that
// the rows of A may be swizzled in shared memory (common/loaders.cuh). Of those that are, numbers of 16 and 8 bits
// are read there by tensor cores.
template <class A, class E, int BM_, int BN_, int KG_, int ST_, int Products_, bool Swizzled_>
struct GroupTile {
  using Element = E;
  static constexpr int BM = BM_, BN = BN_, KG = KG_, ST = ST_;
  static constexpr int kProducts = Products_;
  static constexpr bool kSplit = Products_ == 3, kSwizzled = Swizzled_ && !kSplit;
  static constexpr bool kShareA = kSwizzled && sizeof(E) <= 2;
  using Multiplied = std::conditional_t<Products_ == 3, half, E>;
  static constexpr int kSize = sizeof(E), kPer = 16 / kSize;
  static constexpr int kDeep = 32 / sizeof(Multiplied);  // values of k of a product
  static constexpr int kRowGroups = BM / 64, kGroups = kRowGroups * KG;
  static constexpr int kThreads = 128 * kGroups;
  // Values of k of a group's stage, and of a stage. With three products, what comes next has no registers but for half.
  static constexpr int kSlice = 128 / kSize / (kSplit ? KG : 1), BK = KG * kSlice;
  // A group's stage of A, in elements. Rows that are not swizzled are padded against bank conflicts. The ring has room
  // for padded rows, so that swizzled ones can begin at a multiple of kAlign bytes.
  static constexpr int kPadded = kSlice + kPer, LDA = kSwizzled ? kSlice : kPadded, kStageA = 64 * LDA;
  static constexpr int kAlign = 1024;
  // Results are stored by so many columns at a time.
  static constexpr int kColumns = BN == 96 ? 96 : BN < 64 ? BN : 64;
  static constexpr int kRing = kSize * kGroups * ST * 64 * kPadded, kSums = 4 * KG * BM * (kColumns + 16);
  static constexpr int kShared = kRing > kSums ? kRing : kSums;
  // Whether threads hold nothing but sums while products are made.
  static constexpr bool kSumsAlone = false;
  // How many neighbours of a row a thread has sums of: the columns of B are packed for that (common/wgmma_drain.cuh).
  static constexpr int kNear = kSplit ? 2 : kSize == 4 ? 4 : 8;
  static constexpr int LDC = kColumns + (kNear == 2 ? 8 : kNear == 4 ? 16 : 4);  // of sums in shared memory
  static constexpr int kPitch = 16 * BN;  // bytes from 16 bytes of depth to the next
  static constexpr int kStageB = BK / kPer * kPitch, kPlane = kSplit ? kStageB / 2 : kStageB;  // bytes
  // A stage is taken in parts, so that what is multiplied and what comes next fit the registers.
  static constexpr int kParts = kShareA ? 1 : BN == 256 ? 4 : BN == 192 ? 2 : 1;
  static constexpr int kSteps = kSlice / kDeep / kParts;               // products of a part
  static constexpr int kTurn = kShareA ? 1 : kParts > 2 ? kParts : 2;  // parts of a turn of the loop
  // How many stages of A are on their way before the first is multiplied. A place is free when its stage is in
  // registers; where tensor cores read it, when they have multiplied it, a stage later.
  static constexpr int kAhead = kShareA ? ST - 2 : ST - 1;
  using Left = A;
  using Sum = std::conditional_t<kSize == 1, int32_t, float>;
  using Acc = Sum[BN / 2];
  using At = GroupPlace<GroupTile>;
  static_assert(BM % 64 == 0 && kGroups <= rt::detail::kMostGroups, "a tile is whole warp groups");
  static_assert(kSteps > 0 && kSlice % (kDeep * kParts) == 0, "a part is whole products deep");
  static_assert(kProducts == 1 || kProducts == 3 && std::is_same_v<E, float>, "float32 out of three products, or one");
};

// Where a thread's first elements are: row g of its warp's 16 and column 2q.
template <class T>
struct GroupPlace {
  int group;    // the warp group's number
  int row, kg;  // its first row of the tile, and its share of k
  int m;        // the first row of the thread's warp
  int lane, g, q;
  RT_DEVICE explicit GroupPlace(int tid) {
    lane = tid % 32;
    group = rt::settled(tid / 128);
    row = rt::settled(group % T::kRowGroups * 64);
    kg = rt::settled(group / T::kRowGroups);
    m = row + tid % 128 / 32 * 16;
    g = lane / 4, q = lane % 4;
  }
};

// A fragment of A: the parts of float32 numbers, or numbers of 16 and 8 bits as they are.
template <class E, int Products>
struct GroupFragment {
  uint32_t hi[4];
  RT_DEVICE void take(const uint32_t (&words)[4]) {
    RT_UNROLL
    for (int i = 0; i < 4; ++i) hi[i] = words[i];
  }
};
// Numbers are rounded to tf32.
template <>
struct GroupFragment<float, 1> {
  uint32_t hi[4];
  RT_DEVICE void take(const uint32_t (&words)[4]) {
    RT_UNROLL
    for (int i = 0; i < 4; ++i) hi[i] = rt::to_tf32(rk::bit_cast<float>(words[i]));
  }
};
template <>
struct GroupFragment<float, 3> : SplitFragment {};

// Begins d += A·B for one fragment of the group's rows.
template <class T>
RT_DEVICE void begin_product(const uint32_t (&a)[4], rt::OperandPlace b, bool add, typename T::Acc& d) {
  if constexpr (std::is_same_v<typename T::Multiplied, float>) {
    rt::multiply_tf32<T::BN>(d, a, b, T::kPitch, add);
  } else if constexpr (T::kSize == 1) {
    constexpr bool kSignedA = std::is_signed_v<typename T::Left>, kSignedB = std::is_signed_v<typename T::Element>;
    rt::multiply_int8<T::BN, kSignedA, kSignedB>(d, a, b, T::kPitch, add);
  } else if constexpr (std::is_same_v<typename T::Multiplied, half>) {
    rt::multiply_f16<T::BN>(d, a, b, T::kPitch, add);
  } else {
    rt::multiply_bf16<T::BN>(d, a, b, T::kPitch, add);
  }
}

// The same for 64 rows of A in shared memory.
template <class T>
RT_DEVICE void begin_product(rt::OperandPlace a, rt::OperandPlace b, bool add, typename T::Acc& d) {
  if constexpr (std::is_same_v<typename T::Element, float>) {
    rt::multiply_tf32_swizzled<T::BN>(d, a, b, T::kPitch, add);
  } else if constexpr (T::kSize == 1) {
    constexpr bool kSignedA = std::is_signed_v<typename T::Left>, kSignedB = std::is_signed_v<typename T::Element>;
    rt::multiply_int8_swizzled<T::BN, kSignedA, kSignedB>(d, a, b, T::kPitch, add);
  } else if constexpr (std::is_same_v<typename T::Element, half>) {
    rt::multiply_f16_swizzled<T::BN>(d, a, b, T::kPitch, add);
  } else {
    rt::multiply_bf16_swizzled<T::BN>(d, a, b, T::kPitch, add);
  }
}

// Multiplies `count` stages. load_a has issue(stage) for one k tile of the group's rows after another.
//
// A warp group takes longer to find its operands and to bring the next ones than tensor cores take to multiply a narrow
// stage. So as little as can be stands between the end of a stage and the products of the next but one: what is there
// to keep count of, and the places of the next operands, are found while tensor cores are at work.
template <class T, class LoadA>
class GroupProducts {
  using E = typename T::Element;

 public:
  RT_DEVICE GroupProducts(const rt::Task& t, LoadA& load_a, int count, const ConstantScale<T>& scale)
      : t_(t),
        at_(t.tid),
        load_a_(load_a),
        stages_(t.stream),
        ring_(reinterpret_cast<E*>(T::kSwizzled ? rt::settled_shared(rt::aligned_shared<T::kAlign>(t.smem)) : t.smem) +
              at_.group * T::ST * T::kStageA),
        row_((at_.m - at_.row + at_.lane % 16) * T::LDA +
             (T::kSwizzled ? at_.lane / 16 ^ at_.lane % 8 : at_.lane / 16) * T::kPer),
        scale_(scale.inverse),
        parts_(count * T::kParts),
        unsent_(count),
        rows_(ring_),
        columns_(ring_) {}

  // The first turn of the loop has nothing to multiply but in its last part, which only fetches the first one: so there
  // is no other code for that.
  RT_DEVICE void run(typename T::Acc& acc) {
    RK_UNROLL(1)
    for (int s = 0; s < T::kAhead; ++s) send();
    if constexpr (kBeside) find();
    RK_UNROLL(1)
    for (int part = -1; part < parts_; part += T::kTurn) {
      step<T::kTurn - 1>(part, acc);
      following<0>(part + 1, acc);
    }
    rt::multiplied(acc);
    if (kBeside && parts_ > 0) stages_.done();  // a sum of nothing has no stages
    stages_.end();
    rt::cp_async_wait<0>();
  }

 private:
  // Whether tensor cores go on with the next part at once. The sums of three products are made apart for each part, and
  // threads add them up in between.
  static constexpr bool kBeside = !T::kSplit;

  // Begins to bring the next stage of A.
  RT_DEVICE void send() {
    if (unsent_ > 0) load_a_.issue(ring_ + sent_ * T::kStageA);
    --unsent_;
    rt::cp_async_commit();
    sent_ = sent_ + 1 == T::ST ? 0 : sent_ + 1;
  }

  // Finds the places of the operands of the next stage.
  RT_DEVICE void find() {
    if constexpr (T::kShareA) rows_ = rt::operand_in_warp(ring_ + fetched_ * T::kStageA);
    find_columns(stages_.ahead());
  }
  // The group's share of a stage of B.
  RT_DEVICE void find_columns(const char* stage) {
    columns_ = rt::operand_in_warp(stage + at_.kg * (T::kPlane / T::KG));
  }

  // Waits for part P of a turn of A. Takes it into registers, unless tensor cores read it in shared memory.
  template <int P>
  RT_DEVICE void fetch() {
    if constexpr (P % T::kParts == 0) {
      rt::cp_async_wait<T::kAhead - 1>();
      if constexpr (T::kShareA) rt::operands_written();
      rt::group_barrier(t_, at_.group);
      send();  // into a place that nobody reads any more: all threads of the group are behind the barrier
      from_ = ring_ + fetched_ * T::kStageA;
      fetched_ = fetched_ + 1 == T::ST ? 0 : fetched_ + 1;
    }
    if constexpr (!T::kShareA) take(P % T::kParts * T::kSteps * T::kDeep, fragments_[P % 2]);
    RT_UNROLL
    for (int i = 0; i < 2 && T::kProducts == 3; ++i) down_[P % 2][i] = scales_.down(i) * scale_;
  }

  // The fragments of a part that begins so deep in the stage.
  RT_DEVICE void take(int from, GroupFragment<E, T::kProducts> (&fragments)[T::kSteps]) {
    if constexpr (T::kProducts == 3) {
      WideFragment wide[T::kSteps];
      RT_UNROLL
      for (int k = 0; k < T::kSteps; ++k) wide[k].load(from_ + row_ + from + k * T::kDeep);
      scales_.cover(wide);
      RT_UNROLL
      for (int k = 0; k < T::kSteps; ++k) fragments[k].take(wide[k], scales_);
    } else {
      RT_UNROLL
      for (int k = 0; k < T::kSteps; ++k) {
        uint32_t r[4];
        const int deep = from + k * T::kDeep;
        rt::load_fragments(r, from_ + (T::kSwizzled ? row_ ^ deep : row_ + deep));
        fragments[k].take(r);
      }
    }
  }

  // Parts P and later of a turn but the last, of which P is number `part`.
  template <int P>
  RT_DEVICE void following(int part, typename T::Acc& acc) {
    if constexpr (P + 1 < T::kTurn) {
      step<P>(part, acc);
      following<P + 1>(part + 1, acc);
    }
  }

  // Begins to multiply part P of a turn, and fetches what comes next meanwhile. The part before has been multiplied by
  // then: its registers, and the place of its stage, are free.
  template <int P>
  RT_DEVICE void step(int part, typename T::Acc& acc) {
    if (part >= parts_) return;
    constexpr bool kMayBeFirst = P == T::kTurn - 1;
    typename T::Acc apart;
    if (!kMayBeFirst || part >= 0) {
      begin<P>(acc, apart);
      if constexpr (kBeside && P % T::kParts == 0) {
        stages_.take();
        if (part > 0) stages_.ending();
      }
      if constexpr (kBeside && P % T::kParts == T::kParts - 1) find();
      if constexpr (kBeside) {
        rt::multiplied_but<1>();
        if (P % T::kParts == 0 && part > 0) stages_.ended();
      }
    }
    if (part + 1 < parts_) fetch<(P + 1) % T::kTurn>();
    if constexpr (!kBeside) {
      if (kMayBeFirst && part < 0) return;
      rt::multiplied(apart);
      RT_UNROLL
      for (int i = 0; i < T::BN / 2; ++i) acc[i] += apart[i] * down_[P % 2][i / 2 % 2];
      if constexpr (P % T::kParts == T::kParts - 1) stages_.done();
    }
  }

  // Begins the products of part P of a turn.
  template <int P>
  RT_DEVICE void begin(typename T::Acc& acc, typename T::Acc& apart) {
    constexpr int kFrom = P % T::kParts * T::kSteps, kPair = 2 * T::kPitch;  // bytes of a product's depth of B
    if constexpr (kFrom == 0 && kBeside) stages_.await();
    // Where threads add up sums there are no registers to know the place early, and each instruction counts.
    if constexpr (kFrom == 0 && !kBeside) find_columns(stages_.next());
    const auto& a = fragments_[P % 2];
    rt::multiply_begin();
    if constexpr (T::kProducts == 3) {
      RT_UNROLL
      for (int k = 0; k < T::kSteps; ++k) {  // what is small is added first, and loses least
        begin_product<T>(a[k].lo, columns_ + (kFrom + k) * kPair, k > 0, apart);
        begin_product<T>(a[k].hi, columns_ + ((kFrom + k) * kPair + T::kPlane), true, apart);
      }
    }
    RT_UNROLL
    for (int k = 0; k < T::kSteps; ++k) {
      if constexpr (T::kShareA) {
        begin_product<T>(rows_ + k * 32, columns_ + k * kPair, true, acc);
      } else {
        begin_product<T>(a[k].hi, columns_ + (kFrom + k) * kPair, true, T::kProducts == 3 ? apart : acc);
      }
    }
    rt::multiply_end();
  }

  const rt::Task& t_;
  typename T::At at_;
  LoadA& load_a_;
  GroupStages<T> stages_;
  E* ring_;
  int row_;                  // where in a stage the row begins whose address the lane gives
  const E* from_ = nullptr;  // the stage that was fetched last
  GroupFragment<E, T::kProducts> fragments_[2][T::kSteps];  // of one part of a stage, and of the one that comes next
  RowScales scales_;                                        // of three products
  float down_[2][2];                                        // what sums of these fragments' rows are multiplied by
  float scale_;                                             // the inverse of the constant's scale
  int parts_;
  int unsent_;                       // how many stages of A have not been sent for
  int sent_ = 0, fetched_ = 0;       // the next ones' places in the ring
  rt::OperandPlace rows_, columns_;  // of the stage that is multiplied next
};

}  // namespace rk
