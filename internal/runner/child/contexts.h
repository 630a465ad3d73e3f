// Several contexts of a library at once, each in a thread of its own, as a service has them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "driver.h"
#include "model.h"

namespace {

// Where the tensors of one context are.
struct Tensors {
  std::vector<void*> in, out;
};

// Runs count contexts, each so many times, from the moment on at which all are ready. open makes a context and its
// tensors, run carries out an inference and throws a Failure, close gives both back. The result is how long all took,
// in milliseconds, and then the time of each run.
template <class Open, class Run, class Close>
std::vector<double> at_once(uint32_t count, uint32_t runs, Open open, Run run, Close close) {
  using Clock = std::chrono::steady_clock;
  auto ms = [](Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration<double, std::milli>(to - from).count();
  };
  std::vector<std::pair<model_ctx*, Tensors>> contexts;
  std::vector<std::vector<double>> times(count);
  std::vector<std::exception_ptr> failures(count);
  for (uint32_t i = 0; i < count; ++i) contexts.push_back(open());
  std::atomic<bool> go{false};
  std::atomic<uint32_t> ready{0};
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      try {
        run(contexts[i].first, contexts[i].second);  // the first one is a cold one
        ++ready;
        while (!go.load()) std::this_thread::yield();
        for (uint32_t k = 0; k < runs; ++k) {
          const Clock::time_point start = Clock::now();
          run(contexts[i].first, contexts[i].second);
          times[i].push_back(ms(start, Clock::now()));
        }
      } catch (...) {
        failures[i] = std::current_exception();
        ++ready;
      }
    });
  }
  while (ready.load() < count) std::this_thread::yield();
  const Clock::time_point start = Clock::now();
  go.store(true);
  for (std::thread& t : threads) t.join();
  std::vector<double> result = {ms(start, Clock::now())};
  for (auto& c : contexts) close(c.first, c.second);
  for (const std::exception_ptr& f : failures)
    if (f) std::rethrow_exception(f);
  for (const std::vector<double>& t : times) result.insert(result.end(), t.begin(), t.end());
  return result;
}

}  // namespace
