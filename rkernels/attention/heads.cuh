// What rKernels of attention share: how they address heads, and the order of their rTasks.
#pragma once

#include "common/loaders.cuh"
#include "common/operand.cuh"
#include "common/tile.cuh"
#include "rt/device/device.cuh"

namespace rk {

// A matrix [row][col] for each batch entry (b0, b1, b2), with element strides, which fit 32 bits as coordinates do.
struct HeadMatrix {
  rt::Ref ref;
  int64_t s0, s1, s2, row, col;

  template <class T>
  RT_DEVICE const T* head(const rt::Task& t, int b0, int b1, int b2) const {
    return t.template ptr<const T>(ref) + place(b2, s2, place(b1, s1, place(b0, s0)));
  }
};

RT_DEVICE int most(int a, int b) { return a > b ? a : b; }
RT_DEVICE int least(int a, int b) { return a < b ? a : b; }

RT_DEVICE float minus_infinity() { return -__builtin_huge_valf(); }

// Where a result goes: the output is [batch and head][query][column], or it is [batch][query][head and column] with so
// many heads side by side. Then `joined` is their number; otherwise it is 1. `batch` counts all heads of all batch
// entries.
struct HeadPlace {
  int i0, first;  // the first coordinate, and the last one of column 0

  RT_DEVICE HeadPlace(const Div& joined, int batch, int columns) {
    i0 = joined.quotient(batch);
    first = (batch - i0 * static_cast<int>(joined.d)) * columns;
  }
};

// The rows of an rTask. Heads that share keys and values follow each other along b2. A tile has the same `per` queries
// of up to `heads` such heads; it has either one head, or several, of which it has all queries if not said otherwise:
//
//   row of the tile   0 … per-1      per … 2·per-1   …
//   head              b2             b2 + 1
//   query             q0 … q0+per-1  q0 … q0+per-1
struct HeadRows {
  Div tiles;          // of queries
  Div groups;         // of heads along b2
  Div splits;         // of keys
  Div batch1;         // b0 and b1 are the digits of what is left of the rTask's number
  Div per;            // queries of a tile
  int32_t heads;      // of a tile
  int32_t queries;    // of a head
  int32_t all_heads;  // the extent of b2
};

// What an rTask is in charge of.
struct HeadTile {
  int b0, b1, b2, q0, split;
  int heads, queries;  // how many of the tile's heads and queries there are

  RT_DEVICE HeadTile(const HeadRows& r, int rtask) {
    b0 = rtask;
    q0 = take_digit(b0, r.tiles) * static_cast<int>(r.per.d);
    b2 = take_digit(b0, r.groups) * r.heads;
    split = take_digit(b0, r.splits);
    b1 = take_digit(b0, r.batch1);
    heads = r.all_heads - b2 < r.heads ? r.all_heads - b2 : r.heads;
    const int per = static_cast<int>(r.per.d);
    queries = r.queries - q0 < per ? r.queries - q0 : per;
  }
  // The number of the batch entry of the tile's first head.
  RT_DEVICE int batch(const HeadRows& r) const { return (b0 * static_cast<int>(r.batch1.d) + b1) * r.all_heads + b2; }
};

// The head and the query of a row, counted from the tile's first ones. They exist if inside().
struct HeadRow {
  int head, query;

  RT_DEVICE HeadRow(const HeadRows& r, int row) {
    head = r.per.quotient(row);
    query = row - head * static_cast<int>(r.per.d);
  }
  RT_DEVICE bool inside(const HeadTile& tile) const { return head < tile.heads && query < tile.queries; }
};

}  // namespace rk
