// Matrix instructions of a warp group, on the emulator. They are carried out as late as hardware may: when the thread
// waits for them. So an rKernel that overwrites operands in shared memory, or reads its sums, before that gets wrong
// numbers.
#pragma once

#include "backend/emu/matrix.h"

namespace rt::detail {

// Where a byte of swizzled rows of 128 bytes is, so many bytes behind the first: the hardware exchanges runs of 16
// bytes by their addresses.
inline const char* swizzled_place(const char* first, int bytes) {
  const uintptr_t plain = shared_address(first) + static_cast<uintptr_t>(bytes);
  const uintptr_t swizzled = plain ^ (plain >> 7 & 7) << 4;
  return first + (swizzled - shared_address(first));
}

// B in shared memory.
struct SharedColumns {
  const char* at;
  int pitch;
  uint32_t (*read)(const SharedColumns&, int column, int k);  // one of those below

  // Word k, of 8, of a column.
  RT_EMU_QUIET uint32_t word(int column, int k) const { return read(*this, column, k); }
};

// Blocks of 16 bytes of depth, so many bytes apart.
RT_EMU_QUIET inline uint32_t read_blocks(const SharedColumns& b, int column, int k) {
  uint32_t w;
  std::memcpy(&w, b.at + k / 4 * b.pitch + 16 * column + 4 * (k % 4), 4);
  return w;
}
// Swizzled rows, each of which is a column.
RT_EMU_QUIET inline uint32_t read_columns(const SharedColumns& b, int column, int k) {
  uint32_t w;
  std::memcpy(&w, swizzled_place(b.at, 128 * column + 4 * k), 4);
  return w;
}
// Swizzled rows, each of which is a depth of 64 columns of 16 bits. A word has two depths.
RT_EMU_QUIET inline uint32_t read_depths(const SharedColumns& b, int column, int k) {
  uint16_t two[2];
  for (int i = 0; i < 2; ++i) {
    const char* rows = b.at + column / 64 * b.pitch;
    std::memcpy(&two[i], swizzled_place(rows, 128 * (2 * k + i) + column % 64 * 2), 2);
  }
  return two[0] | static_cast<uint32_t>(two[1]) << 16;
}

inline void check_blocks(const void* b, int pitch) {
  if (reinterpret_cast<uintptr_t>(b) % 16 != 0 || pitch % 16 != 0) {
    emu::running_block->fail("a matrix in shared memory that is not aligned to 16 bytes");
  }
}
// `within` is how far behind a multiple of 1024 bytes swizzled rows may begin.
inline void check_swizzled(const void* rows, uintptr_t within) {
  if (shared_address(rows) % 1024 > within || shared_address(rows) % 32 != 0) {
    emu::running_block->fail("swizzled rows that do not begin at a multiple of 1024 bytes");
  }
}
constexpr uintptr_t kInRow = 96;     // a product takes two of a row's eight runs of 16 bytes
constexpr uintptr_t kInRows = 1023;  // and A may begin with any row

// A product that a thread has begun: its own elements of D, and the words of the two rows of A that these come from. If
// A is in shared memory, the words are read when the product is carried out.
struct GroupProduct {
  void* d;
  int columns;
  uint32_t rows[2][8];
  const char* a;  // swizzled rows in shared memory; null where A is in registers
  SharedColumns b;
  bool add;
  void (*finish)(const GroupProduct&);  // finish_product of the types that are multiplied
};

// The products that a thread has begun, and how many of them belong to each group that it has ended.
struct BegunProducts {
  std::vector<GroupProduct> products;
  std::vector<size_t> groups;
};

// What each thread of the running block has begun. Blocks are OS threads.
inline BegunProducts& begun_products() {
  static thread_local std::vector<BegunProducts> begun;
  const size_t tid = static_cast<size_t>(thread_index());
  if (begun.size() <= tid) begun.resize(tid + 1);
  return begun[tid];
}

inline void multiply_begin() {}
inline void multiply_end() {
  BegunProducts& begun = begun_products();
  size_t open = begun.products.size();
  for (const size_t n : begun.groups) open -= n;
  begun.groups.push_back(open);
}
inline void operands_written() {}

// Carries out a product. Its products of numbers are added one after another, in the order of their depth.
template <class A, class B, class Sum>
RT_EMU_QUIET inline void finish_product(const GroupProduct& p) {
  constexpr int n = A::kInWord;
  Sum rows[2][8 * n], column[8 * n];
  for (int k = 0; k < 16; ++k) A::expand(p.rows[k / 8][k % 8], rows[k / 8] + k % 8 * n);
  const int q = thread_index() % emu::kWarp % 4;
  for (int j = 0; j < p.columns / 8; ++j) {
    for (int right = 0; right < 2; ++right) {
      for (int k = 0; k < 8; ++k) B::expand(p.b.word(8 * j + 2 * q + right, k), column + k * n);
      for (int lower = 0; lower < 2; ++lower) {
        Sum& d = static_cast<Sum*>(p.d)[4 * j + 2 * lower + right];
        if (!p.add) d = 0;
        add_products(d, rows[lower], column, 8 * n);
      }
    }
  }
}

template <int N, class A, class B, class Sum>
inline void begin_product(Sum (&d)[N / 2], const uint32_t (&a)[4], const SharedColumns& right, bool add) {
  static_assert(N % 8 == 0 && N >= 16 && N <= 256);
  emu::Fragment mine;
  for (int i = 0; i < 4; ++i) mine.words[i] = a[i];
  const emu::Fragment* fragment = emu::running_block->share_fragment(mine);
  const int g = thread_index() % emu::kWarp / 4;
  GroupProduct p{d, N, {}, nullptr, right, add, finish_product<A, B, Sum>};
  for (int k = 0; k < 8; ++k) {
    for (int lower = 0; lower < 2; ++lower) p.rows[lower][k] = fragment[4 * g + k % 4].words[lower + k / 4 * 2];
  }
  begun_products().products.push_back(p);
}

template <int N, class A, class B, class Sum>
inline void begin_swizzled(Sum (&d)[N / 2], const void* a, const SharedColumns& right, bool add) {
  static_assert(N % 8 == 0 && N >= 16 && N <= 256);
  check_swizzled(a, kInRows);
  const char* left = static_cast<const char*>(a);
  begun_products().products.push_back(GroupProduct{d, N, {}, left, right, add, finish_product<A, B, Sum>});
}
inline SharedColumns blocks(const void* b, int pitch) {
  check_blocks(b, pitch);
  return {static_cast<const char*>(b), pitch, read_blocks};
}
inline SharedColumns columns(const void* b) {
  check_swizzled(b, kInRow);
  return {static_cast<const char*>(b), 0, read_columns};
}
inline SharedColumns depths(const void* b, int pitch) {
  check_swizzled(b, 0);
  check_swizzled(static_cast<const char*>(b) + pitch, 0);
  return {static_cast<const char*>(b), pitch, read_depths};
}

struct OperandPlace {
  const char* at;
  OperandPlace(const void* p) : at(static_cast<const char*>(p)) {}
};
inline OperandPlace operator+(OperandPlace p, int bytes) { return p.at + bytes; }
inline OperandPlace operand_in_warp(OperandPlace p) { return p; }

template <int N>
inline void multiply_tf32(float (&d)[N / 2], const uint32_t (&a)[4], OperandPlace b, int pitch, bool add) {
  begin_product<N, Tf32, Tf32>(d, a, blocks(b.at, pitch), add);
}
template <int N>
inline void multiply_f16(float (&d)[N / 2], const uint32_t (&a)[4], OperandPlace b, int pitch, bool add) {
  begin_product<N, Halves, Halves>(d, a, blocks(b.at, pitch), add);
}
template <int N>
inline void multiply_bf16(float (&d)[N / 2], const uint32_t (&a)[4], OperandPlace b, int pitch, bool add) {
  begin_product<N, Bfloats, Bfloats>(d, a, blocks(b.at, pitch), add);
}
template <int N, bool SignedA, bool SignedB>
inline void multiply_int8(int32_t (&d)[N / 2], const uint32_t (&a)[4], OperandPlace b, int pitch, bool add) {
  begin_product<N, Bytes<SignedA>, Bytes<SignedB>>(d, a, blocks(b.at, pitch), add);
}

template <int N>
inline void multiply_tf32_swizzled(float (&d)[N / 2], OperandPlace a, OperandPlace b, int pitch, bool add) {
  begin_swizzled<N, Tf32, Tf32>(d, a.at, blocks(b.at, pitch), add);
}
template <int N>
inline void multiply_f16_swizzled(float (&d)[N / 2], OperandPlace a, OperandPlace b, int pitch, bool add) {
  begin_swizzled<N, Halves, Halves>(d, a.at, blocks(b.at, pitch), add);
}
template <int N>
inline void multiply_bf16_swizzled(float (&d)[N / 2], OperandPlace a, OperandPlace b, int pitch, bool add) {
  begin_swizzled<N, Bfloats, Bfloats>(d, a.at, blocks(b.at, pitch), add);
}
template <int N, bool SignedA, bool SignedB>
inline void multiply_int8_swizzled(int32_t (&d)[N / 2], OperandPlace a, OperandPlace b, int pitch, bool add) {
  begin_swizzled<N, Bytes<SignedA>, Bytes<SignedB>>(d, a.at, blocks(b.at, pitch), add);
}
template <int N>
inline void multiply_f16_columns(float (&d)[N / 2], OperandPlace a, OperandPlace b, bool add) {
  begin_swizzled<N, Halves, Halves>(d, a.at, columns(b.at), add);
}
template <int N>
inline void multiply_f16_depths(float (&d)[N / 2], const uint32_t (&a)[4], OperandPlace b, int pitch, bool add) {
  begin_product<N, Halves, Halves>(d, a, depths(b.at, pitch), add);
}
template <int N>
inline void multiply_bf16_columns(float (&d)[N / 2], OperandPlace a, OperandPlace b, bool add) {
  begin_swizzled<N, Bfloats, Bfloats>(d, a.at, columns(b.at), add);
}
template <int N>
inline void multiply_bf16_depths(float (&d)[N / 2], const uint32_t (&a)[4], OperandPlace b, int pitch, bool add) {
  begin_product<N, Bfloats, Bfloats>(d, a, depths(b.at, pitch), add);
}

// Reads the words of A from shared memory: of rows g and g + 8 of the warp's 16.
inline void read_rows(GroupProduct& p) {
  const int warp = thread_index() % 128 / emu::kWarp, g = thread_index() % emu::kWarp / 4;
  for (int k = 0; k < 8; ++k) {
    for (int lower = 0; lower < 2; ++lower)
      std::memcpy(&p.rows[lower][k], swizzled_place(p.a, 128 * (16 * warp + g + 8 * lower) + 4 * k), 4);
  }
}

// Carries out all products but those of the latest groups, so many of them.
inline void finish_groups(size_t left) {
  BegunProducts& begun = begun_products();
  if (begun.groups.size() <= left) return;
  const auto last = begun.groups.end() - static_cast<std::ptrdiff_t>(left);
  size_t n = 0;
  for (auto g = begun.groups.begin(); g != last; ++g) n += *g;
  for (size_t i = 0; i < n; ++i) {
    GroupProduct& p = begun.products[i];
    if (p.a) read_rows(p);
    p.finish(p);
  }
  begun.products.erase(begun.products.begin(), begun.products.begin() + static_cast<std::ptrdiff_t>(n));
  begun.groups.erase(begun.groups.begin(), last);
}

template <class Sum, int M>
inline void multiplied(Sum (&)[M]) {
  finish_groups(0);
}
template <int Groups>
inline void multiplied_but() {
  finish_groups(Groups);
}
template <int Groups, int M>
inline void multiplied_but(float (&)[M]) {
  finish_groups(Groups);
}

}  // namespace rt::detail
