// Rows that travel as tagged words (rt/exec/edge_tagged.cuh) of one element of 32 bits or two of 16, the first of them
// in the low half. The threads that need a row poll its words themselves, and those that make it store them:
//
//	bits 63 … 32   the tag of the launch
//	bits 31 … 0    element i of the buffer for word i, or elements 2i and 2i + 1
//
// Where a buffer travels so, a Ref is the number of a word.
#pragma once

#include "common/operand.cuh"
#include "common/types.cuh"
#include "rt/device/device.cuh"

namespace rk {

// How many elements a word has.
template <class X>
constexpr int kPerWord = 4 / static_cast<int>(sizeof(X));

// The word with the element of type X that is `at` elements behind the one that a Ref stands for.
template <class X>
RT_DEVICE uint64_t* word_at(const rt::Task& t, rt::Ref r, int64_t at) {
  return t.tagged + r.bits + at / kPerWord<X>;
}

// Brings the line of a word that the lane will store, if it has one (`mine`), to L2 meanwhile: other data have passed
// there since the inference before, and who polls a word that is not there waits for memory.
template <class X>
RT_DEVICE void prepare_word(const rt::Task& t, const uint64_t* to, bool mine) {
  if (mine && t.tid % kPerWord<X> == 0 && reinterpret_cast<uintptr_t>(to) % 16 == 0) rt::prefetch(to, 16);
}

// What the watchdog is told by a thread that waits for a word.
RT_DEVICE rt::Report word_report(const rt::Task& t, const uint64_t* word, uint64_t seen) {
  rt::Report r = t.stream.watch().report;
  r.set = rt::kTaggedReport, r.on_veu = 0, r.on_order = static_cast<uint32_t>(word - t.tagged);
  r.expected = t.tag, r.seen = seen;
  return r;
}

// Brings N runs of L neighbours, whose first words are given; all of them are on their way together. In waves the words
// are there.
template <class X, int N, int L>
RT_DEVICE void take_runs(const rt::Task& t, const uint64_t* const (&from)[N], Pack<X, L> (&to)[N]) {
  constexpr int kWords = L / kPerWord<X>;
  static_assert(kWords % 2 == 0, "two words are read at once");
  uint64_t v[N][kWords / 2][2];
  rt::detail::Patience patience(t.stream.watch().patience_ns);
  for (;;) {
    RT_UNROLL
    for (int i = 0; i < N * kWords / 2; ++i) {
      rt::detail::load_words(from[i / (kWords / 2)] + 2 * (i % (kWords / 2)), v[i / (kWords / 2)][i % (kWords / 2)]);
    }
    bool here = true;
    RT_UNROLL
    for (int i = 0; i < N * kWords; ++i) {
      here = here && static_cast<uint32_t>(v[i / kWords][i % kWords / 2][i % 2] >> 32) == t.tag;
    }
    if (here || t.tag == 0) break;
    patience.spent(true, t.stream.watch().notes, word_report(t, from[0], v[0][0][0] >> 32));
  }
  RT_UNROLL
  for (int n = 0; n < N; ++n) {
    uint32_t bits[kWords];
    RT_UNROLL
    for (int i = 0; i < kWords; ++i) bits[i] = static_cast<uint32_t>(v[n][i / 2][i % 2]);
    memcpy(&to[n], bits, sizeof(bits));
  }
}

// Element (i0, i1, i2) of an epilogue's operand.
template <class X>
RT_DEVICE X word_operand(const rt::Task& t, const rt::Operand3& o, int i0, int i1, int i2) {
  const int64_t at = element(o, i0, i1, i2);
  const uint64_t* const from = word_at<X>(t, o.ref, at);
  rt::detail::Patience patience(t.stream.watch().patience_ns);
  uint64_t v = rt::detail::load_word(from);
  RT_NO_UNROLL
  while (static_cast<uint32_t>(v >> 32) != t.tag && t.tag != 0) {
    patience.spent(true, t.stream.watch().notes, word_report(t, from, v >> 32));
    v = rt::detail::load_word(from);
  }
  const uint32_t bits = static_cast<uint32_t>(v) >> (at % kPerWord<X> != 0 ? 16 : 0);
  X x;
  memcpy(&x, &bits, sizeof(X));  // GPUs, and the processors that emulate them, have the low half first
  return x;
}

// Stores a result in its word, `to`; neighbouring lanes share it if it has two. All lanes of a warp call it. Lanes
// without a result say so, those of a word both or neither.
template <class X>
RT_DEVICE void give_word(const rt::Task& t, uint64_t* to, bool mine, X x) {
  uint32_t bits = 0;
  memcpy(&bits, &x, sizeof(X));
  if constexpr (kPerWord<X> == 2) {
    bits |= rt::shfl_xor(t, bits, 1) << 16;
    mine = mine && t.tid % 2 == 0;
  }
  if (mine) rt::detail::store_word(to, static_cast<uint64_t>(t.tag) << 32 | bits);
}

}  // namespace rk
