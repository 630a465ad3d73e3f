// Products of warp groups whose rows of A come as boxes by the copy engine (rt/device/box_rings.cuh), which rounds
// float32 to tf32 and leaves numbers of 16 bits as they are. Tensor cores read both operands in shared memory; the
// groups' threads only begin products and wait. One more warp sends for boxes, tile after tile.
//
//   sender         box s + ST - 1, when the groups have given back box s - 1
//   groups         begin s   │ s - 1 is done: give A and B back │ A(s + 1), B(s + 1) come │ …
//   tensor cores   s - 1 ──▶ │ s ───────────────────────────────────────────────────────▶ …
#pragma once

#include "common/wgmma.cuh"
#include "common/wgmma_drain.cuh"
#include "rt/device/box_rings.cuh"

namespace rk {

// A tile whose groups have their sums leave through areas of their own, beside the rings, so that no group waits for
// another one, but for groups that share k: they have their boxes in one ring, and add up their sums.
template <class E, int BM_, int BN_, int KG_, int ST_>
struct StripTile : GroupTile<E, E, BM_, BN_, KG_, ST_, 1, true> {
  using Base = GroupTile<E, E, BM_, BN_, KG_, ST_, 1, true>;
  using At = GroupPlace<StripTile>;
  using Rings = rt::BoxRings<Base::kRowGroups, ST_, 64, KG_>;
  using Ring = typename Rings::Reader;
  static constexpr int kColumns = 32, LDC = kColumns + 8;  // of the results that are stored at a time
  static constexpr int kSumBytes = 4 * 64 * LDC;           // of a group
  // The groups' sums are behind the rings.
  static constexpr int kSums = Rings::kBytes;
  static constexpr int kShared = Rings::kAlign + kSums + Base::kGroups * kSumBytes;
  static_assert(Base::kSlice * Base::kSize == 128, "a group's stage is a box wide");

  RT_DEVICE static char* first(const rt::Task& t) { return rt::aligned_shared<Rings::kAlign>(t.smem); }
  // The ring of the thread's group.
  RT_DEVICE static Ring ring(const rt::Task& t, const At& at) { return Ring(t, first(t), at.row / 64); }
  template <class Walk>
  RT_DEVICE static typename Rings::template Sender<Walk> sender(const rt::Task& t, const Walk& walk) {
    return {t, first(t), walk};
  }
  // For how many warps a warp of a group gives back stages of B: one does so for the sender, too.
  RT_DEVICE static int warps(const rt::Task& t) { return rt::settled(t.tid / 32) == 0 ? 2 : 1; }
  RT_DEVICE static float* sums(const rt::Task& t, int group) {
    return reinterpret_cast<float*>(first(t) + kSums + group * kSumBytes);
  }
};

// Multiplies the rows of the thread's group by the columns of tile after tile, of `count` stages each.
template <class T>
class BoxProducts {
 public:
  RT_DEVICE BoxProducts(const rt::Task& t, int count)
      : at_(t.tid), boxes_(T::ring(t, at_)), stages_(t.stream, T::warps(t)), count_(count) {
    t.sync();
  }

  // Adds the products of the next tile to acc.
  RT_DEVICE void run(typename T::Acc& acc) {
    RK_UNROLL(1)
    for (int s = 0; s < count_; ++s) {
      begin(acc);
      rt::multiplied_but<1>();
      if (s > 0) done();
    }
    rt::multiplied(acc);
    done();
  }

  // Behind the last tile.
  RT_DEVICE void end() { stages_.end(); }

 private:
  // Begins the products of the next stage.
  RT_DEVICE void begin(typename T::Acc& acc) {
    const rt::OperandPlace rows = rt::operand_in_warp(boxes_.next() + at_.kg * T::Rings::kBoxBytes),
                           columns = rt::operand_in_warp(stages_.next() + at_.kg * (T::kPlane / T::KG));
    rt::multiply_begin();
    RT_UNROLL
    for (int k = 0; k < T::kSlice / T::kDeep; ++k) {
      begin_product<T>(rows + 32 * k, columns + k * (2 * T::kPitch), true, acc);
    }
    rt::multiply_end();
  }

  RT_DEVICE void done() {
    boxes_.done();
    stages_.done();
  }

  typename T::At at_;
  typename T::Ring boxes_;
  GroupStages<T> stages_;
  int count_;  // stages of a tile
};

// Stores a group's sums of 64 rows of a tile, from the given row on, through the epilogue, T::kColumns columns after
// another, and through shared memory of its own.
template <class T, class Epi>
RT_DEVICE void drain_rows(const rt::Task& t, const typename T::Acc& acc, float* sums, int group, int row,
                          const rt::Operand3& out, const typename Epi::Args& epi, const TilePlace& tile) {
  if constexpr (kDrainsAlone<T, Epi>) {
    static_assert(GroupDrain<T, Epi>::kBytes <= T::kSumBytes);
    GroupDrain<T, Epi>(t, reinterpret_cast<char*>(sums), group, row, out, epi, tile).store(acc);
    return;
  }
  const typename T::At at(t.tid);
  const int first = at.m % 64 + at.g, rows[2] = {first, first + 8};
  rt::Task alone = t;
  alone.tid = t.tid % 128;
  TilePlace place = tile;
  place.i1 += row;
  RK_UNROLL(1)
  for (int from = 0; from < T::BN && place.i2 < place.end2; from += T::kColumns) {
    rt::group_barrier(t, group);
    put_columns<T, false>(at, acc, rows, from, sums);
    rt::group_barrier(t, group);
    drain_sums<128, 64, T::kColumns, T::LDC, 1, kMostDrained<T>, Epi>(alone, sums, out, epi, place);
    place.i2 += T::kColumns;
  }
}

// The same for the rows of the thread's group. Groups that share k add up their sums.
template <class T, class Epi>
RT_DEVICE void drain_group(const rt::Task& t, const typename T::Acc& acc, const rt::Operand3& out,
                           const typename Epi::Args& epi, const TilePlace& tile) {
  const typename T::At at(t.tid);
  float* sums = T::sums(t, at.group);
  if constexpr (T::KG > 1) {
    const int both[2] = {at.m + at.g, at.m + at.g + 8};
    TilePlace columns = tile;
    sums = T::sums(t, 0);
    RK_UNROLL(1)
    for (int from = 0; from < T::BN && columns.i2 < tile.end2; from += T::kColumns) {
      t.sync();
      put_columns<T, false>(at, acc, both, from, sums);
      t.sync();
      drain_sums<T::kThreads, T::BM, T::kColumns, T::LDC, T::KG, kMostDrained<T>, Epi>(t, sums, out, epi, columns);
      columns.i2 += T::kColumns;
    }
  } else {
    drain_rows<T, Epi>(t, acc, sums, at.group, at.row, out, epi, tile);
  }
}

}  // namespace rk
