// How the threads of an rTask work on lines together: on LINES lines at a time, with kThreads / LINES threads for each.
#pragma once

#include "common/types.cuh"
#include "rt/device/device.cuh"

namespace rk {

// How 256 threads share LINES lines. With ACROSS, neighbouring threads belong to different lines, which is right for
// data whose neighbours in memory are in different lines. Otherwise neighbouring threads belong to the same line.
template <int LINES, bool ACROSS>
struct LineThreads {
  static constexpr int kThreads = 256;
  static constexpr int kPerLine = kThreads / LINES;
  // How many partial results of a line are left when the warps have merged theirs by shuffles.
  static constexpr int kPartials = ACROSS ? kPerLine : (kPerLine > 32 ? kPerLine / 32 : 1);
  static constexpr int kSlots = kPartials > 1 ? LINES* kPartials : 0;

  int line;  // which of the LINES lines
  int part;  // which of the line's threads

  explicit RT_DEVICE LineThreads(int tid)
      : line(ACROSS ? tid % LINES : tid / kPerLine), part(ACROSS ? tid / LINES : tid % kPerLine) {}

  // Merges the values of each line's threads, and returns the result to all of them. All threads call this together;
  // scratch has room for kSlots values.
  template <class V, class Merge>
  RT_DEVICE V all(const rt::Task& t, V* scratch, V v, Merge merge) const {
    if constexpr (!ACROSS) {
      RT_UNROLL
      for (int mask = 1; mask < (kPerLine < 32 ? kPerLine : 32); mask *= 2) {
        v = merge(v, rt::shfl_xor(t, v, mask));
      }
    }
    if constexpr (kPartials > 1) {
      const int slot = ACROSS ? part : part / 32;
      scratch[slot * LINES + line] = v;
      t.sync();
      v = scratch[line];
      for (int i = 1; i < kPartials; ++i) v = merge(v, scratch[i * LINES + line]);
      t.sync();
    }
    return v;
  }
};

}  // namespace rk
