// Gathers requests into batches and runs them on the program of the smallest batch that holds them.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "metrics.h"
#include "model.h"

// The queue is full: whoever asks should try again later, or elsewhere.
struct Full : std::runtime_error {
  Full() : std::runtime_error("too many requests are waiting") {}
};

// One context of the library, with the sizes of its tensors for one sample.
class Context {
 public:
  Context() {
    if (model_create(nullptr, &ctx_) != model_OK) throw std::runtime_error(model_last_error(nullptr));
    const model_io* io = model_io_info();  // of the largest extents
    for (int i = 0; i < io->input_count; ++i) add(io->inputs[i], input_bytes);
    for (int i = 0; i < io->output_count; ++i) add(io->outputs[i], output_bytes);
    for (int i = 0; i < io->input_count; ++i)
      dims_.emplace_back(io->inputs[i].dims, io->inputs[i].dims + io->inputs[i].rank);
  }
  ~Context() { model_destroy(ctx_); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Whether the library has a program for n samples, which runs from then on.
  bool set_batch(int64_t n) {
    std::vector<const int64_t*> rows;
    for (std::vector<int64_t>& d : dims_) {
      d[0] = n;
      rows.push_back(d.data());
    }
    return model_set_dims(ctx_, rows.data()) == model_OK;
  }

  void run(const std::vector<std::string>& in, std::vector<std::string>& out) {
    std::vector<const void*> from;
    std::vector<void*> to;
    for (const std::string& x : in) from.push_back(x.data());
    for (std::string& x : out) to.push_back(x.data());
    if (model_run(ctx_, from.data(), to.data(), model_HOST) != model_OK)
      throw std::runtime_error(model_last_error(ctx_));
  }

  int64_t most = 0;                               // the largest batch
  std::vector<size_t> input_bytes, output_bytes;  // of one sample

 private:
  void add(const model_tensor& t, std::vector<size_t>& bytes) {
    if (t.rank == 0 || (most != 0 && t.dims[0] != most))
      throw std::runtime_error(std::string(t.name) + ": the first dim must be the batch");
    most = t.dims[0];
    bytes.push_back(t.bytes / static_cast<size_t>(most));
  }
  model_ctx* ctx_ = nullptr;
  std::vector<std::vector<int64_t>> dims_;
};

class Batcher {
 public:
  using Milliseconds = std::chrono::duration<double, std::milli>;

  Batcher(int workers, size_t queue, Milliseconds delay, Metrics& metrics)
      : capacity_(queue), delay_(delay), metrics_(metrics) {
    for (int i = 0; i < workers; ++i) contexts_.push_back(std::make_unique<Context>());
    Context& c = *contexts_[0];
    for (size_t n : c.input_bytes) sample_bytes_ += n;
    for (int64_t n = 1; n <= c.most; ++n)
      if (c.set_batch(n)) sizes_.push_back(n);
    if (sizes_.empty()) throw std::runtime_error("the library takes no batch; compile it with --dim batch=1,4,16");
    for (auto& context : contexts_) workers_.emplace_back([this, &context] { work(*context); });
  }

  // Answers what is in the queue, and ends.
  ~Batcher() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
    for (std::thread& t : workers_) t.join();
  }

  // Waits for the outputs of one sample.
  std::string infer(std::string body) {
    std::future<std::string> answer;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (queue_.size() >= capacity_ || closed_) throw Full();
      queue_.push_back({std::move(body), {}});
      answer = queue_.back().answer.get_future();
    }
    changed_.notify_one();
    return answer.get();
  }

  size_t sample_bytes() const { return sample_bytes_; }
  size_t waiting() {
    std::lock_guard<std::mutex> lock(mutex_);
    return queue_.size();
  }

 private:
  struct Request {
    std::string body;
    std::promise<std::string> answer;
  };
  using Batch = std::vector<Request>;

  void work(Context& context) {
    for (;;) {
      Batch batch = gather();
      if (batch.empty()) return;
      const auto start = std::chrono::steady_clock::now();
      const int64_t n = *std::lower_bound(sizes_.begin(), sizes_.end(), static_cast<int64_t>(batch.size()));
      try {
        const std::vector<std::string> out = run(context, batch, n);
        metrics_.batch(batch.size(), n, std::chrono::steady_clock::now() - start);
        for (size_t i = 0; i < batch.size(); ++i) {
          std::string answer;
          for (size_t k = 0; k < out.size(); ++k)
            answer.append(out[k], i * context.output_bytes[k], context.output_bytes[k]);
          batch[i].answer.set_value(std::move(answer));
        }
      } catch (...) {
        for (Request& r : batch) r.answer.set_exception(std::current_exception());
      }
    }
  }

  // The first request, and what comes behind it until the batch is full or the first has waited long enough. Empty at
  // the end.
  Batch gather() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return closed_ || !queue_.empty(); });
    Batch batch;
    const auto late = std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(delay_);
    const size_t most = static_cast<size_t>(sizes_.back());
    while (batch.size() < most) {
      if (!queue_.empty()) {
        batch.push_back(std::move(queue_.front()));
        queue_.pop_front();
        continue;
      }
      if (batch.empty() || closed_) break;
      if (!changed_.wait_until(lock, late, [this] { return closed_ || !queue_.empty(); })) break;
    }
    return batch;
  }

  // Runs a batch on the program for n samples. The places behind the last sample repeat it.
  std::vector<std::string> run(Context& context, const Batch& batch, int64_t n) {
    if (!context.set_batch(n)) throw std::runtime_error("the library takes no batch of this size any more");
    std::vector<std::string> in, out;
    size_t at = 0;
    for (size_t bytes : context.input_bytes) {
      in.emplace_back();
      for (size_t i = 0; i < static_cast<size_t>(n); ++i)
        in.back().append(batch[std::min(i, batch.size() - 1)].body, at, bytes);
      at += bytes;
    }
    for (size_t bytes : context.output_bytes) out.emplace_back(bytes * static_cast<size_t>(n), '\0');
    context.run(in, out);
    return out;
  }

  const size_t capacity_;
  const Milliseconds delay_;
  Metrics& metrics_;
  std::vector<std::unique_ptr<Context>> contexts_;
  std::vector<int64_t> sizes_;  // the batches that the library has programs for, the smallest first
  size_t sample_bytes_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request> queue_;
  bool closed_ = false;
  std::vector<std::thread> workers_;
};
