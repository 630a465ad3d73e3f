// Parallel segments: launches on several streams. Stream 0 is the one that the caller puts the inference on; the
// others, side streams, are the context's own. Events order launches of different streams:
//
//   stream 0      fork ─ launch 0 ──────────── join ─ what the caller puts next
//   side stream     ╰─── launch 1 ─ launch 2 ───╯
#pragma once

#include <memory>
#include <vector>

#include "rt/exec/executor.cuh"
#include "rt/host/model.h"

namespace rt {

class OwnStream {
 public:
  explicit OwnStream(dev::Stream s) : s_(s) {}
  ~OwnStream() { dev::drop_stream(s_); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  dev::Stream get() const { return s_; }

 private:
  dev::Stream s_;
};

class SideStreams {
 public:
  explicit SideStreams(const Model& m) {
    for (int i = 0; i < m.segment_count; ++i) {
      const SegmentRow& seg = m.segments[i];
      if (seg.kind != kParallel) continue;
      if (seg.streams > streams_) streams_ = seg.streams;
      if (seg.launches > launches_) launches_ = seg.launches;
    }
    if (streams_ > 1) sets_.emplace_back(new Set(streams_ - 1, launches_));
  }

  // Calls launch(i, stream) for each launch of a segment. All of them come after what is on the stream by now, and what
  // is put on it next comes after all of them.
  template <class Launch>
  void run(const Model& m, const SegmentRow& seg, dev::Stream stream, const Options& options, Launch launch) {
    Set* set = seg.streams > 1 ? &free_set() : nullptr;
    dev::Together together(options);
    if (set) set->fork.set(stream);
    std::vector<int> last(static_cast<size_t>(seg.streams), -1);  // the latest launch of each stream
    const LaunchRow* rows = m.launches + seg.first_launch;
    for (int i = 0; i < seg.launches; ++i) {
      const LaunchRow& row = rows[i];
      const dev::Stream s = row.stream == 0 ? stream : set->at(row.stream);
      int& before = last[static_cast<size_t>(row.stream)];
      if (before < 0 && row.stream > 0 && row.wait_count == 0) set->fork.join(s);
      before = i;
      for (int w = 0; w < row.wait_count; ++w) set->event(m.launch_waits[row.wait_begin + w]).join(s);
      launch(i, s);
      if (row.awaited) set->event(i).set(s);
    }
    for (int k = 1; k < seg.streams; ++k) {
      const int i = last[static_cast<size_t>(k)];
      if (i < 0) continue;
      if (!rows[i].awaited) set->event(i).set(set->at(k));
      set->event(i).join(stream);
    }
    together.run(stream);
  }

 private:
  struct Set {
    Set(int streams, int launches) : events(static_cast<size_t>(launches)) {
      for (int i = 0; i < streams; ++i) own.emplace_back(new OwnStream(dev::make_side_stream()));
    }
    dev::Stream at(int stream) const { return own[static_cast<size_t>(stream) - 1]->get(); }
    dev::Fence& event(int launch) {
      std::unique_ptr<dev::Fence>& e = events[static_cast<size_t>(launch)];
      if (!e) e.reset(new dev::Fence);
      return *e;
    }

    dev::Fence fork;
    std::vector<std::unique_ptr<OwnStream>> own;
    std::vector<std::unique_ptr<dev::Fence>> events;
  };

  // The streams and events that an inference uses. A side stream that has been drawn into the capture of a caller's
  // stream belongs to it until the caller ends the capture. Until then another set is used.
  Set& free_set() {
    for (std::unique_ptr<Set>& s : sets_) {
      bool busy = false;
      for (const auto& k : s->own) busy = busy || dev::capturing(k->get());
      if (!busy) return *s;
    }
    sets_.emplace_back(new Set(streams_ - 1, launches_));
    return *sets_.back();
  }

  int streams_ = 1, launches_ = 0;
  std::vector<std::unique_ptr<Set>> sets_;
};

}  // namespace rt
