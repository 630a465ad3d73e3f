// Matrix instructions of a warp group, on the emulator. They are carried out as late as hardware may: when the thread
// waits for them. So an rKernel that overwrites B or reads its sums before that gets wrong numbers.
#pragma once

#include <vector>

#include "backend/emu/matrix.h"

namespace rt::detail {

// A product that a thread has begun: its own elements of D, and the words of the two rows of A that these come from.
struct GroupProduct {
  void* d;
  int columns;
  uint32_t rows[2][8];
  const char* b;
  int pitch;
  bool add;
  void (*finish)(const GroupProduct&);  // finish_product of the types that are multiplied
};

// The products that each thread of the running block has begun. Blocks are OS threads.
inline std::vector<GroupProduct>& begun_products() {
  static thread_local std::vector<std::vector<GroupProduct>> begun;
  const size_t tid = static_cast<size_t>(thread_index());
  if (begun.size() <= tid) begun.resize(tid + 1);
  return begun[tid];
}

inline void multiply_begin() {}
inline void multiply_end() {}

// Adds the products of the numbers of a word of A and one of B. Those of floats are exact in float32.
inline void add_tf32(float& d, uint32_t x, uint32_t y) { d += tf32_value(x) * tf32_value(y); }
template <float (*Value)(uint16_t)>
inline void add_pair(float& d, uint32_t x, uint32_t y) {
  d += Value(static_cast<uint16_t>(x)) * Value(static_cast<uint16_t>(y));
  d += Value(static_cast<uint16_t>(x >> 16)) * Value(static_cast<uint16_t>(y >> 16));
}
// Sums wrap around, which is defined for numbers without a sign.
template <bool SignedA, bool SignedB>
inline void add_bytes(int32_t& d, uint32_t x, uint32_t y) {
  uint32_t sum = static_cast<uint32_t>(d);
  for (int i = 0; i < 4; ++i) {
    sum += static_cast<uint32_t>(byte_value<SignedA>(x, i) * byte_value<SignedB>(y, i));
  }
  d = static_cast<int32_t>(sum);
}

// Carries out a product: the words of each sum are added one after another, in the order of their depth.
template <class Sum, void (*AddWord)(Sum&, uint32_t, uint32_t)>
inline void finish_product(const GroupProduct& p) {
  const int q = thread_index() % emu::kWarp % 4;
  for (int j = 0; j < p.columns / 8; ++j) {
    for (int e = 0; e < 4; ++e) {
      Sum& d = static_cast<Sum*>(p.d)[4 * j + e];
      if (!p.add) d = 0;
      for (int k = 0; k < 8; ++k) {
        uint32_t y;
        std::memcpy(&y, p.b + k / 4 * p.pitch + 16 * (8 * j + 2 * q + e % 2) + 4 * (k % 4), 4);
        AddWord(d, p.rows[e / 2][k], y);
      }
    }
  }
}

template <int N, class Sum, void (*AddWord)(Sum&, uint32_t, uint32_t)>
inline void begin_product(Sum (&d)[N / 2], const uint32_t (&a)[4], const void* b, int pitch, bool add) {
  static_assert(N % 8 == 0 && N >= 16 && N <= 256);
  if (reinterpret_cast<uintptr_t>(b) % 16 != 0 || pitch % 16 != 0) {
    emu::running_block->fail("a matrix in shared memory that is not aligned to 16 bytes");
  }
  const uint32_t none[2] = {0, 0};
  const uint32_t(*fragment)[6] = emu::running_block->share_fragments(a, none);
  const int g = thread_index() % emu::kWarp / 4;
  GroupProduct p{d, N, {}, static_cast<const char*>(b), pitch, add, finish_product<Sum, AddWord>};
  for (int k = 0; k < 8; ++k) {
    for (int lower = 0; lower < 2; ++lower) p.rows[lower][k] = fragment[4 * g + k % 4][lower + k / 4 * 2];
  }
  begun_products().push_back(p);
}

template <int N>
inline void multiply_tf32(float (&d)[N / 2], const uint32_t (&a)[4], const void* b, int pitch, bool add) {
  begin_product<N, float, add_tf32>(d, a, b, pitch, add);
}
template <int N>
inline void multiply_f16(float (&d)[N / 2], const uint32_t (&a)[4], const void* b, int pitch, bool add) {
  begin_product<N, float, add_pair<float16_value>>(d, a, b, pitch, add);
}
template <int N>
inline void multiply_bf16(float (&d)[N / 2], const uint32_t (&a)[4], const void* b, int pitch, bool add) {
  begin_product<N, float, add_pair<bfloat16_value>>(d, a, b, pitch, add);
}
template <int N, bool SignedA, bool SignedB>
inline void multiply_int8(int32_t (&d)[N / 2], const uint32_t (&a)[4], const void* b, int pitch, bool add) {
  begin_product<N, int32_t, add_bytes<SignedA, SignedB>>(d, a, b, pitch, add);
}

template <class Sum, int M>
inline void multiplied(Sum (&)[M]) {
  for (const GroupProduct& p : begun_products()) p.finish(p);
  begun_products().clear();
}

}  // namespace rt::detail
