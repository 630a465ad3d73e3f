// The device that the emulated driver plays: memory of the host, and streams whose work is carried out late and in any
// order that streams and events allow, so that an order which is missing shows in results.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <cuda.h>

namespace emulated {

// Work of a stream: it may be carried out once `ready` says so.
struct Work {
  std::function<bool()> ready;
  std::function<CUresult()> run;
};

struct Stream {
  bool blocking = true;  // it is ordered with the legacy default stream
  std::deque<Work> queue;
  std::vector<Work>* capture = nullptr;  // where the work goes while a graph is recorded
};

// An event counts how often it was recorded, and how often work has come to a recording. In a capture it stands for the
// stream that it was recorded on.
struct Event {
  uint64_t recorded = 0, reached = 0;
  std::vector<Work>* capture = nullptr;
};

struct Graph {
  std::vector<Work> work;
};

class Device {
 public:
  static Device& one() {
    static Device* device = new Device;  // it outlives whatever the process does at its end
    return *device;
  }

  std::recursive_mutex& mutex() { return mutex_; }

  CUresult allocate(CUdeviceptr* at, size_t bytes) {
    if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    void* p = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
    if (!p) return CUDA_ERROR_OUT_OF_MEMORY;
    // What nobody has written is NaN in every type of floating-point numbers.
    std::memset(p, 0xFF, bytes);
    *at = reinterpret_cast<CUdeviceptr>(p);
    memory_[*at] = bytes;
    return CUDA_SUCCESS;
  }
  CUresult release(CUdeviceptr at) {
    if (at == 0) return CUDA_SUCCESS;
    finish_all();
    if (memory_.erase(at) == 0) return CUDA_ERROR_INVALID_VALUE;
    std::free(reinterpret_cast<void*>(at));
    return CUDA_SUCCESS;
  }
  // The memory that holds all of the given bytes, or the end.
  bool holds(CUdeviceptr at, size_t bytes, CUdeviceptr* base = nullptr, size_t* size = nullptr) const {
    auto m = memory_.upper_bound(at);
    if (m == memory_.begin()) return false;
    --m;
    if (at + bytes > m->first + m->second) return false;
    if (base) *base = m->first;
    if (size) *size = m->second;
    return true;
  }
  size_t allocated() const { return memory_.size(); }

  Stream* make_stream(bool blocking) {
    Stream* s = new Stream;
    s->blocking = blocking;
    streams_.insert(s);
    return s;
  }
  // The null stream is one that blocks, and that the others wait for.
  Stream* stream(CUstream s) {
    if (s == nullptr) return &legacy_;
    Stream* p = reinterpret_cast<Stream*>(s);
    return streams_.count(p) ? p : nullptr;
  }
  CUresult drop(Stream* s) {
    const CUresult r = finish(s);
    streams_.erase(s);
    delete s;
    return r;
  }

  // Nothing is recorded any more of what all streams of a capture get.
  void end_capture(const std::vector<Work>* capture) {
    for (Stream* s : streams_) {
      if (s->capture == capture) s->capture = nullptr;
    }
  }

  CUresult put(Stream* s, Work w) {
    if (s->capture) {
      s->capture->push_back(std::move(w));
      return CUDA_SUCCESS;
    }
    if (s == &legacy_) {  // behind all streams that block, and before what they get next
      const CUresult r = finish_blocking();
      return r != CUDA_SUCCESS ? r : w.run();
    }
    s->queue.push_back(std::move(w));
    return CUDA_SUCCESS;
  }

  // Carries out work of all streams, in an order that is drawn, until the stream has none.
  CUresult finish(Stream* s) {
    return until([s] { return s->queue.empty(); });
  }
  CUresult finish_blocking() {
    return until([this] {
      for (Stream* s : streams_) {
        if (s->blocking && !s->queue.empty()) return false;
      }
      return true;
    });
  }
  CUresult finish_all() {
    return until([this] {
      for (Stream* s : streams_) {
        if (!s->queue.empty()) return false;
      }
      return true;
    });
  }
  CUresult until(const std::function<bool()>& done) {
    while (!done()) {
      std::vector<Stream*> able;
      for (Stream* s : streams_) {
        if (!s->queue.empty() && s->queue.front().ready()) able.push_back(s);
      }
      if (able.empty()) return CUDA_ERROR_LAUNCH_TIMEOUT;  // streams wait for each other
      Stream* s = able[drawn_() % able.size()];
      Work w = std::move(s->queue.front());
      s->queue.pop_front();
      const CUresult r = w.run();
      if (r != CUDA_SUCCESS) return r;
    }
    return CUDA_SUCCESS;
  }

 private:
  std::recursive_mutex mutex_;
  std::map<CUdeviceptr, size_t> memory_;
  std::set<Stream*> streams_;
  Stream legacy_;
  std::mt19937 drawn_{1};
};

}  // namespace emulated
