// What a context tells when a launch has failed: of the notes that waiting blocks have left, the one that is nearest to
// the cause.
#pragma once

#include "rt/host/context.h"

namespace rt {

// How many reports a launch may leave: in debug builds one for each block, by the watchdog; else one, by the guard.
template <class Program>
int Context<Program>::report_count() const {
  int most = 1;
  for (int s = 0; kWatched && s < model_.segment_count; ++s) {
    const SegmentRow& seg = model_.segments[s];
    for (int i = 0; i < seg.launches; ++i) most = std::max(most, model_.launches[seg.first_launch + i].grid);
  }
  return most;
}

// The note of the vEU that waits at the earliest step. It is nearest to the cause: the others wait for that vEU, or for
// what it would have done. Removes all notes.
template <class Program>
Report Context<Program>::first_waiting() {
  Report first = {};
  for (int i = 0; i < report_count(); ++i) {
    const Report r = reports_[i];
    reports_[i] = Report{};
    if (!r.set || r.set == kAbsentReport) continue;
    if (!first.set || r.segment < first.segment || (r.segment == first.segment && r.step < first.step)) first = r;
  }
  return first;
}

// Adds to an error what the watchdog saw.
template <class Program>
void Context<Program>::explain(Error& e) {
  dev::after_failure(flags_.get(), flag_bytes());
  dev::after_failure(tagged_.get(), model_.tagged_bytes);
  const Report r = first_waiting();
  if (!r.set || r.op >= static_cast<uint32_t>(model_.op_count)) {
    if (kWatched && e.code == kDeviceLost) {
      e.text +=
          "; no vEU waited longer than the watchdog allows. Another process's failure on the device ends others' work "
          "at times";
    }
    return;
  }
  e.code = kStuck;
  const OpRow& op = model_.ops[r.op];
  char on[80], text[256];
  if (r.set == kTaggedReport) {
    std::snprintf(on, sizeof on, "tagged word %u: expected tag", r.on_order);
  } else if (r.set == kNearReport) {
    std::snprintf(on, sizeof on, "word %u of its slots, filled: expected", r.on_order);
  } else if (r.set == kWeightsReport) {
    std::snprintf(on, sizeof on, "its weights in stage %u of the ring: expected filling", r.on_order);
  } else if (r.on_veu & kCounterWait) {
    const uint32_t veus = static_cast<uint32_t>(model_.segments[r.segment].veus);
    std::snprintf(on, sizeof on, "counter %u of %u additions: expected", (r.on_veu & ~kCounterWait) - veus, r.on_order);
  } else {
    std::snprintf(on, sizeof on, "vEU %u, step %u: expected flag", r.on_veu, r.on_order);
  }
  std::snprintf(text, sizeof text, "segment %u, vEU %u, step %u waits for %s %llu, seen %llu; its rTask is %u of ",
                r.segment, r.veu, r.step, on, static_cast<unsigned long long>(r.expected),
                static_cast<unsigned long long>(r.seen), r.rtask);
  e.text += std::string(": ") + text + op.name + " (" + op.kind + "; ONNX nodes: " + op.nodes + ")";
}

}  // namespace rt
