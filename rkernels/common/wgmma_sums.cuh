// How the sums of warp groups leave through shared memory, where threads cannot store their own (wgmma_drain.cuh): some
// columns after another, as the sums that threads have in registers or as what the epilogue takes. TileDrain is what
// tiles do whose rows of A are brought by threads, in either way.
#pragma once

#include "common/wgmma_drain.cuh"

namespace rk {

// Where in a row of the tile the first of the two sums is that thread q has of the product's columns 8·j to 8·j + 7.
template <class T>
RT_DEVICE constexpr int column_of_sums(int j, int q) {
  constexpr int kEights = T::kNear / 2;
  return j / kEights * 8 * kEights + q * T::kNear + j % kEights * 2;
}

// What sums are on their way through shared memory: what the epilogue takes, if that is shorter, unless several groups'
// sums have to be added up there.
template <class T, class Epi>
using SumOnTheWay = std::conditional_t<T::KG == 1 && (sizeof(typename Epi::In) < sizeof(typename T::Sum)),
                                       typename Epi::In, typename T::Sum>;

// From a row of sums in shared memory to the next one, in elements: lanes that put down their neighbours of several
// rows meet in no bank.
template <class T, class Sum>
constexpr int kRowPitch = sizeof(Sum) == 2 ? T::kColumns + (T::kColumns % 64 == 0 ? 32 : 0) : T::LDC;

// Puts what a thread owns of columns From to From + T::kColumns of the tile into its group's sums. Its two rows go to
// rows[0] and rows[1] there; if Some, not where these are below zero.
template <class T, int From, bool Some, class Sum>
RT_DEVICE void put_columns(const typename T::At& at, const typename T::Acc& acc, const int (&rows)[2], Sum* sums) {
  constexpr int kFit = 16 / sizeof(Sum), kPut = T::kNear < kFit ? T::kNear : kFit;  // neighbours at a time
  sums += at.kg * T::BM * kRowPitch<T, Sum>;
  RT_UNROLL
  for (int j = 0; j < T::kColumns / 8; j += kPut / 2) {
    RT_UNROLL
    for (int r = 0; r < 2; ++r) {
      if (Some && rows[r] < 0) continue;
      Pack<Sum, kPut> put;
      RT_UNROLL
      for (int e = 0; e < kPut; ++e) {
        put.v[e] = static_cast<Sum>(acc[From / 2 + 4 * (j + e / 2) + 2 * r + e % 2]);
      }
      *reinterpret_cast<Pack<Sum, kPut>*>(sums + rows[r] * kRowPitch<T, Sum> + column_of_sums<T>(j, at.q)) = put;
    }
  }
}

// The same where `from` is known only when the program runs.
template <class T, bool Some, int First = 0, class Sum>
RT_DEVICE void put_columns(const typename T::At& at, const typename T::Acc& acc, const int (&rows)[2], int from,
                           Sum* sums) {
  if (from == First) {
    put_columns<T, First, Some>(at, acc, rows, sums);
  } else if constexpr (First + T::kColumns < T::BN) {
    put_columns<T, Some, First + T::kColumns>(at, acc, rows, from, sums);
  }
}

// What a thread may hold beside operands in registers, or beside sums of other rows.
constexpr Held kHeldBeside = {64, 16};

// How many elements a thread of a tile T may have in registers at once when it stores, beside the sums of the columns
// that come later.
template <class T>
constexpr int kMostDrained = T::BN > 128 ? 8 : 16;

// How a tile of threads that bring their rows of A stores its results: what the epilogue needs, as far as there are
// registers, is asked for before the tile is multiplied. Groups that share k give each other sums through their rings.
// Of epilogues that compute no packs, and of three products, T::kColumns columns leave after another.
enum class DrainForm { kTogether, kAlone, kShared };
template <class T, class Epi>
constexpr DrainForm kDrainForm = kDrainsAlone<T, Epi>    ? DrainForm::kAlone
                                 : kDrainsShared<T, Epi> ? DrainForm::kShared
                                                         : DrainForm::kTogether;
template <class T, class Epi, DrainForm = kDrainForm<T, Epi>>
class TileDrain {
  using Early = std::conditional_t<
      (Epi::kPack > 1),
      EarlyRows<PackDrain<T::kThreads, T::BM, T::kColumns, kMostDrained<T>, Epi>, Epi, T::BN / T::kColumns>, NoRows>;

 public:
  RT_DEVICE TileDrain(const rt::Task& t, const rt::Operand3& out, const typename Epi::Args& epi, const TilePlace& place)
      : t_(t), out_(out), epi_(epi), place_(place) {
    if constexpr (Early::kUsed) early_.template load<T::kColumns>(t, epi, place);
  }
  RT_DEVICE void store(const typename T::Acc& acc) {
    const typename T::At at(t_.tid);
    using Sum = SumOnTheWay<T, Epi>;
    Sum* sums = reinterpret_cast<Sum*>(t_.smem);
    const int rows[2] = {at.m + at.g, at.m + at.g + 8};
    TilePlace columns = place_;
    RK_UNROLL(1)
    for (int from = 0; from < T::BN && columns.i2 < place_.end2; from += T::kColumns) {
      t_.sync();
      put_columns<T, false>(at, acc, rows, from, sums);
      t_.sync();
      drain_sums<T::kThreads, T::BM, T::kColumns, kRowPitch<T, Sum>, T::KG, kMostDrained<T>, Epi>(t_, sums, out_, epi_,
                                                                                                  columns, early_);
      columns.i2 += T::kColumns;
    }
  }

 private:
  const rt::Task& t_;
  const rt::Operand3& out_;
  const typename Epi::Args& epi_;
  TilePlace place_;
  Early early_;
};

template <class T, class Epi>
class TileDrain<T, Epi, DrainForm::kAlone> {
 public:
  RT_DEVICE TileDrain(const rt::Task& t, const rt::Operand3& out, const typename Epi::Args& epi, const TilePlace& place)
      : drain_(t, epi, SumPlace<typename Epi::Out>::template of<T>(t, out, place, typename T::At(t.tid).row)) {}
  RT_DEVICE void store(const typename T::Acc& acc) { drain_.store(acc); }

 private:
  GroupDrain<T, Epi, kHeldBeside> drain_;
};

template <class T, class Epi>
class TileDrain<T, Epi, DrainForm::kShared> {
  using Drain = SharedDrain<T, Epi, kHeldBeside>;
  static_assert(Drain::kBytes * T::kGroups <= T::kShared);

 public:
  RT_DEVICE TileDrain(const rt::Task& t, const rt::Operand3& out, const typename Epi::Args& epi, const TilePlace& place)
      : t_(t), drain_(t, own(t, 0), own(t, T::kRowGroups), out, epi, place) {}
  RT_DEVICE void store(const typename T::Acc& acc) {
    t_.sync();  // nobody reads the rings any more
    drain_.store(acc);
  }

 private:
  // The memory of the group so many groups further on.
  RT_DEVICE static char* own(const rt::Task& t, int further) {
    return t.smem + (typename T::At(t.tid).group + further) % T::kGroups * Drain::kBytes;
  }

  const rt::Task& t_;
  Drain drain_;
};

}  // namespace rk
