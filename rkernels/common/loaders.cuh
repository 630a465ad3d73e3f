// Loaders fill the stages of a tiled contraction (tile.cuh). They copy asynchronously, except where a prologue computes
// with the elements on their way.
#pragma once

#include "common/modes.cuh"
#include "common/tile.cuh"
#include "rt/device/device.cuh"

namespace rk {

struct NoPrologue {
  struct Args {};
  static constexpr bool kIdentity = true;
  template <class T>
  static RT_DEVICE T apply(const Args&, T x) {
    return x;
  }
};

// How N neighbours of type Src come to a stage as Dst, aligned to their size on both sides. Where they come as they
// are, and have the 4 bytes that it takes at least, the copy is asynchronous, and take() has nothing to do. Otherwise
// they pass through registers: all loads of a batch stand before its first store, so that they are on their way
// together. The padding is what is zero behind the prologue: the prologue does not see it.
template <class Src, class Dst, int N, class Pro>
struct Transfer {
  static constexpr bool kAsync = Pro::kIdentity && std::is_same_v<Src, Dst> && N * sizeof(Src) >= 4;
  Pack<Src, kAsync ? 1 : N> held;

  RT_DEVICE void take(const Src* src, bool ok) {
    if constexpr (!kAsync) held = ok ? *reinterpret_cast<const Pack<Src, N>*>(src) : Pack<Src, N>{};
  }
  RT_DEVICE void put(Dst* dst, const Src* src, bool ok, const typename Pro::Args& pro) const {
    if constexpr (kAsync) {
      rt::cp_async_or_zero<N * sizeof(Src)>(dst, src, ok);
    } else if constexpr (std::is_same_v<Src, Dst> && Pro::kIdentity) {
      *reinterpret_cast<Pack<Src, N>*>(dst) = held;
    } else {
      Pack<Dst, N> out;
      RT_UNROLL
      for (int i = 0; i < N; ++i) out.v[i] = ok ? Dst(float(Pro::apply(pro, held.v[i]))) : Dst();
      *reinterpret_cast<Pack<Dst, N>*>(dst) = out;
    }
  }
};

// What stands outside of an input. Numbers of 8 bits have a zero point, so that it need not be 0; of other types it is.
// Integers of 32 bits are four of 8 bits.
template <class Src, bool Bytes = std::is_integral_v<Src>>
struct Padding {
  Padding() = default;
  RT_DEVICE explicit Padding(uint32_t) {}
};
template <class Src>
struct Padding<Src, true> {
  uint32_t word = 0;  // the number, in each byte
  Padding() = default;
  RT_DEVICE explicit Padding(uint32_t bytes) : word(bytes) {}
};

// copy.put, with the padding in the place of elements that do not exist.
template <class Src, class Dst, int N, class Pro>
RT_DEVICE void put_padded(const Transfer<Src, Dst, N, Pro>& copy, Dst* dst, const Src* src, bool ok,
                          const typename Pro::Args& pro, const Padding<Src>& padding) {
  if constexpr (std::is_integral_v<Src>) {
    if (!ok && padding.word != 0) {
      if constexpr (N >= 4) {
        Pack<uint32_t, N / 4> words;
        RT_UNROLL
        for (int i = 0; i < N / 4; ++i) words.v[i] = padding.word;
        *reinterpret_cast<Pack<uint32_t, N / 4>*>(dst) = words;
      } else {
        *dst = static_cast<Dst>(padding.word);
      }
      return;
    }
  }
  copy.put(dst, src, ok, pro);
}

// One element, or four neighbours, by themselves.
template <class Pro, class Src, class Dst>
RT_DEVICE void put1(Dst* dst, const Src* src, bool ok, const typename Pro::Args& pro) {
  Transfer<Src, Dst, 1, Pro> copy;
  copy.take(src, ok);
  copy.put(dst, src, ok, pro);
}
template <class Pro, class Src, class Dst>
RT_DEVICE void put4(Dst* dst, const Src* src, bool ok, const typename Pro::Args& pro) {
  Transfer<Src, Dst, 4, Pro> copy;
  copy.take(src, ok);
  copy.put(dst, src, ok, pro);
}

// Brings a ROWS×COLS window of a strided matrix of Src to [row][col] of a stage of Dst, with LD elements a row. k runs
// along the columns (KCols) or along the rows. rows and cols are what is left of the matrix from the window's corner
// at k = 0. Each call of issue() brings the next k tile. The loader keeps copies of what it needs of an rTask's
// arguments: they are in shared memory, which any asynchronous copy may change as far as nvcc can know, so it would
// read them again after each copy.
//
// Swizzled stages have rows of 128 bytes whose eight runs of 16 bytes change places: run r of row i is the one at
// r ^ i % 8. Then a row's copies fill one line of all banks, and so do eight reads of the same run of different rows.
// Tensor cores know this order.
template <int Threads, int ROWS, int COLS, int LD, bool KCols, int Mode, class Pro, class Src = float, class Dst = Src,
          bool Swizzled = false>
struct StridedLoader {
  static constexpr bool kConstant = false;
  // A thread's elements, or runs of neighbours, are one below the other, and the lanes of a warp lie along the columns.
  // Under kLoadByRow a thread's elements are beside each other.
  static constexpr int kVec = Mode == kLoadVec4 ? kPerLoad<Src> : 1;
  static constexpr int kAcross = Mode == kLoadByRow ? ROWS : COLS / kVec;
  static constexpr int kStep = Threads / kAcross, kCount = ROWS * COLS / kVec;
  static constexpr bool kAlongRows = Mode != kLoadByRow;
  static constexpr int kPitch = kStep * (kAlongRows ? LD : 1);
  static constexpr int kCopies = ceil_div(kCount, Threads),
                       kBatch = kCopies < 4 ? kCopies : 4;  // in all, in a turn of a loop
  static_assert(Threads % kAcross == 0 && (kCount % Threads == 0 || kCount < Threads),
                "threads cover whole lines of the window");
  static_assert(!Swizzled || kAlongRows && kStep % 8 == 0, "a thread's runs are at the same place of each row");

