// CUDA's functions by which lanes of a warp meet, and its atomic operations, for converted kernels. Lanes that are not
// in the mask do not take part; masks of lanes that meet at the same time have no lane in common.
#pragma once

#include "backend/emu/block_sync.h"
#include "backend/emu/cuda_names.h"

namespace rt::emu {

RT_EMU_QUIET inline int lane() { return running_block->thread_index() % kWarp; }

// Every lane shows its value, and fetch(values) takes from them what it wants.
template <class T, class Fetch>
inline auto among(unsigned mask, T v, Fetch fetch) {
  static_assert(sizeof(T) <= 16, "lanes exchange at most 16 bytes");
  uint64_t(*slots)[2] = running_block->warp_slots();
  std::memcpy(slots[lane()], &v, sizeof(T));
  running_block->meet(mask);
  const auto out = fetch([slots](int from) {
    T x;
    std::memcpy(&x, slots[from], sizeof(T));
    return x;
  });
  running_block->meet(mask);  // nobody shows the next value before all have fetched
  return out;
}

template <class T, class Op>
inline T reduce(unsigned mask, T v, Op op) {
  return among(mask, v, [mask, op](auto at) {
    int first = __builtin_ctz(mask);
    T sum = at(first);
    for (int i = first + 1; i < kWarp; ++i) {
      if (mask >> i & 1) sum = op(sum, at(i));
    }
    return sum;
  });
}

}  // namespace rt::emu

// A lane that asks for a value of one outside its part of `width` lanes gets its own.
template <class T>
inline T __shfl_sync(unsigned mask, T v, int from, int width = 32) {
  const int lane = rt::emu::lane(), first = lane / width * width;
  return rt::emu::among(mask, v, [=](auto at) { return at(first + (from & (width - 1))); });
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T v, unsigned delta, int width = 32) {
  const int lane = rt::emu::lane(), from = lane - static_cast<int>(delta);
  return rt::emu::among(mask, v, [=](auto at) { return at(from < lane / width * width ? lane : from); });
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T v, unsigned delta, int width = 32) {
  const int lane = rt::emu::lane(), from = lane + static_cast<int>(delta);
  return rt::emu::among(mask, v, [=](auto at) { return at(from >= (lane / width + 1) * width ? lane : from); });
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T v, int with, int width = 32) {
  const int lane = rt::emu::lane(), from = lane ^ with;
  return rt::emu::among(mask, v, [=](auto at) { return at(from >= (lane / width + 1) * width ? lane : from); });
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return rt::emu::reduce(mask, predicate ? 1u << rt::emu::lane() : 0u, [](unsigned a, unsigned b) { return a | b; });
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) == mask; }
template <class T>
inline unsigned __match_any_sync(unsigned mask, T v) {
  return rt::emu::among(mask, v, [=](auto at) {
    unsigned same = 0;
    for (int i = 0; i < 32; ++i) {
      if (mask >> i & 1 && at(i) == v) same |= 1u << i;
    }
    return same;
  });
}
template <class T>
inline T __reduce_add_sync(unsigned mask, T v) {
  return rt::emu::reduce(mask, v, [](T a, T b) { return static_cast<T>(a + b); });
}
template <class T>
inline T __reduce_min_sync(unsigned mask, T v) {
  return rt::emu::reduce(mask, v, [](T a, T b) { return a < b ? a : b; });
}
template <class T>
inline T __reduce_max_sync(unsigned mask, T v) {
  return rt::emu::reduce(mask, v, [](T a, T b) { return a > b ? a : b; });
}
inline unsigned __reduce_and_sync(unsigned mask, unsigned v) {
  return rt::emu::reduce(mask, v, [](unsigned a, unsigned b) { return a & b; });
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned v) {
  return rt::emu::reduce(mask, v, [](unsigned a, unsigned b) { return a | b; });
}
inline unsigned __reduce_xor_sync(unsigned mask, unsigned v) {
  return rt::emu::reduce(mask, v, [](unsigned a, unsigned b) { return a ^ b; });
}
inline void __syncwarp(unsigned mask = 0xffffffffu) { rt::emu::running_block->meet(mask); }
