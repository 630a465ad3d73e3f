// Boxes of matrices that the copy engine brings into shared memory, on the emulator. It needs no tensor maps, since it
// reads the matrix itself.
#pragma once

#include "backend/emu/matrix.h"

namespace rt::detail {

// An element of a box as it stands in shared memory, in the lower bits.
inline uint32_t box_element(const char* first, const TiledMatrix& m, uint32_t column, uint32_t row) {
  if (row >= m.rows || column >= m.columns) return 0;
  const char* at = first + row * m.row_bytes + column * m.element_bytes;
  uint32_t bits = 0;
  std::memcpy(&bits, at, m.element_bytes);
  if (m.element_bytes < 4) return bits;
  float x;
  std::memcpy(&x, &bits, 4);
  return to_tf32(x);
}

inline void fill_box(char* stage, uint64_t*, const char*, const char* first, const TiledMatrix& m, uint32_t column,
                     uint32_t row) {
  if (shared_address(stage) % 1024 != 0) emu::running_block->fail("a box that does not begin at 1024 bytes");
  if ((reinterpret_cast<uintptr_t>(first) | m.row_bytes) % 16 != 0) {
    emu::running_block->fail("a tensor map of rows that are not aligned to 16 bytes");
  }
  emu::running_block->maybe_lag();
  for (uint32_t i = 0; i < m.box_rows; ++i) {
    for (uint32_t at = 0; at < 128; at += m.element_bytes) {
      const uint32_t bits = box_element(first, m, column + at / m.element_bytes, row + i);
      std::memcpy(stage + 128 * i + (at ^ i % 8 * 16), &bits, m.element_bytes);
    }
  }
}
inline void boxes_sent(uint64_t* full, uint32_t) { emu::running_block->mbarrier_arrive(mbarrier(full)); }
inline void stored_before_copies() {}

}  // namespace rt::detail
