// rTasks of general programs that have nothing to do in a run: all that they write lies beyond the extents of the run.
// They end at once. Behind the Args of each rOperator stands a rule for each range, which says of an rTask from which
// index on it writes along axes of that range:
//
//   number of the rTask = (… · mod + digit) · div + …        first index = digit · step
//
// For example, rTasks of a product have 64 rows each, and 12 of them make up a batch entry: the digit of the rows has
// the div 1, the mod 12 and the step 64, that of the batch the div 12. By a rule whose step is 0 no rTask ends early.
#pragma once

#include "rt/device/types.cuh"

namespace rt {

// Division by a number that is known before the launch, of numbers below 2^31 (common/tiles.cuh).
struct LiveDiv {
  uint32_t d, mul, shift;

  constexpr LiveDiv(uint32_t by = 1) : d(by), mul(0), shift(0) {
    while ((uint64_t{1} << shift) < by) ++shift;
    mul = static_cast<uint32_t>((uint64_t{1} << 32) * ((uint64_t{1} << shift) - by) / by + 1);
  }
  RT_DEVICE uint32_t quotient(uint32_t n) const {
    return (static_cast<uint32_t>((uint64_t{n} * mul) >> 32) + n) >> shift;
  }
};

struct alignas(16) LiveRule {
  LiveDiv div, mod;
  uint32_t step;
  uint32_t extent;  // of the range in this run
};

// A row of arguments in a general program.
template <class Args, int Ranges>
struct GeneralArgs {
  Args args;
  LiveRule live[Ranges];
};

// Whether the rTask has nothing to do; args points to a GeneralArgs.
template <class Args, int Ranges>
RT_DEVICE bool is_dead(const void* args, uint32_t rtask) {
  const LiveRule* rules = static_cast<const GeneralArgs<Args, Ranges>*>(args)->live;
  bool dead = false;
  RT_UNROLL
  for (int i = 0; i < Ranges; ++i) {
    const uint32_t q = rules[i].div.quotient(rtask);
    const uint32_t digit = q - rules[i].mod.quotient(q) * rules[i].mod.d;
    dead = dead || digit * rules[i].step >= rules[i].extent;
  }
  return dead;
}

}  // namespace rt