  using Copy = Transfer<Src, Dst, kVec, Pro>;

  const Src* next;
  int row_step, col_step;
  int left_along, left_across;  // how much of the matrix is left from the thread's first element on
  int to;                       // where that is in a stage
  bool mine;
  const typename Pro::Args& pro;

  RT_DEVICE StridedLoader(const Src* base, int64_t to_row, int64_t to_col, int rows, int cols, int tid,
                          const typename Pro::Args& prologue)
      : row_step(static_cast<int>(to_row)),
        col_step(Mode == kLoadVec4 ? 1 : static_cast<int>(to_col)),
        mine(kCount % Threads == 0 || tid < kCount),
        pro(prologue) {
    const int across = tid % kAcross * kVec, along = tid / kAcross;
    const int r = kAlongRows ? along : across, c = kAlongRows ? across : along;
    next = base + place(r, row_step, place(c, col_step));
    left_along = kAlongRows ? rows - r : cols - c;
    left_across = kAlongRows ? cols - c : rows - r;
    to = r * LD + (Swizzled ? c ^ r % 8 * kPerLoad<Dst> : c);
  }

  RT_DEVICE void issue(Dst* stage) {
    int left = left_across > 0 ? left_along : 0;
    const Src* src = next;
    Dst* dst = stage + to;
    const int step = kAlongRows ? row_step : col_step;
    if (mine) {
      RK_UNROLL(1)
      for (int i = 0; i < kCopies; i += kBatch) {
        Copy copies[kBatch];
        const Src* from = src;
        RT_UNROLL
        for (int b = 0; b < kBatch; ++b) {
          copies[b].take(from, b * kStep < left);
          from = ahead(from, kStep, step);
        }
        RT_UNROLL
        for (int b = 0; b < kBatch; ++b) {
          copies[b].put(dst + b * kPitch, src, b * kStep < left, pro);
          src = ahead(src, kStep, step);
        }
        dst += kBatch * kPitch;
        left -= kBatch * kStep;
      }
    }
    pass<KCols ? COLS : ROWS>();
  }
  // Goes on by so many values of k.
  template <int Count>
  RT_DEVICE void pass() {
    next = ahead(next, Count, KCols ? col_step : row_step);
    (KCols == kAlongRows ? left_across : left_along) -= Count;
  }
};

// What a thread block announces of the weights that it will want. All blocks of a launch together should leave room in
// L2 for what other launches have put there.
constexpr int kMostAnnounced = 128 << 10;

// Brings constants of type Src that are packed as one contiguous ROWS×COLS block for each k tile, padding included, to
// a stage of Dst.
template <int Threads, int ROWS, int COLS, int LD, class Src = float, class Dst = Src>
struct PackedLoader {
  static constexpr int kVec = kPerLoad<Src>, kAcross = COLS / kVec, kCount = ROWS * kAcross;
  static constexpr bool kConstant = true;
  static_assert(COLS % kVec == 0 && Threads % kAcross == 0, "threads cover whole rows of the block");
  static_assert(kCount % Threads == 0 || kCount < Threads);

  const Src* next;
  int to;
  bool mine, announces;

  // `first` says that of the rTasks that read these constants it is this one that announces them.
  RT_DEVICE PackedLoader(const Src* blocks, int tid, bool first = false)
      : next(blocks + kVec * tid),
        to(tid / kAcross * LD + tid % kAcross * kVec),
        mine(kCount % Threads == 0 || tid < kCount),
        announces(first && tid == 0) {}

  RT_DEVICE void issue(Dst* stage) {
    if (mine) {
      RT_UNROLL
      for (int i = 0; i < ceil_div(kCount, Threads); ++i) {
        Dst* dst = stage + to + i * (Threads / kAcross * LD);
        const Src* src = next + i * Threads * kVec;
        if constexpr (std::is_same_v<Src, Dst>) {
          rt::cp_async16(dst, src);
        } else {
          Transfer<Src, Dst, kVec, NoPrologue> copy;
          copy.take(src, true);
          copy.put(dst, src, true, {});
        }
      }
    }
    next += ROWS * COLS;
  }

  // One thread says that `blocks` blocks from the next one on will be wanted.
  RT_DEVICE void announce(int blocks) const {
    constexpr int kBlock = ROWS * COLS * static_cast<int>(sizeof(Src)), kMost = kMostAnnounced / kBlock;
    if (announces && blocks > 0) rt::prefetch(next, (blocks < kMost ? blocks : kMost) * kBlock);
  }
};

}  // namespace rk
