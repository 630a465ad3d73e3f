// The weight loader. Which weights a vEU's steps read, and in which order, is known before the launch. So one more warp
// of the thread block, the loader, walks the vEU's steps ahead of the warps that compute, and copies their weight
// blocks, cut into chunks, into a ring of stages in shared memory. It waits for free stages, and while too much is on
// the way, and for nothing else, so the stream of weights goes on where steps wait for activations. Example: a ring of
// 3 stages; step 5 takes chunks 0 and 1, step 6 chunks 2 to 4.
//
//   chunk           0   1   2   3   4
//   stage           0   1   2   0   1      number modulo stages
//   phase           0   0   0   1   1      number divided by stages: how often the stage was filled before
//
//   loader          waits for `empty`, phase - 1, unless the phase is 0; copies; the copy completes `full`, phase
//   warps           wait for `full`, phase; read; arrive at `empty`
#pragma once

#include "rt/exec/delays.cuh"
#include "rt/device/device.cuh"
#include "rt/exec/launch_args.cuh"
#include "rt/exec/needs.cuh"

namespace rt {

// A ring in shared memory: the stages, and behind them their mbarriers. `full` of a stage completes a phase when the
// chunk has come, `empty` when all warps that compute have read it.
// What passes leaves L2 before other data do.
template <int StageBytes, bool Passing = false>
class Ring {
 public:
  static_assert(StageBytes > 0 && StageBytes % int{kSharedAlign} == 0, "stages are aligned");
  static_assert(kMbarrierBytes == sizeof(uint64_t));
  static constexpr size_t bytes(int stages) { return static_cast<size_t>(stages) * (StageBytes + kStageBarrierBytes); }

  RT_DEVICE Ring(char* at, uint32_t stages)
      : at_(at), full_(reinterpret_cast<uint64_t*>(at + stages * static_cast<size_t>(StageBytes))), count_(stages) {}

  RT_DEVICE uint32_t count() const { return count_; }

  // Called by the loader's warp. Makes the mbarriers, and lets the vEU's threads use the ring; `threads` is their
  // number.
  RT_DEVICE void open(int threads) {
    if (detail::thread_index() % 32 == 0) {
      RT_NO_UNROLL
      for (uint32_t i = 0; i < count_; ++i) {
        detail::mbarrier_init(full_ + i, detail::kFillArrivals);
        detail::mbarrier_init(full_ + count_ + i, threads / 32);
      }
      detail::mbarrier_init_done();
    }
    detail::sync_warp();
    detail::loader_ready(threads + 32);
  }

  // The stream of an rTask whose first chunk is at the given place.
  RT_DEVICE Stream stream(Chunks c, RingPlace at, const Watch& w) const {
    return Stream(at_, full_, count_, StageBytes, c.words, at, w);
  }

  // For warps that take no part in an rTask: they give all its chunks back, since `empty` counts them, too.
  RT_DEVICE static void skip(Stream s, Chunks c) {
    RT_NO_UNROLL
    for (uint32_t n = c.count; n > 0; --n) {
      s.front();
      s.pop();
    }
  }

  // Called by all lanes of the loader's warp: copies a weight block of so many words into the ring, chunk by chunk,
  // from the given place on. With Announce it allows the next launch to begin when the ring is full for the first time:
  // the rest comes as the rTask gives stages back.
  template <bool Announce = false>
  RT_DEVICE void feed(RingPlace& at, const char* block, uint32_t words, uint32_t chunk_words, Watch& w) {
    uint32_t most = count_;  // chunks on the way; found out behind the first copy, which does not wait for that
    RT_NO_UNROLL
    while (words > 0) {
      const uint32_t n = words < chunk_words ? words : chunk_words;
      uint64_t* full = full_ + at.stage;
      const uint32_t number = at.phase * count_ + at.stage;
      w.pen.asks(number, 16 * n);
      // In phase 0 every stage is free.
      if (at.phase > 0) wait(full + count_, at.phase - 1, w);
      if (most < count_) await_landing(at, most, w);
      // One lane fills the stage when all have seen it free. One that came later would miss that: phases are told apart
      // by their parity.
      detail::sync_warp();
      w.pen.issues(number);
      detail::fill_stage(at_ + at.stage * static_cast<uint32_t>(StageBytes), full, block, 16 * n, Passing);
      note_landed(w);
      block += 16 * static_cast<size_t>(n);
      words -= n;
      most = chunks_on_the_way(n);  // a chunk that is shorter is the last one
      if (++at.stage == count_) {
        at.stage = 0;
        if (Announce && at.phase == 0) detail::allow_next_launch();
        ++at.phase;
      }
    }
  }

  // After the last block. A tracing build waits until all chunks have landed, since it notes when.
  RT_DEVICE void close(Watch& w) {
    if constexpr (kTraced) {
      while (w.pen.loads()) wait(full_ + w.pen.landed() % count_, w.pen.landed() / count_, w);
    }
    w.pen.ends();
  }

 private:
  // So many bytes may be on the way at once. That is more than the memory brings while one answer is on its way; what
  // goes beyond it waits in front of the memory, and flags and results of other vEUs wait behind it.
  static constexpr uint32_t kMostBytes = 64 << 10;

