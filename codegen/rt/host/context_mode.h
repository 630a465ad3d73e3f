// Which way the rPrograms of a context run: as one persistent launch each, or in waves, one launch after another. The
// plan says which; the device, the caller or what happens at a launch may turn it to waves, for the rest of the
// context's life.
#pragma once

#include "rt/host/context.h"

namespace rt {

// The kinds of segments that run, each named once: "waves", "rprogram+graph".
template <class Program>
std::string Context<Program>::kinds() const {
  static const char* const names[] = {"rprogram", "waves", "graph", "parallel"};
  bool seen[4] = {};
  std::string text;
  for (int i = 0; i < model_.segment_count; ++i) {
    SegmentKind k = model_.segments[i].kind;
    if (k == kRProgram && !persistent_) k = kWaves;
    if (!seen[k]) text += std::string(text.empty() ? "" : "+") + names[k];
    seen[k] = true;
  }
  return text.empty() ? "waves" : text;
}

// An rProgram needs all of its vEUs on the device at once. Where they are not, its waves run, one launch each.
template <class Program>
void Context<Program>::choose_mode() {
  residency_ = dev::residency<Program>(device_, options_);
  // The reason is that of the first rProgram that does not fit.
  std::string lack;
  for (int i = 0; i < model_.segment_count && lack.empty(); ++i) {
    const SegmentRow& seg = model_.segments[i];
    if (seg.kind != kRProgram) continue;
    int room = residency_.veus;
    std::string kind = " vEUs";
    if (seg.cluster > 1) {
      room = dev::resident_clusters<Program>(device_, seg.cluster, options_) * seg.cluster;
      kind += " in clusters of " + std::to_string(seg.cluster);
    }
    if (seg.veus > room) {
      lack = "the rProgram has " + std::to_string(seg.veus) + kind + ", the device holds " + std::to_string(room) +
             " at once";
    }
  }
  const bool fits = lack.empty();
  if (!fits && options_.mode == kRProgramMode) throw Error{kNotResident, lack + " (" + dev::describe(device_) + ")"};
  std::string why = "the plan";
  if (options_.mode == kWavesMode) why = "asked for";
  if (!fits) why = lack;
  set_mode(fits && options_.mode != kWavesMode, why);
}

template <class Program>
void Context<Program>::set_mode(bool persistent, const std::string& why) {
  persistent_ = persistent;
  launches_ = 0;
  for (int i = 0; i < model_.segment_count; ++i) {
    const SegmentRow& seg = model_.segments[i];
    launches_ += seg.turns * (seg.kind == kRProgram && persistent_ ? 1 : seg.launches - first_launch(seg));
  }
  const std::string program = options_.program ? std::string(",\"program\":") + options_.program : "";
  infos_.emplace_back(new std::string("{\"schema\":1,\"device\":\"" + dev::describe(device_) +
                                      "\",\"index\":" + std::to_string(device_) + ",\"mode\":\"" + kinds() +
                                      "\",\"reason\":\"" + why + "\"" + program + "}"));
  info_ = infos_.back().get();
}

// Whether the context may go on in waves after an error, which is that the device does not hold the rProgram. It may
// not where the stream is being captured, since what was captured stays, and where the caller has asked for the
// rProgram.
template <class Program>
bool Context<Program>::may_fall_back(const Error& e, dev::Stream stream) const {
  return e.code == kNotResident && options_.mode != kRProgramMode && !dev::capturing(stream);
}

template <class Program>
void Context<Program>::fall_back(const std::string& why) {
  if (used_) fence_->wait();
  recorded_.clear();
  set_mode(false, why);
  trace_.reset(new TraceBuffers(model_, false, true));
}

// Whether the blocks of an rProgram must find out whether all of them are there (exec/guard.cuh): where launches cannot
// be cooperative, or other processes' kernels run beside this one's. The host learns of the outcome when it waits for
// the inference. Where it does not wait, an rProgram that would need the guard runs in waves.
template <class Program>
bool Context<Program>::guarded() const {
  return waited_for_ && (!residency_.cooperative || residency_.tenants);
}

// Whether the guard of the latest inference gave up. Then nothing was computed, and the context runs in waves from now
// on.
template <class Program>
bool Context<Program>::gave_up() {
  const Report r = reports_[0];
  if (r.set != kAbsentReport) return false;
  reports_[0] = Report{};
  // The guard's mark must go. Counts and tags belong together, so all of them start from 0.
  dev::clear(flags_.get(), flag_bytes());
  dev::clear(tagged_.get(), model_.tagged_bytes);
  const std::string why = "of the rProgram's " + std::to_string(r.expected) + " vEUs only " + std::to_string(r.seen) +
                          " were on the device at once";
  if (options_.mode == kRProgramMode) throw Error{kNotResident, why + " (" + dev::describe(device_) + ")"};
  fall_back(why);
  return true;
}

}  // namespace rt
