// Tagged edges: a value of 32 bits and a tag travel in one 64-bit word of global memory, and the reader polls the word
// itself:
//
//   bits 63 … 32   the tag of the launch that wrote the word (tag_of_launch), 0 in waves
//   bits 31 … 0    the value
//
// No flag and no fence is on the way. In turn a word orders nothing else: its reader learns nothing about other memory.
// Every word is written once in a launch, so nobody has to know when its readers are done. There are two ways to read
// words: the executor brings them into the import area (import_tagged), or in direct steps each thread polls those that
// it computes with (Words).
#pragma once

#include "rt/exec/veu.cuh"

namespace rt {

// The tag of the words that this launch exports. In waves nobody polls words, and 0 says so.
template <class Program>
RT_DEVICE uint32_t VEU<Program>::tag() const {
  return persistent() ? tag_of_launch(launches_) : 0;
}

RT_DEVICE void give_word(uint64_t* to, uint32_t tag, float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  detail::store_word(to, static_cast<uint64_t>(tag) << 32 | bits);
}

// One request for N words: their loads are on their way at the same time. All lanes of a warp call the functions
// together.
template <int N>
class Words {
 public:
  RT_DEVICE void ask(const uint64_t* const (&from)[N]) {
    RT_UNROLL
    for (int k = 0; k < N; ++k) v_[k] = detail::load_word(from[k]);
  }
  // The same where `now` holds; elsewhere the words do not have the tag.
  RT_DEVICE void ask_if(bool now, const uint64_t* const (&from)[N]) {
    RT_UNROLL
    for (int k = 0; k < N; ++k) v_[k] = detail::load_word_if(now, from[k]);
  }
  // Whether the words of all lanes have the tag.
  RT_DEVICE bool here(uint32_t tag) const {
    bool all = true;
    RT_UNROLL
    for (int k = 0; k < N; ++k) all = all && static_cast<uint32_t>(v_[k] >> 32) == tag;
    return detail::all_lanes(all);
  }
  RT_DEVICE void values(float (&x)[N]) const {
    RT_UNROLL
    for (int k = 0; k < N; ++k) {
      const uint32_t bits = static_cast<uint32_t>(v_[k]);
      memcpy(&x[k], &bits, 4);
    }
  }
  RT_DEVICE uint64_t first() const { return v_[0]; }

 private:
  uint64_t v_[N];
};

// Polls N words, with requests that overlap, so that a word is seen soon after it has come, and not only when the next
// request has been to memory and back:
//
//   request 1   ask ─────────────────▶ check: all here? ──▶ done
//   meanwhile       find out about the next step
//   request 2       ······ask ────────────────────▶ check, and ask again until all are here
//
// meanwhile() finds out things for the step behind, and returns true. Request 2 is made to depend on its result; else
// compilers send both requests at once. No branch may stand between request 1 and its check: across a branch, nvcc
// waits for all loads that are on their way, and request 1 would wait for request 2. spent(word) is called after each
// request in vain.
template <int N, class Meanwhile, class Afterwards, class Spent>
RT_DEVICE void take_words(const uint64_t* const (&from)[N], uint32_t tag, float (&x)[N], Meanwhile meanwhile,
                          Afterwards afterwards, Spent spent) {
  Words<N> early, late;
  early.ask(from);
  late.ask_if(meanwhile(), from);
  afterwards();
  if (early.here(tag)) return early.values(x);
  while (!late.here(tag)) {
    spent(late.first());
    late.ask(from);
  }
  late.values(x);
}

// Brings the elements at, at + stride, … of a move into the import area. Where the words allow, it reads them in pairs
// of neighbours; two elements or pairs are on their way at a time.
template <class Program>
RT_DEVICE void VEU<Program>::import_tagged(const Move& m, uint32_t at, uint32_t stride, Place p) {
  const uint64_t* words = l_.tagged + m.at;
  uint32_t* to = reinterpret_cast<uint32_t*>(imports()) + m.staged;
  const bool pairs = (m.at | m.count) % 2 == 0 && m.step == 1;
  const uint32_t wide = pairs ? 2 : 1, count = m.count / wide;
  const uint32_t tag = this->tag();
  RT_NO_UNROLL
  for (; at < count; at += 2 * stride) {
    uint64_t v[2][2] = {};
    detail::Patience patience(l_.patience_ns);
    for (;;) {
      bool all = true;
      RT_UNROLL
      for (uint32_t k = 0; k < 2; ++k) {
        const uint32_t i = at + k * stride;
        if (i >= count) continue;
        if (pairs) {
          detail::load_words(words + 2 * i, v[k]);
          all = all && static_cast<uint32_t>(v[k][0] >> 32) == tag && static_cast<uint32_t>(v[k][1] >> 32) == tag;
        } else {
          v[k][0] = detail::load_word(words + static_cast<size_t>(i) * m.step);
          all = all && static_cast<uint32_t>(v[k][0] >> 32) == tag;
        }
      }
      if (all || !persistent()) break;
      patience.spent(true, l_.reports,
                     Report{kTaggedReport, l_.segment, veu_, p.order, 0, static_cast<uint32_t>(m.at + wide * at), p.op,
                            p.rtask, tag, v[0][0] >> 32});
    }
    RT_UNROLL
    for (uint32_t k = 0; k < 2; ++k) {
      const uint32_t i = at + k * stride;
      if (i >= count) continue;
      to[wide * i] = static_cast<uint32_t>(v[k][0]);
      if (pairs) to[2 * i + 1] = static_cast<uint32_t>(v[k][1]);
    }
  }
}

}  // namespace rt
