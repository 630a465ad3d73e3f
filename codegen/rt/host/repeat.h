// Programs that an inference runs several times: the steps of a search (exec/repeat.cuh).
#pragma once

#include "rt/host/general.h"

namespace rt {

// Runs the program again and again while the state says so that repeats it. States that grow do so from run to run,
// and are empty again behind the last one. An rProgram does that in one launch, and launches of other plans are the
// body of a CUDA graph's loop. Where the device can do neither, the host looks at that state behind each run. The
// program of the prompt, if there is one, comes first: in a launch of its own, or in the graph before its loop.
template <class Program>
void GeneralProgram<Program>::repeat(dev::Stream s) {
  const std::vector<int64_t> first = extents_;
  bool whole = this->repeats_on_device();
  if (whole || dev::kHasLoops) find_patches(s);
  if (prompt_) prompt_->follow(s, used_in_);
  if (!whole && launch_loop(s)) return;
  if (prompt_) prompt_->enqueue(s, prompt_->used_in_.data(), prompt_->used_out_.data());
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

// Launches the inference as one CUDA graph. False: the device cannot do so.
template <class Program>
bool GeneralProgram<Program>::launch_loop(dev::Stream s) {
  if (!dev::kHasLoops || this->loop_failed_ || this->options_.delays || kTraced || this->guarded()) return false;
  std::vector<const void*> key(used_in_);
  key.insert(key.end(), used_out_.begin(), used_out_.end());
  key.push_back(prompt_);
  try {
    if (!this->loop_ || this->loop_key_ != key) {
      if (!this->recording_) this->recording_.reset(new OwnStream(dev::make_side_stream()));
      const dev::Stream r = this->recording_->get();
      Patch* const patches = reinterpret_cast<Patch*>(this->patches_.get());
      const Turn turn{static_cast<const uint8_t*>(used_out_[static_cast<size_t>(this->repeats_)]), on_device_.get(),
                      patches, this->patch_count_, &patches[this->patch_count_].at};
      const auto begin = [&] {
        if (prompt_) prompt_->launch_all(r, prompt_->used_in_.data(), prompt_->used_out_.data());
      };
      const auto run = [&] { this->launch_all(r, used_in_.data(), used_out_.data()); };
      const auto record = [&] { this->with_branches([&] { this->loop_.reset(new dev::Loop(r, begin, run, turn)); }); };
      try {
        record();
      } catch (const Error&) {  // the driver takes no overlapping launches in a loop
        this->overlaps_ = false;
        record();
      }
      this->loop_key_ = key;
    }
    if (this->used_) this->fence_->join(s);
    this->loop_->launch(s);
  } catch (const Error&) {
    this->loop_.reset();
    this->loop_failed_ = this->overlaps_ = true;
    return false;
  }
  this->used_ = true;
  this->fence_->set(s);
  return true;
}

// Prepares the program of a prompt for the inputs of the program that follows it on the stream.
template <class Program>
void GeneralProgram<Program>::follow(dev::Stream s, const std::vector<const void*>& in) {
  if (changed_) upload_args(s);
  changed_ = false;
  used_in_.assign(this->staged_in_.begin(), this->staged_in_.end());
  used_out_.assign(this->staged_out_.begin(), this->staged_out_.end());
  std::copy(in.begin(), in.end(), used_in_.begin());
}

// Where this program has the states of another one, by the numbers of that one's outputs.
template <class Program>
std::vector<void*> GeneralProgram<Program>::places_of(const Model& m, const General& g) const {
  std::vector<void*> places(static_cast<size_t>(m.output_count));
  for (int i = 0; i < g.state_count; ++i) {
    const StatePort& theirs = g.states[i];
    for (int k = 0; k < general_.state_count; ++k) {
      const StatePort& mine = general_.states[k];
      if (std::strcmp(mine.port.name, theirs.port.name) != 0) continue;
      places[static_cast<size_t>(theirs.output)] = this->staged_out_[static_cast<size_t>(mine.output)];
    }
  }
  return places;
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
  patches.push_back(Patch{});  // the number of the run, of Turn
  const size_t bytes = patches.size() * sizeof(Patch);
  if (this->used_) this->fence_->wait();
  dev::wait_for(s);
  if (patched_.empty() || patches.size() != this->patch_count_ + 1) {
    this->patches_ = DeviceBuffer(bytes);
    this->patch_count_ = static_cast<uint32_t>(patches.size() - 1);
    this->loop_.reset();
  }
  dev::upload(this->patches_.get(), patches.data(), bytes);
  patched_ = first;
}

}  // namespace rt
