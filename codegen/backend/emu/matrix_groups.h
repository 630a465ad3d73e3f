// Matrix instructions of a warp group, on the emulator. They are carried out as late as hardware may: when the thread
// waits for them. So an rKernel that overwrites B or reads its sums before that gets wrong numbers.
#pragma once

#include <vector>

#include "backend/emu/matrix.h"

namespace rt::detail {

// A product that a thread has begun: its own elements of D, and the words of the two rows of A that these come from.
struct GroupProduct {
  float* d;
  int columns;
  uint32_t rows[2][8];
  const char* b;
  int pitch;
  bool add;
  void (*add_word)(float& d, uint32_t x, uint32_t y);  // d += the products of the numbers of a word of A and one of B
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

template <int N>
inline void begin_product(float (&d)[N / 2], const uint32_t (&a)[4], const void* b, int pitch, bool add,
                          void (*add_word)(float&, uint32_t, uint32_t)) {
  static_assert(N % 8 == 0 && N >= 16 && N <= 256);
  if (reinterpret_cast<uintptr_t>(b) % 16 != 0 || pitch % 16 != 0) {
    emu::running_block->fail("a matrix in shared memory that is not aligned to 16 bytes");
  }
  const uint32_t none[2] = {0, 0};
  const uint32_t(*fragment)[6] = emu::running_block->share_fragments(a, none);
  const int g = thread_index() % emu::kWarp / 4;
  GroupProduct p{d, N, {}, static_cast<const char*>(b), pitch, add, add_word};
  for (int k = 0; k < 8; ++k) {
    for (int lower = 0; lower < 2; ++lower) p.rows[lower][k] = fragment[4 * g + k % 4][lower + k / 4 * 2];
  }
  begun_products().push_back(p);
}

inline void add_tf32(float& d, uint32_t x, uint32_t y) { d += tf32_value(x) * tf32_value(y); }
template <float (*Value)(uint16_t)>
inline void add_pair(float& d, uint32_t x, uint32_t y) {
  d += Value(static_cast<uint16_t>(x)) * Value(static_cast<uint16_t>(y));
  d += Value(static_cast<uint16_t>(x >> 16)) * Value(static_cast<uint16_t>(y >> 16));
}
template <int N>
inline void multiply_tf32(float (&d)[N / 2], const uint32_t (&a)[4], const void* b, int pitch, bool add) {
  begin_product<N>(d, a, b, pitch, add, add_tf32);
}
template <int N>
inline void multiply_f16(float (&d)[N / 2], const uint32_t (&a)[4], const void* b, int pitch, bool add) {
  begin_product<N>(d, a, b, pitch, add, add_pair<float16_value>);
}
template <int N>
inline void multiply_bf16(float (&d)[N / 2], const uint32_t (&a)[4], const void* b, int pitch, bool add) {
  begin_product<N>(d, a, b, pitch, add, add_pair<bfloat16_value>);
}

// Products are exact in float32. They are added one after another, in the order of their depth.
inline void finish(const GroupProduct& p) {
  const int q = thread_index() % emu::kWarp % 4;
  for (int j = 0; j < p.columns / 8; ++j) {
    for (int e = 0; e < 4; ++e) {
      float& d = p.d[4 * j + e];
      if (!p.add) d = 0;
      for (int k = 0; k < 8; ++k) {
        uint32_t y;
        std::memcpy(&y, p.b + k / 4 * p.pitch + 16 * (8 * j + 2 * q + e % 2) + 4 * (k % 4), 4);
        p.add_word(d, p.rows[e / 2][k], y);
      }
    }
  }
}

template <int M>
inline void multiplied(float (&)[M]) {
  for (const GroupProduct& p : begun_products()) finish(p);
  begun_products().clear();
}

}  // namespace rt::detail
