// Streams of the emulator. What is put on a stream happens at once, except while a Together lives: then launches, marks
// and joins wait in a queue for each stream, and are carried out in an order drawn from a seed, among those that
// streams and events allow. So the order comes from the same calls that order launches on a GPU.
#pragma once

#include "rt/host/environment.h"
#include "rt/host/model.h"

namespace rt::emu {

class Queues {
 public:
  explicit Queues(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ull | 1) {}

  void work(void* stream, std::function<void()> body) { of(stream).push_back({std::move(body), nullptr, 0}); }
  void mark(void* stream, const void* event) { of(stream).push_back({nullptr, event, ++marks_[event]}); }
  // The stream goes on when the mark that the event has now is reached. One that has none orders nothing.
  void join(void* stream, const void* event) {
    if (marks_[event] > 0) of(stream).push_back({nullptr, event, -marks_[event]});
  }

  // Carries out what waits until nothing is left of `last`, behind which the other streams must have been joined.
  void run(void* last) {
    while (!of(last).empty()) {
      std::vector<std::deque<Item>*> open;
      for (auto& q : queues_) {
        if (!q.second.empty() && may_go(q.second.front())) open.push_back(&q.second);
      }
      if (open.empty()) throw Error{kInternal, "streams wait for each other"};
      state_ ^= state_ >> 12, state_ ^= state_ << 25, state_ ^= state_ >> 27;  // xorshift64*
      std::deque<Item>& q = *open[static_cast<size_t>((state_ * 0x2545F4914F6CDD1Dull >> 32) % open.size())];
      const Item item = std::move(q.front());
      q.pop_front();
      if (item.body) {
        item.body();
      } else if (item.mark > 0) {
        reached_[item.event] = item.mark;
      }
    }
    for (auto& q : queues_) {
      if (!q.second.empty()) throw Error{kInternal, "launches of a side stream are not joined"};
    }
  }

 private:
  struct Item {
    std::function<void()> body;  // a launch; otherwise
    const void* event;
    int64_t mark;  // its mark, or if it is negative, the mark that is waited for
  };
  bool may_go(const Item& x) { return x.body || x.mark > 0 || reached_[x.event] >= -x.mark; }
  std::deque<Item>& of(void* stream) { return queues_[stream]; }

  uint64_t state_;
  std::map<void*, std::deque<Item>> queues_;
  std::map<const void*, int64_t> marks_, reached_;
};

// What the calling thread puts on streams waits here, if that is not null.
inline thread_local Queues* queues = nullptr;

}  // namespace rt::emu

namespace rt::dev {

using Stream = void*;

inline Stream make_stream() { return nullptr; }
inline Stream make_side_stream() { return new char; }
inline void drop_stream(Stream s) { delete static_cast<char*>(s); }
inline void wait_for(Stream) {}
inline bool capturing(Stream) { return false; }

class Fence {
 public:
  void set(Stream s) {
    if (emu::queues) emu::queues->mark(s, this);
  }
  void join(Stream s) {
    if (emu::queues) emu::queues->join(s, this);
  }
  void wait() {}
};

class Together {
 public:
  explicit Together(const Options& o) : queues_(seed_of(o)) { emu::queues = &queues_; }
  ~Together() { emu::queues = nullptr; }
  Together(const Together&) = delete;
  Together& operator=(const Together&) = delete;
  void run(Stream last) {
    emu::queues = nullptr;  // what is carried out happens at once
    queues_.run(last);
  }

 private:
  // Another one for every inference.
  static uint64_t seed_of(const Options& o) {
    static std::atomic<uint64_t> calls{0};
    return (o.seed ? o.seed : environment("RAMMER_EMU_SEED", 1)) + (calls++ << 32);
  }
  emu::Queues queues_;
};

}  // namespace rt::dev