  // How many chunks that is, of so many words each; at least one. Because of the half that is added, rounding does not
  // matter: it is the quotient of the integers, which would take four times as many instructions.
  RT_DEVICE static uint32_t chunks_on_the_way(uint32_t words) {
    const uint32_t n = static_cast<uint32_t>(detail::near_quotient(kMostBytes / 16 + 0.5f, static_cast<float>(words)));
    return n > 0 ? n : 1;
  }

  // Waits until the chunk has landed that is so many chunks in front of the given place.
  RT_DEVICE void await_landing(RingPlace at, uint32_t chunks, Watch& w) const {
    const bool wraps = at.stage < chunks;
    if (wraps && at.phase == 0) return;
    wait(full_ + (wraps ? at.stage + count_ - chunks : at.stage - chunks), wraps ? at.phase - 1 : at.phase, w);
  }

  // A tracing build's loader looks meanwhile which copies have landed. It must have noted that of a stage's copy before
  // it fills the stage again.
  RT_DEVICE void wait(uint64_t* bar, uint32_t phase, Watch& w) const {
    if constexpr (kTraced) {
      detail::mbarrier_wait(bar, phase, w.patience_ns, w.notes, w.report, [&] { note_landed(w); });
      note_landed(w);
    } else {
      detail::mbarrier_wait(bar, phase, w.patience_ns, w.notes, w.report);
    }
  }
  RT_DEVICE void note_landed(Watch& w) const {
    w.pen.lands([&](uint32_t number) { return detail::mbarrier_test(full_ + number % count_, number / count_); });
  }

  char* at_;
  uint64_t* full_;
  uint32_t count_;
};

// Brings the weight block of a thread block that runs one step. Where it is follows from the thread block's number.
template <class Ring>
RT_DEVICE void load_block(Ring& ring, const BlockStream& s, uint32_t step, const char* weights, Watch& watch) {
  const uint32_t b = static_cast<uint32_t>(detail::block_index());
  const uint32_t words = b == s.last ? s.last_words : s.words;
  RingPlace at;
  watch.pen.turn(step);
  random_pause(watch.delays, Pause::kLoad, watch.veu, step);
  ring.template feed<true>(at, weights + 16 * static_cast<size_t>(s.at + b * s.stride), words, s.chunk_words, watch);
  if (at.phase == 0) detail::allow_next_launch();  // the ring has room for more than the block
  ring.close(watch);
}

// Brings the weight block of a thread block that runs one step. Where it is stands in the step table.
template <class Ring>
RT_DEVICE void load_step(Ring& ring, const Step* steps, uint32_t step, const char* weights, Watch& watch) {
  RingPlace at;
  const Step& s = steps[step];
  const uint32_t block = ld_const(&s.stream), words = ld_const(&s.stream_words), chunk = ld_const(&s.chunk_words);
  watch.pen.turn(step);
  random_pause(watch.delays, Pause::kLoad, watch.veu, step);
  ring.feed(at, weights + 16 * static_cast<size_t>(block), words, chunk, watch);
  ring.close(watch);
}

// Walks the weight blocks of a vEU's steps, which come into the ring from the given place on. Each lane holds the place
// of one step's block: those of 32 steps are held, and those of the 32 steps behind are on their way.
//
// Where the vEU tests conditions (jump.cuh), verdict() says over how many steps it jumps, once for each step with jumps
// that it comes to.
template <bool Jumps, class Ring, class Verdict>
RT_DEVICE void load_weights(Ring& ring, const Step* steps, StepRange mine, RingPlace& at, const char* weights,
                            Watch& watch, Verdict verdict) {
  struct Block {
    uint32_t at, words, chunk, jumps;
  };
  const uint32_t lane = static_cast<uint32_t>(detail::thread_index()) % 32;
  auto fetch = [&](uint32_t i) {
    Block b{0, 0, 0, 0};
    if (i < mine.last) {
      const Step& s = steps[i];
      b = Block{ld_const(&s.stream), ld_const(&s.stream_words), ld_const(&s.chunk_words), Jumps ? s.jumps : 0u};
    }
    return b;
  };
  Block next = fetch(mine.first + lane);
  RT_NO_UNROLL
  for (uint32_t i = mine.first; i < mine.last;) {
    const Block held = next;
    next = fetch(i + 32 + lane);
    uint32_t n = mine.last - i < 32 ? mine.last - i : 32;
    RT_NO_UNROLL
    for (uint32_t k = 0; k < n; ++k) {
      const Block b = detail::shfl(held, static_cast<int>(k));
      if (Jumps && b.jumps > 0) {
        const uint32_t over = verdict();
        if (over > 0) {
          n = k + over;
          next = fetch(i + n + lane);
          break;
        }
      }
      watch.pen.turn(i + k);
      random_pause(watch.delays, Pause::kLoad, watch.veu, i + k);
      ring.feed(at, weights + 16 * static_cast<size_t>(b.at), b.words, b.chunk, watch);
    }
    i += n;
  }
}

}  // namespace rt
