// Branches of launch-based plans: successive launches that nobody needs unless a condition holds, which a run computes
// (rt::BranchRow). Where launches are recorded they become conditional nodes of the CUDA graph, one inside of the other
// as the branches are, and a branch that is not taken takes no launch. Elsewhere all launches are carried out, and the
// rTasks of a branch that is not taken end at once (exec/live.cuh).
#pragma once

#include "rt/host/context.h"

namespace rt {

// Whether the launches of a segment are put on a stream as branches.
template <class Program>
bool Context<Program>::branches(const SegmentRow& seg) const {
  if constexpr (Program::kMembers == 0 || kTraced) return false;  // a trace has a row for each launch
  return seg.branches > 0 && (branching_ || dev::branches_at_once());
}

// Has make record a graph, with conditional nodes if the driver takes them.
template <class Program>
template <class Make>
void Context<Program>::with_branches(Make make) {
  branching_ = dev::kHasBranches && !branches_failed_;
  try {
    make();
  } catch (const Error&) {
    const bool tried = branching_;
    branching_ = false;
    if (!tried) throw;
    make();
    branches_failed_ = true;
  }
  branching_ = false;
}

// Puts the launches first up to last of a segment on a stream. The branches from number `next` on that begin among them
// are inside of `depth` others.
template <class Program>
void Context<Program>::launch_branches(const SegmentRow& seg, int first, int last, int next, size_t depth, Args& args,
                                       dev::Stream stream) {
  const BranchRow* const rows = model_.branches + seg.first_branch;
  for (int i = first; i < last;) {
    while (next < seg.branches && rows[next].first < i) ++next;
    if (next == seg.branches || rows[next].first > i) {
      launch_row(seg, i++, args, stream);
      continue;
    }
    const BranchRow& row = rows[next++];
    if (inside_.size() == depth) inside_.emplace_back(new OwnStream(dev::make_side_stream()));
    const dev::Stream inside = inside_[depth]->get();
    const char* at = args.bases[row.at >> kSpaceShift] + (row.at & kRefOffsetMask);
    dev::put_branch(stream, inside, reinterpret_cast<const uint8_t*>(at), row.unless, [&] {
      behind_branch_ = true;
      launch_branches(seg, row.first, row.last, next, depth + 1, args, inside);
    });
    behind_branch_ = true;
    i = row.last;
  }
}

}  // namespace rt
