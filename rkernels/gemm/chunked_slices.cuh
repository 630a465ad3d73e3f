// The stream of an rTask that takes its weights in slices of equal size, of which a chunk is one or several.
#pragma once

#include "rt/device/device.cuh"

namespace rk {

// Takes slices of so many bytes off the stream.
template <int Bytes>
class ChunkedSlices {
 public:
  RT_DEVICE ChunkedSlices(const rt::Task& t, int left) : stream_(t.stream), left_(left) {}
  RT_DEVICE const char* next() {
    if (here_ == 0) {
      at_ = reinterpret_cast<const char*>(stream_.front());
      here_ = stream_.chunk_bytes() / Bytes;
    }
    const char* slice = at_;
    at_ += Bytes, --here_, --left_;
    return slice;
  }
  // Called when the warp has read the latest slice. The last chunk of a block may be shorter.
  RT_DEVICE void done() {
    if (here_ == 0 || left_ == 0) stream_.pop(), here_ = 0;
  }

 private:
  rt::Stream stream_;
  const char* at_ = nullptr;
  int left_;      // slices of the rTask
  int here_ = 0;  // and of the front chunk
};

}  // namespace rk
