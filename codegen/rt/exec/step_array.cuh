// The step array: how the vEUs of an rProgram know what the others have done. It is in device memory, in lines
// of 128 bytes, one line for each vEU, behind them one for each counter, and the guard's:
//
//   line 0          flag | epoch | launches | …    of vEU 0
//   …
//   line V          additions | …                  of counter 0
//   …
//   line V + C      arrivals | …                   of the guard
//
// None of these words is ever reset: they grow from launch to launch. So they need not be cleared between launches,
// and a launch that was captured into a CUDA graph can be replayed. In launch number n (counted from 0) of a program
// whose longest vEU has S steps:
//
//   epoch       n·S: no flag is higher when the launch begins
//   flag        n·S + k + 1, once step k of the vEU has been published
//   launches    n
//   additions   (n + 1)·A, once all A steps that add to the counter have done so in this launch
//
// Other vEUs poll flags and counters; only the vEU itself touches its epoch and its number of launches. All words have
// 64 bits and do not wrap: a device that published a step each nanosecond would take 584 years.
#pragma once

#include "rt/device/pending.cuh"

namespace rt {

constexpr uint32_t kEpochWord = 1;     // in a vEU's line
constexpr uint32_t kLaunchesWord = 2;  // in a vEU's line

// The tag of the words that a launch exports: odd, so that it is never 0, which stands for waves and for words that
// were never written. It comes round after 2³¹ launches. That is harmless, since every tagged word is written in every
// launch of the rProgram: whoever polls a word sees the tag of this launch or that of the launch before, and these two
// differ.
RT_HOST_DEVICE constexpr uint32_t tag_of_launch(uint64_t launches_before) {
  return 2 * static_cast<uint32_t>(launches_before) + 1;
}

}  // namespace rt
