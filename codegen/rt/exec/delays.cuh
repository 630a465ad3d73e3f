// Random sleeps of debug builds. Where a wait or a barrier is missing, the usual timing often hides it; with sleeps the
// result becomes wrong.
#pragma once

#include "rt/device/device.cuh"

namespace rt {

// What a warp is about to do when it sleeps.
enum class Pause : uint32_t { kWait, kImport, kRTask, kPublish, kLoad };

// Sleeps for up to 20 µs in one case of four, as drawn from seed, place, vEU, warp and step. With seed 0 it never does.
RT_DEVICE void random_pause(uint64_t seed, Pause where, uint32_t veu, uint32_t order) {
#if defined(RT_DEBUG)
  if (seed == 0) return;
  const uint64_t warp = static_cast<uint64_t>(detail::thread_index()) / 32;
  uint64_t x = seed * 0x9E3779B97F4A7C15ull + (static_cast<uint64_t>(veu) << 40 | warp << 35) +
               (static_cast<uint64_t>(order) << 3 | static_cast<uint32_t>(where));
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ x >> 27) * 0x94D049BB133111EBull;
  x ^= x >> 31;
  if ((x & 3) == 0) detail::nap(static_cast<uint32_t>((x >> 32) % 20000));
#else
  (void)seed, (void)where, (void)veu, (void)order;
#endif
}

}  // namespace rt
