// Tagged words that a thread takes for itself. In a direct step every thread polls the words it computes
// with and stores words as results: between a word's arrival and the result's departure there are a
// comparison and the arithmetic, no shared memory and no barrier.
//
// An rKernel with such steps (MapStaged) has
//
//   kOperands, kResults  of an element
//   Place                where a thread's are: from[kOperands], to[kResults], and how many elements the
//                        rTask has (count), one a thread; those behind look where the last one does
//   find                 finds that out, one step ahead
//   apply                computes
#pragma once

#include "rt/device/device.cuh"

namespace rt {

// rKernels that have them, with few words at a time: as many as their manifests say.
template <class K>
concept HasDirect = requires { typename K::Place; } && K::kOperands > 0 && K::kOperands <= K::kDirect && K::kResults <= 2;

// One asking for N words. All lanes of a warp call the functions together.
template <int N>
class Words {
 public:
  RT_DEVICE void ask(const uint64_t* const (&from)[N]) {
    RT_UNROLL
    for (int k = 0; k < N; ++k) v_[k] = detail::load_word(from[k]);
  }
  // Only if; what was asked before does not come first.
  RT_DEVICE void ask_if(bool now, const uint64_t* const (&from)[N]) {
    RT_UNROLL
    for (int k = 0; k < N; ++k) v_[k] = detail::load_word_if(now, from[k]);
  }
  // Whether all of the warp's have the tag.
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

// Polls N words. Askings overlap, so that a word is seen soon after it has come and not only when the
// next asking has been to memory and back: the first goes out at once after the step before, the second
// when meanwhile() is done, which finds out things for the step after and returns true. That the second
// depends on its result keeps compilers from sending both together. No branch may stand between the first and
// the check of it: waiting for loads across one, nvcc waits for all of them.
template <int N, class Meanwhile, class Afterwards, class Spent>
RT_DEVICE void take_words(const uint64_t* const (&from)[N], uint32_t tag, float (&x)[N], Meanwhile meanwhile, Afterwards afterwards,
                          Spent spent) {
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

RT_DEVICE void give_word(uint64_t* to, uint32_t tag, float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  detail::store_word(to, static_cast<uint64_t>(tag) << 32 | bits);
}

}  // namespace rt
