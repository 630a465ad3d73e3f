// An rTask's weights as they arrive in shared memory: the consumer's side of the ring (ring.cuh).
#pragma once

#include "rt/device/device.cuh"
#include "rt/trace/trace.cuh"

namespace rt {

// Where a program stood when the watchdog lost patience.
struct Report {
  uint32_t set;                 // a ReportKind; 0: nothing to report
  uint32_t segment, veu, step;  // who waits
  uint32_t on_veu, on_order;    // for whom, as in Wait
  uint32_t op, rtask;           // what it would run
  uint64_t expected, seen;
};

enum ReportKind : uint32_t {
  kWaitReport = 1,     // for a step or a counter
  kTaggedReport = 2,   // for the tagged word numbered on_order
  kWeightsReport = 3,  // for stage on_order of the ring to be filled that often
  kAbsentReport = 4,   // no wait: of the expected vEUs only so many came (guard.cuh)
  kNearReport = 5,     // for word on_order of its slots
};

// Whom a watchdog tells about a wait.
struct Watch {
  Report report = {};
  Report* notes = nullptr;  // one for each block
  uint64_t patience_ns = 0;
  ChunkPen pen = {};
  uint64_t delays = 0;  // debug builds: seed of the loader's random sleeps
  uint32_t veu = 0;
};

// How a weight block is cut into chunks: units of 16 bytes in all but the last, and their number.
struct Chunks {
  uint32_t words = 0, count = 0;
};

// A place in a ring: where a chunk is, and how often that stage was filled before.
struct RingPlace {
  uint32_t stage = 0, phase = 0;

  RT_DEVICE void pass(uint32_t chunks, uint32_t stages) {
    stage += chunks;
    RT_NO_UNROLL
    while (stage >= stages) stage -= stages, ++phase;
  }
};

// The chunks of an rTask's weights, one after another, in a ring of stages in shared memory. All but the
// last have chunk_bytes. Every warp of the rTask takes every chunk, in its own time:
//
//   rt::Stream s = t.stream;
//   … s.front() … s.pop(); …
class Stream {
 public:
  Stream() = default;
  RT_DEVICE Stream(char* stages, uint64_t* mbarriers, uint32_t count, int stage_bytes, uint32_t chunk_words,
                   RingPlace next, const Watch& w)
      : stages_(stages),
        full_(mbarriers),
        count_(count),
        stage_bytes_(stage_bytes),
        chunk_bytes_(static_cast<int>(16 * chunk_words)),
        next_(next),
        watch_(w) {}

  // A multiple of the rKernel's kStreamStep.
  RT_DEVICE int chunk_bytes() const { return chunk_bytes_; }

  // Waits until the next chunk is there.
  RT_DEVICE const char* front() const {
    Report r = watch_.report;
    r.on_order = next_.stage, r.expected = next_.phase + 1, r.seen = next_.phase;
    watch_.pen.wants(number());
    detail::mbarrier_wait(full_ + next_.stage, next_.phase, watch_.patience_ns, watch_.notes, r);
    watch_.pen.has(number());
    return stage();
  }

  // Gives the chunk in front back: nothing of it may be read any more. All lanes of a warp call it.
  RT_DEVICE void pop() {
    detail::sync_warp();  // lanes that waited for the chunk by themselves go on together
    detail::note_chunk();
    watch_.pen.frees(number());
    detail::free_stage(stage(), stage_bytes_, full_ + count_ + next_.stage);
    if (++next_.stage == count_) next_.stage = 0, ++next_.phase;
  }

 private:
  RT_DEVICE uint32_t number() const { return next_.phase * count_ + next_.stage; }
  RT_DEVICE char* stage() const { return stages_ + next_.stage * static_cast<uint32_t>(stage_bytes_); }

  char* stages_ = nullptr;
  uint64_t* full_ = nullptr;  // mbarriers: one of every stage, behind them as many for empty
  uint32_t count_ = 0;
  int stage_bytes_ = 0, chunk_bytes_ = 0;
  RingPlace next_;
  Watch watch_;
};

}  // namespace rt
