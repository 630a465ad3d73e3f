// rTasks of general programs that have nothing to do in a run: all that they write lies beyond the extents of the run.
// They end at once. Behind the Args of each rOperator stand rules, one for each range that matters to it, which say of
// an rTask from which index on it writes along axes of that range:
//
//   number of the rTask = (… · mod + digit) · div + …        first index = digit · step
//
// For example, rTasks of a product have 64 rows each, and 12 of them make up a batch entry: the digit of the rows has
// the div 1, the mod 12 and the step 64, that of the batch the div 12. By a rule whose step is 0 no rTask ends early.
//
// The host writes the extents that it knows before the run. Those that the device finds are where the rTasks that found
// them wrote them: an rTask with such rules waits for these, as for all that it reads, and then completes its row.
#pragma once

#include "rt/exec/veu.cuh"

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

// Where the extent of a rule comes from: the host, an int64 that the device finds, or a bool by which the extent is 1
// or 0. The rTasks of a branch of an If have such a rule, and end at once where the branch is not taken.
enum Found : uint32_t { kKnown, kExtent, kTrue, kFalse };

struct alignas(16) LiveRule {
  LiveDiv div, mod;
  uint32_t step;
  uint32_t extent;  // of the range in this run
  uint32_t range;   // its number
  Found found;      // unless the host knows the extent, it is at `count`
  Ref count;
};

// A member of Args, at `at` bytes, that is `scale` times the extent of a rule.
struct LiveMember {
  uint32_t at, rule, scale;
};

// What the device must be asked for a row of arguments. In an rProgram no rTask starts whose conditions do not hold
// (jump.cuh), so there it need not be asked for these.
enum FoundRules : uint32_t { kNothingFound, kExtentsFound, kOnlyConditions };

// The members that follow from extents which the device finds. The host writes the others.
template <int N>
struct LiveMembers {
  uint32_t found;  // kExtentsFound: some of the rules or members are; kOnlyConditions: rules that are conditions
  LiveMember member[N];
};
template <>
struct LiveMembers<0> {};

// A row of arguments in a general program: with the most rules and members that any rOperator has. Those that are left
// over are zero.
template <class Args, int Rules, int Members>
struct alignas(16) GeneralArgs {
  Args args;
  LiveRule live[Rules];
  LiveMembers<Members> members;
};

// Whether the rTask has nothing to do; args points to a GeneralArgs.
template <class General>
RT_DEVICE bool is_dead(const General& g, uint32_t rtask) {
  bool dead = false;
  RT_UNROLL
  for (const LiveRule& r : g.live) {
    const uint32_t q = r.div.quotient(rtask);
    const uint32_t digit = q - r.mod.quotient(q) * r.mod.d;
    dead = dead || (r.step > 0 && digit * r.step >= r.extent);
  }
  return dead;
}

// Completes the row with the extents that the device has found. The row is in shared memory, and one thread does it.
template <class General>
RT_DEVICE void learn_extents(General& g, char* const* bases) {
  for (LiveRule& r : g.live) {
    if (r.found == kKnown) continue;
    const char* at = bases[r.count.bits >> kSpaceShift] + (r.count.bits & kRefOffsetMask);
    if (r.found == kExtent) {
      r.extent = static_cast<uint32_t>(*reinterpret_cast<const int64_t*>(at));
    } else {
      r.extent = (*reinterpret_cast<const uint8_t*>(at) != 0) == (r.found == kTrue);
    }
  }
  for (const LiveMember& m : g.members.member) {
    const uint32_t n = m.scale * g.live[m.rule].extent;
    if (m.scale > 0) *reinterpret_cast<int32_t*>(reinterpret_cast<char*>(&g.args) + m.at) = static_cast<int32_t>(n);
  }
}

// Whether the rTask of the current step, one of K, has nothing to do. Where the device finds extents that belong into
// its row of arguments, all threads first wait for the rTasks that do, also those of an rKernel that would begin
// earlier.
template <class Program>
template <class K>
RT_DEVICE bool VEU<Program>::idle(const void* args, uint32_t rtask) {
  using General = GeneralArgs<typename K::Args, Program::kRules, Program::kMembers>;
  const General& general = *static_cast<const General*>(args);
  if constexpr (Program::kMembers > 0) {
    const bool conditions = general.members.found == kOnlyConditions;
    if (general.members.found != kNothingFound && !(conditions && persistent())) {
      detail::wait_for_launches_before();
      if constexpr (Early<K> && Program::kPersistent) {
        if (waits_late(now_)) pending(now_).wait(tid_);
      }
      if (tid_ == 0) learn_extents(const_cast<General&>(general), c_.bases);
      detail::block_barrier(threads_);
    }
  }
  // Others count on what is given away by tags and slots, whether it is live or not.
  return c_.ring[now_ % c_.kSteps].exports == 0 && is_dead(general, rtask);
}

}  // namespace rt
