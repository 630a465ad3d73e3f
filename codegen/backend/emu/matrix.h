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

inline void load_fragments(uint32_t (&r)[4], const float* row) {
  if (reinterpret_cast<uintptr_t>(row) % 16 != 0) {
    emu::running_block->fail("load_fragments of a row that is not aligned to 16 bytes");
  }
  const int lane = thread_index() % emu::kWarp;
  for (int i = 0; i < 4; ++i) {
    const float* from = exchange(row, 8 * i + lane / 4);
    std::memcpy(&r[i], from + lane % 4, 4);
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

}  // namespace rt::detail
