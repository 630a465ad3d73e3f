// An rTask's weights as they arrive in shared memory: the consumer's side of the ring (exec/ring.cuh).
#pragma once

#include "rt/device/backend.cuh"
#include "rt/device/report.cuh"
#include "rt/trace/trace.cuh"

namespace rt {

// What a wait for the ring tells the watchdog and the trace.
struct Watch {
  Report report = {};
  Report* notes = nullptr;   // one for each block
  uint64_t patience_ns = 0;  // how long the wait may take, in debug builds
  ChunkPen pen = {};
  uint64_t delays = 0;  // seed of the loader's random sleeps, in debug builds
  uint32_t veu = 0;
};

// How a weight block is cut into chunks: the length of all but the last one, in units of 16 bytes, and their number.
struct Chunks {
  uint32_t words = 0, count = 0;
};

// The place of a chunk in a ring: its stage, and how often that stage was filled before (the phase of the stage's
// mbarriers).
struct RingPlace {
  uint32_t stage = 0, phase = 0;

  // Goes on by so many chunks, in a ring of so many stages.
  RT_DEVICE void pass(uint32_t chunks, uint32_t stages) {
    stage += chunks;
    RT_NO_UNROLL
    while (stage >= stages) stage -= stages, ++phase;
  }
};

// The chunks of an rTask's weights, one after another, in a ring of stages in shared memory. All but the last have
// chunk_bytes() bytes. Every warp of the rTask takes every chunk, at its own pace:
//
//   rt::Stream s = t.stream;
//   for (…) {
//     const char* weights = s.front();  // waits until the chunk has come
//     …
//     s.pop();                          // gives its stage back to the loader
//   }
//
// A warp that still reads a chunk when it takes the next one has two copies of the stream: one goes on by front() and
// pass(), and the other gives the chunks back in the same order, by pop().
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

  // The length of all chunks but the last, a multiple of the rKernel's kStreamStep.
  RT_DEVICE int chunk_bytes() const { return chunk_bytes_; }

  // The same stream, for a warp whose lanes all call this. What is known of the ring stays in registers then, and is
  // not found out for every chunk.
  RT_DEVICE Stream settled() const {
    Stream s = *this;
    s.stages_ = detail::settled_shared(stages_);
    s.full_ = reinterpret_cast<uint64_t*>(detail::settled_shared(reinterpret_cast<char*>(full_)));
    s.count_ = static_cast<uint32_t>(detail::same_in_warp(static_cast<int>(count_)));
    return s;
  }

  // Where the next chunk will be.
  RT_DEVICE const char* ahead() const { return stage(); }

  // Waits until the next chunk has come.
  RT_DEVICE const char* front() const {
    Report r = watch_.report;
    r.on_order = next_.stage, r.expected = next_.phase + 1, r.seen = next_.phase;
    watch_.pen.wants(number());
    detail::mbarrier_wait(full_ + next_.stage, next_.phase, watch_.patience_ns, watch_.notes, r);
    watch_.pen.has(number());
    return stage();
  }

  // What waits of the rTask tell the watchdog.
  RT_DEVICE const Watch& watch() const { return watch_; }

  // Gives the front chunk's stage back. The warp must not read the chunk any more. All lanes of a warp call it.
  RT_DEVICE void pop() {
    give_back();
    pass();
  }

  // The same, without going on to the next chunk.
  RT_DEVICE void give_back() const {
    detail::sync_warp();  // each lane has waited for the chunk by itself; from here on they are together again
    detail::note_chunk();
    watch_.pen.frees(number());
    detail::free_stage(stage(), stage_bytes_, full_ + count_ + next_.stage, detail::thread_index() % 32 == 0);
  }

  // Goes on to the next chunk, and leaves the giving back of the front one to another copy of the stream.
  RT_DEVICE void pass() {
    if (++next_.stage == count_) next_.stage = 0, ++next_.phase;
  }

 private:
  RT_DEVICE uint32_t number() const { return next_.phase * count_ + next_.stage; }
  RT_DEVICE char* stage() const { return stages_ + next_.stage * static_cast<uint32_t>(stage_bytes_); }

  char* stages_ = nullptr;
  uint64_t* full_ = nullptr;  // the stages' full mbarriers, behind them their empty ones
  uint32_t count_ = 0;
  int stage_bytes_ = 0, chunk_bytes_ = 0;
  RingPlace next_;
  Watch watch_;
};

}  // namespace rt
