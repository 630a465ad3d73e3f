// Matrix instructions of a warp, on the emulator. Fragments lie in the lanes as the PTX ISA says, so that an rKernel
// that takes an element from the wrong lane gets a wrong number here too.
#pragma once

#include "backend/emu/block.h"

namespace rt::detail {

// As sm_90 does: ties to even. Infinities and NaNs stay as they are; rounding them up would make other numbers of them.
inline uint32_t to_tf32(float x) {
  uint32_t u;
  std::memcpy(&u, &x, 4);
  if ((u & 0x7f800000u) == 0x7f800000u) return u;
  return (u + 0xfffu + (u >> 13 & 1u)) & 0xffffe000u;
}

// The number that a tensor core sees: the lower 13 bits of an operand do not count.
RT_EMU_QUIET inline float tf32_value(uint32_t u) {
  u &= 0xffffe000u;
  float x;
  std::memcpy(&x, &u, 4);
  return x;
}

// The address of row `number` of the 32 of which the lanes of a warp give one each.
inline const char* row_of_lane(const void* row, int number) {
  if (reinterpret_cast<uintptr_t>(row) % 16 != 0) {
    emu::running_block->fail("load_fragments of a row that is not aligned to 16 bytes");
  }
  return static_cast<const char*>(exchange(row, number));
}

inline void load_fragments(uint32_t (&r)[4], const void* row) {
  const int lane = thread_index() % emu::kWarp;
  for (int i = 0; i < 4; ++i) std::memcpy(&r[i], row_of_lane(row, 8 * i + lane / 4) + lane % 4 * 4, 4);
}

inline void load_fragments_across(uint32_t (&r)[4], const void* row) {
  const int lane = thread_index() % emu::kWarp, g = lane / 4, q = lane % 4;
  for (int i = 0; i < 4; ++i) {
    uint16_t pair[2];
    for (int j = 0; j < 2; ++j) std::memcpy(&pair[j], row_of_lane(row, 8 * i + 2 * q + j) + 2 * g, 2);
    std::memcpy(&r[i], pair, 4);
  }
}

RT_EMU_QUIET inline float float16_value(uint16_t h) {
  const uint32_t magnitude = (h & 0x7fffu) << 13, sign = (h & 0x8000u) << 16;
  const uint32_t rebias = 0x77800000u;  // 2^112, by which a multiplication normalises subnormal numbers as well
  float x, by;
  std::memcpy(&x, &magnitude, 4);
  std::memcpy(&by, &rebias, 4);
  x *= by;
  uint32_t u;
  std::memcpy(&u, &x, 4);
  if (magnitude >= 0x0f800000u) u = magnitude | 0x7f800000u;  // infinite or NaN
  u |= sign;
  std::memcpy(&x, &u, 4);
  return x;
}

RT_EMU_QUIET inline float bfloat16_value(uint16_t h) {
  const uint32_t u = static_cast<uint32_t>(h) << 16;
  float x;
  std::memcpy(&x, &u, 4);
  return x;
}

// The kinds of numbers in the words of operands: how many a word has, and what they are. Where a fragment holds them is
// for all kinds the same.
struct Tf32 {
  static constexpr int kInWord = 1;
  RT_EMU_QUIET static void expand(uint32_t word, float* to) { to[0] = tf32_value(word); }
  RT_EMU_QUIET static const float* numbers(const emu::Fragment& f) { return f.floats; }
  RT_EMU_QUIET static float* numbers(emu::Fragment& f) { return f.floats; }
};
template <float (*Value)(uint16_t)>
struct Pairs {
  static constexpr int kInWord = 2;
  RT_EMU_QUIET static void expand(uint32_t word, float* to) {
    to[0] = Value(static_cast<uint16_t>(word)), to[1] = Value(static_cast<uint16_t>(word >> 16));
  }
  RT_EMU_QUIET static const float* numbers(const emu::Fragment& f) { return f.floats; }
  RT_EMU_QUIET static float* numbers(emu::Fragment& f) { return f.floats; }
};
template <bool Signed>
struct Bytes {
  static constexpr int kInWord = 4;
  RT_EMU_QUIET static void expand(uint32_t word, int32_t* to) {
    for (int i = 0; i < 4; ++i) {
      const uint8_t byte = static_cast<uint8_t>(word >> 8 * i);
      to[i] = Signed ? static_cast<int8_t>(byte) : byte;
    }
  }
  RT_EMU_QUIET static const int32_t* numbers(const emu::Fragment& f) { return f.integers; }
  RT_EMU_QUIET static int32_t* numbers(emu::Fragment& f) { return f.integers; }
};
using Halves = Pairs<float16_value>;
using Bfloats = Pairs<bfloat16_value>;

// Adds n products to a sum, one after another. Those of floats are exact. Sums of integers wrap around, which is
// defined for numbers without a sign.
RT_EMU_QUIET inline void add_products(float& d, const float* x, const float* y, int n) {
  float sum = d;
  for (int i = 0; i < n; ++i) sum += x[i] * y[i];
  d = sum;
}
RT_EMU_QUIET inline void add_products(int32_t& d, const int32_t* x, const int32_t* y, int n) {
  uint32_t sum = static_cast<uint32_t>(d);
  for (int i = 0; i < n; ++i) sum += static_cast<uint32_t>(x[i] * y[i]);
  d = static_cast<int32_t>(sum);
}

// Each lane finds out once what the numbers in its words are. Products are added in the order of their depth.
template <class A, class B, class Sum>
RT_EMU_QUIET inline void multiply_fragments(Sum (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  constexpr int n = A::kInWord;
  emu::Fragment mine;
  for (int i = 0; i < 4; ++i) A::expand(a[i], A::numbers(mine) + n * i);
  for (int i = 0; i < 2; ++i) B::expand(b[i], B::numbers(mine) + n * (4 + i));
  const emu::Fragment* fragment = emu::running_block->share_fragment(mine);
  const int lane = thread_index() % emu::kWarp, g = lane / 4, q = lane % 4;
  for (int e = 0; e < 4; ++e) {
    const int lower = e / 2, column = 2 * q + e % 2;  // lower: row g + 8 instead of row g
    for (int k = 0; k < 8; ++k) {
      add_products(d[e], A::numbers(fragment[4 * g + k % 4]) + n * (lower + k / 4 * 2),
                   B::numbers(fragment[4 * column + k % 4]) + n * (4 + k / 4), n);
    }
  }
}

RT_EMU_QUIET inline void mma_tf32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  multiply_fragments<Tf32, Tf32>(d, a, b);
}
RT_EMU_QUIET inline void mma_f16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  multiply_fragments<Halves, Halves>(d, a, b);
}
RT_EMU_QUIET inline void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  multiply_fragments<Bfloats, Bfloats>(d, a, b);
}
template <bool SignedA, bool SignedB>
RT_EMU_QUIET inline void mma_int8(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  multiply_fragments<Bytes<SignedA>, Bytes<SignedB>>(d, a, b);
}

}  // namespace rt::detail
