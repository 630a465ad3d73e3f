// Programs that an inference runs several times: the steps of a search (exec/repeat.cuh).
#pragma once

#include "rt/host/general.h"

namespace rt {

// Runs the program again and again while the state says so that repeats it. States that grow do so from run to run,
// and are empty again behind the last one. An rProgram does that in one launch; else the host looks at that state
// behind each run.
template <class Program>
void GeneralProgram<Program>::repeat(dev::Stream s) {
  const std::vector<int64_t> first = extents_;
  bool whole = this->repeats_on_device();
  if (whole) find_patches(s);
  for (;;) {
    this->enqueue(s, used_in_.data(), used_out_.data());
    if (whole && this->repeats_on_device()) return;
    whole = false;  // the device has refused the rProgram, and one run of its waves has been launched
    bool again = false;
    dev::download_async(&again, used_out_[static_cast<size_t>(this->repeats_)], sizeof again, s);
    dev::wait_for(s);
    if (this->gave_up()) continue;  // no block has begun
    if (!again) break;
    grow();
    upload_args(s);
  }
  extents_ = first;
  general_.apply(places_.data(), extents_.data());
  changed_ = true;
}

// Lets states grow by a run.
template <class Program>
void GeneralProgram<Program>::grow() {
  general_.advance(extents_.data());
  general_.derive(extents_.data());
  general_.apply(places_.data(), extents_.data());
}

// Finds the words of the Args that differ between runs: the extents among them grow by the same number from run to
// run.
template <class Program>
void GeneralProgram<Program>::find_patches(dev::Stream s) {
  if (patched_ == extents_) return;
  const std::vector<int64_t> first = extents_;
  const std::vector<char> zero = args_;
  grow();
  const std::vector<char> one = args_;
  extents_ = first;
  general_.apply(places_.data(), extents_.data());
  std::vector<Patch> patches;
  for (size_t at = 0; at < args_.size(); at += sizeof(uint32_t)) {
    uint32_t a, b;
    std::memcpy(&a, zero.data() + at, sizeof a), std::memcpy(&b, one.data() + at, sizeof b);
    if (a != b) patches.push_back(Patch{static_cast<uint32_t>(at), a, b - a});
  }
  const size_t bytes = patches.size() * sizeof(Patch);
  if (this->used_) this->fence_->wait();
  dev::wait_for(s);
  this->patches_ = DeviceBuffer(bytes);
  dev::upload(this->patches_.get(), patches.data(), bytes);
  this->patch_count_ = static_cast<uint32_t>(patches.size());
  patched_ = first;
}

}  // namespace rt
