// The constants of products of warp groups as the stream brings them.
#pragma once

#include "rt/device/device.cuh"

namespace rk {

// The stages of B as they come through the stream, of which a chunk may hold several. A stage may be read after the
// next one has been taken, until it is done. What is there to keep count of is apart from waiting for a stage and from
// giving it back, so that it can be done while tensor cores are at work.
template <class T>
class GroupStages {
 public:
  RT_DEVICE explicit GroupStages(const rt::Stream& stream)
      : taken_(T::kSplit ? stream : stream.settled()),  // sums of three products leave no registers for that
        given_back_(taken_),
        ending_(taken_),
        chunk_(stream.chunk_bytes()) {}
  // Where the next stage will be.
  RT_DEVICE const char* ahead() const { return left_ == 0 ? taken_.ahead() : at_ + T::kStageB; }
  // Waits until the next stage has come.
  RT_DEVICE void await() const {
    if (left_ == 0) taken_.front();
  }
  // Takes the stage, which has come.
  RT_DEVICE void take() {
    at_ = ahead();
    if (left_ == 0) {
      taken_.pass();
      left_ = chunk_;
    }
    left_ -= T::kStageB;
  }
  // The next stage; waits until it has come.
  RT_DEVICE const char* next() {
    if (left_ == 0) {
      at_ = taken_.front();
      taken_.pass();
      left_ = chunk_;
    } else {
      at_ += T::kStageB;
    }
    left_ -= T::kStageB;
    return at_;
  }
  // The warp will not read the stage much longer that was taken first of those that are not done. Finds out what is to
  // be given back then.
  RT_DEVICE void ending() {
    read_ += T::kStageB;
    ends_ = read_ == chunk_;
    ending_ = given_back_;
    if (!ends_) return;
    given_back_.pass();
    read_ = 0;
  }
  // The warp does not read that stage any more.
  RT_DEVICE void ended() const {
    if (ends_) ending_.give_back();
  }
  // The same for a stage of which nothing was found out before.
  RT_DEVICE void done() {
    read_ += T::kStageB;
    if (read_ == chunk_) end();
  }
  // All stages are done. The last chunk may hold fewer of them.
  RT_DEVICE void end() {
    if (read_ > 0) given_back_.give_back(), given_back_.pass();
    read_ = 0;
  }

 private:
  rt::Stream taken_, given_back_, ending_;
  const char* at_ = nullptr;
  int chunk_;          // bytes of a chunk
  int left_ = 0;       // bytes of the latest chunk that have not been taken
  int read_ = 0;       // bytes of the first chunk that has not been given back, which are done
  bool ends_ = false;  // the stage that ends is the last of its chunk
};

}  // namespace rk
