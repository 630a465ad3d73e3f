// Boxes of matrices that the copy engine brings into shared memory, on the emulator. It needs no tensor maps, since it
// reads the matrix itself.
#pragma once

#include "backend/emu/matrix.h"

namespace rt::detail {

// An element as it stands in a box, in the lower bits.
inline uint32_t box_element(const char* at, const TiledMatrix& m) {
  uint32_t bits = 0;
  std::memcpy(&bits, at, m.element_bytes);
  if (m.element_bytes < 4) return bits;
  float x;
  std::memcpy(&x, &bits, 4);
  return to_tf32(x);
}

// Fills a box whose row i begins at row(i), which is null outside of the tensor. Its elements are those from `column`
// on.
template <class Row>
void fill_rows(char* stage, const char* first, const TiledMatrix& m, uint32_t column, Row row) {
  if (shared_address(stage) % 1024 != 0) emu::running_block->fail("a box that does not begin at 1024 bytes");
  if ((reinterpret_cast<uintptr_t>(first) | m.row_bytes) % 16 != 0) {
    emu::running_block->fail("a tensor map of rows that are not aligned to 16 bytes");
  }
  emu::running_block->maybe_lag();
  for (uint32_t i = 0; i < m.box_rows; ++i) {
    const char* from = row(i);
    for (uint32_t at = 0; at < 128; at += m.element_bytes) {
      const uint32_t c = column + at / m.element_bytes;
      const uint32_t bits = from == nullptr || c >= m.columns ? 0 : box_element(from + c * m.element_bytes, m);
      std::memcpy(stage + 128 * i + (m.plain ? at : at ^ i % 8 * 16), &bits, m.element_bytes);
    }
  }
}

inline void prefetch_map(const char*) {}

inline void fill_box(char* stage, uint64_t*, const char*, const char* first, const TiledMatrix& m, uint32_t column,
                     uint32_t row) {
  fill_rows(stage, first, m, column,
            [&](uint32_t i) { return row + i < m.rows ? first + (row + i) * m.row_bytes : nullptr; });
}

inline void fill_patch(char* stage, uint64_t*, const char*, const char* first, const TiledMatrix& m, uint32_t channel,
                       const Position& from, uint32_t tap_x, uint32_t tap_y) {
  Position p = from;
  const uint32_t end_x = m.first_x + m.positions_w * m.stride_x, end_y = m.first_y + m.positions_h * m.stride_y;
  fill_rows(stage, first, m, channel, [&](uint32_t) -> const char* {
    const uint32_t x = p.x + tap_x, y = p.y + tap_y, image = p.image;
    if ((p.x += m.stride_x) == end_x) {
      p.x = m.first_x;
      if ((p.y += m.stride_y) == end_y) p.y = m.first_y, ++p.image;
    }
    if (x >= m.width || y >= m.height || image >= m.rows) return nullptr;
    return first + image * m.image_bytes + y * m.line_bytes + x * m.row_bytes;
  });
}
inline void boxes_sent(uint64_t* full, uint32_t) { emu::running_block->mbarrier_arrive(mbarrier(full)); }
inline void stored_before_copies() {}

}  // namespace rt::detail
