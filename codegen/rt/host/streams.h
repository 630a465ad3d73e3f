// Launches on several streams: the streams beside the one an inference is put on, and the events that
// order launches across them.
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

  // Calls launch(i, stream) for each launch of a segment, so that all come after what is on the stream
  // and what is put there next comes after all of them.
  template <class Launch>
  void run(const Model& m, const SegmentRow& seg, dev::Stream stream, const Options& options, Launch launch) {
    Set* set = seg.streams > 1 ? &free_set() : nullptr;
    if (set) set->fork.set(stream);
    std::vector<int> last(static_cast<size_t>(seg.streams), -1);  // launch of each stream
    const LaunchRow* rows = m.launches + seg.first_launch;
    dev::each_launch(rows, seg.launches, m.launch_waits, options, [&](int i) {
      const LaunchRow& row = rows[i];
      const dev::Stream s = row.stream == 0 ? stream : set->at(row.stream);
      int& before = last[static_cast<size_t>(row.stream)];
      if (before < 0 && row.stream > 0 && row.wait_count == 0) set->fork.join(s);
      before = i;
      for (int w = 0; w < row.wait_count; ++w) set->event(m.launch_waits[row.wait_begin + w]).join(s);
      launch(i, s);
      if (row.awaited) set->event(i).set(s);
    });
    for (int k = 1; k < seg.streams; ++k) {
      const int i = last[static_cast<size_t>(k)];
      if (i < 0) continue;
      if (!rows[i].awaited) set->event(i).set(set->at(k));
      set->event(i).join(stream);
    }
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

  // A stream that takes part in the capture of a caller's stream does so until the caller ends it. Until
  // then others go on.
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
