// Matrix instructions of a warp, on the emulator. Fragments lie in the lanes as the PTX ISA says, so that an rKernel
// that takes an element from the wrong lane gets a wrong number here too.
#pragma once

#include "backend/emu/block.h"

namespace rt::detail {

// Infinities and NaNs stay as they are; rounding them up would make other numbers of them.
inline uint32_t to_tf32(float x) {
  uint32_t u;
  std::memcpy(&u, &x, 4);
  if ((u & 0x7f800000u) == 0x7f800000u) return u;
  return (u + 0x1000u) & 0xffffe000u;
}

// The number that a tensor core sees: the lower 13 bits of an operand do not count.
inline float tf32_value(uint32_t u) {
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

// Products of two tf32 numbers are exact in float32. They are added one after another, in the order of their depth.
RT_EMU_QUIET inline void mma_tf32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  const uint32_t(*fragment)[6] = emu::running_block->share_fragments(a, b);
  const int lane = thread_index() % emu::kWarp, g = lane / 4, q = lane % 4;
  for (int e = 0; e < 4; ++e) {
    const int lower = e / 2, column = 2 * q + e % 2;  // lower: row g + 8 instead of row g
    for (int k = 0; k < 8; ++k) {
      const uint32_t x = fragment[4 * g + k % 4][lower + k / 4 * 2], y = fragment[4 * column + k % 4][4 + k / 4];
      d[e] += tf32_value(x) * tf32_value(y);
    }
  }
}

inline float float16_value(uint16_t h) {
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

inline float bfloat16_value(uint16_t h) {
  const uint32_t u = static_cast<uint32_t>(h) << 16;
  float x;
  std::memcpy(&x, &u, 4);
  return x;
}

// Products of two numbers of 16 bits are exact in float32. They are added one after another, in the order of their
// depth.
template <float (*Value)(uint16_t)>
RT_EMU_QUIET inline void mma_16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  const uint32_t(*fragment)[6] = emu::running_block->share_fragments(a, b);
  const int lane = thread_index() % emu::kWarp, g = lane / 4, q = lane % 4;
  for (int e = 0; e < 4; ++e) {
    const int lower = e / 2, column = 2 * q + e % 2;  // lower: row g + 8 instead of row g
    for (int k = 0; k < 16; ++k) {
      const int pair = k % 8 / 2, shift = k % 2 * 16;
      const uint32_t x = fragment[4 * g + pair][lower + k / 8 * 2], y = fragment[4 * column + pair][4 + k / 8];
      d[e] += Value(static_cast<uint16_t>(x >> shift)) * Value(static_cast<uint16_t>(y >> shift));
    }
  }
}

inline void mma_f16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) { mma_16<float16_value>(d, a, b); }
inline void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) { mma_16<bfloat16_value>(d, a, b); }

// The number in byte number `which` of a word.
template <bool Signed>
inline int32_t byte_value(uint32_t word, int which) {
  const uint8_t byte = static_cast<uint8_t>(word >> 8 * which);
  return Signed ? static_cast<int8_t>(byte) : byte;
}

// Sums wrap around, which is defined for numbers without a sign.
template <bool SignedA, bool SignedB>
RT_EMU_QUIET inline void mma_int8(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  const uint32_t(*fragment)[6] = emu::running_block->share_fragments(a, b);
  const int lane = thread_index() % emu::kWarp, g = lane / 4, q = lane % 4;
  for (int e = 0; e < 4; ++e) {
    const int lower = e / 2, column = 2 * q + e % 2;  // lower: row g + 8 instead of row g
    uint32_t sum = static_cast<uint32_t>(d[e]);
    for (int k = 0; k < 32; ++k) {
      const int word = k % 16 / 4, byte = k % 4;
      const uint32_t x = fragment[4 * g + word][lower + k / 16 * 2], y = fragment[4 * column + word][4 + k / 16];
      sum += static_cast<uint32_t>(byte_value<SignedA>(x, byte) * byte_value<SignedB>(y, byte));
    }
    d[e] = static_cast<int32_t>(sum);
  }
}

}  // namespace rt::detail
