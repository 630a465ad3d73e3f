// The trace on the host: allocates the rows, tells each launch where its rows are, and copies them out. internal/trace
// reads the format.
#pragma once

#include <cstring>
#include <vector>

#include "rt/host/model.h"
#include "rt/exec/launch_args.cuh"
#include "rt/host/weights.h"

namespace rt {

#if defined(RT_TRACE)

#if !defined(RT_TRACE_STEPS)
#define RT_TRACE_STEPS (1 << 20)
#endif
#if !defined(RT_TRACE_CHUNKS)
#define RT_TRACE_CHUNKS (1 << 19)
#endif
// The most rows of a context. Steps and chunks beyond are counted and not kept.
constexpr uint64_t kMostTraceSteps = RT_TRACE_STEPS;
constexpr uint64_t kMostTraceChunks = RT_TRACE_CHUNKS;

class TraceBuffers {
 public:
  // Makes rows for the persistent launches of rPrograms, for their waves, or for both.
  TraceBuffers(const Model& m, bool persistent, bool waves) {
    for (int i = 0; i < m.segment_count; ++i) {
      const SegmentRow& seg = m.segments[i];
      segments_.push_back({steps_, seg.step_count});
      launches_.resize(static_cast<size_t>(seg.first_launch + seg.launches));
      steps_ += seg.step_count;
      for (int k = 0; k < seg.launches; ++k) {
        if (seg.kind == kRProgram && !(k == 0 ? persistent : waves)) continue;
        const LaunchRow& row = m.launches[seg.first_launch + k];
        const uint64_t blocks = static_cast<uint64_t>(row.grid), left = (kMostTraceChunks - chunk_rows_) / blocks;
        const uint64_t room = static_cast<uint64_t>(row.chunks) < left ? static_cast<uint64_t>(row.chunks) : left;
        launches_[static_cast<size_t>(seg.first_launch + k)] = {launch_rows_, chunk_rows_, number_++,
                                                                static_cast<uint32_t>(room)};
        launch_rows_ += blocks, chunk_rows_ += room * blocks;
      }
    }
    if (steps_ > kMostTraceSteps) steps_ = kMostTraceSteps;
    bytes_ = steps_ * sizeof(TraceStep) + launch_rows_ * sizeof(TraceLaunch) + chunk_rows_ * sizeof(TraceChunk);
    rows_ = DeviceBuffer(bytes_);
    dev::clear(rows_.get(), bytes_);
  }

  // Tells a launch where its rows are. `launch` is the launch's row in the model.
  void place(uint32_t segment, int launch, TraceArgs& args) const {
    const Steps& s = segments_[segment];
    const Launch& l = launches_[static_cast<size_t>(launch)];
    const uint64_t first = s.row < steps_ ? s.row : steps_, room = steps_ - first;
    args.trace_steps = reinterpret_cast<TraceStep*>(rows_.get()) + first;
    args.trace_room = static_cast<uint32_t>(room < s.count ? room : s.count);
    TraceLaunch* launches = reinterpret_cast<TraceLaunch*>(rows_.get() + steps_ * sizeof(TraceStep));
    args.trace_launches = launches + l.row;
    args.trace_chunks = reinterpret_cast<TraceChunk*>(launches + launch_rows_) + l.chunk_row;
    args.trace_chunk_room = l.chunk_room;
    args.trace_launch = l.number;
  }

  size_t size() const { return sizeof(TraceHeader) + bytes_; }

  // Writes size() bytes.
  void read(char* to) const {
    TraceHeader h = {};
    std::memcpy(h.magic, kTraceMagic, sizeof h.magic);
    h.version = kTraceVersion, h.header_bytes = sizeof h;
    h.step_bytes = sizeof(TraceStep), h.launch_bytes = sizeof(TraceLaunch), h.chunk_bytes = sizeof(TraceChunk);
    h.steps = steps_, h.launches = launch_rows_, h.chunks = chunk_rows_;
    std::memcpy(to, &h, sizeof h);
    dev::download(to + sizeof h, rows_.get(), bytes_);
  }

 private:
  struct Steps {
    uint64_t row, count;
  };
  struct Launch {
    uint64_t row, chunk_row;
    uint32_t number;      // of the inference
    uint32_t chunk_room;  // of each block
  };
  std::vector<Steps> segments_;
  std::vector<Launch> launches_;
  uint64_t steps_ = 0, launch_rows_ = 0, chunk_rows_ = 0;
  uint32_t number_ = 0;
  size_t bytes_ = 0;
  DeviceBuffer rows_;
};

#else

class TraceBuffers {
 public:
  TraceBuffers(const Model&, bool, bool) {}
  void place(uint32_t, int, TraceArgs&) const {}
  size_t size() const { throw Error{kBadArgument, "the library was built without RT_TRACE"}; }
  void read(char*) const {}
};

#endif

}  // namespace rt
