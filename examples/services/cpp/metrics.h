// What /metrics shows, in Prometheus's text form.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <sstream>
#include <string>

// Counts of times in buckets that double from 50 µs.
class Histogram {
 public:
  void add(std::chrono::nanoseconds took) {
    const double seconds = std::chrono::duration<double>(took).count();
    size_t i = 0;
    for (double limit = 50e-6; i < counts_.size() - 1 && seconds > limit; limit *= 2) ++i;
    ++counts_[i];
    sum_ += seconds;
  }
  void print(std::ostream& to, const std::string& name, const char* help) const {
    to << "# HELP " << name << ' ' << help << "\n# TYPE " << name << " histogram\n";
    uint64_t below = 0;
    double limit = 50e-6;
    for (size_t i = 0; i < counts_.size(); ++i, limit *= 2) {
      below += counts_[i];
      to << name << "_bucket{le=\"";
      i + 1 < counts_.size() ? to << limit : to << "+Inf";
      to << "\"} " << below << '\n';
    }
    to << name << "_sum " << sum_ << '\n' << name << "_count " << below << '\n';
  }

 private:
  std::array<uint64_t, 19> counts_ = {};
  double sum_ = 0;
};

class Metrics {
 public:
  void request(int code, std::chrono::nanoseconds took) {
    std::lock_guard<std::mutex> lock(mutex_);
    ++requests_[code];
    seconds_.add(took);
  }
  void batch(size_t samples, int64_t size, std::chrono::nanoseconds took) {
    std::lock_guard<std::mutex> lock(mutex_);
    ++batches_[size];
    samples_ += samples;
    running_.add(took);
  }
  std::string text(size_t waiting) {
    std::lock_guard<std::mutex> lock(mutex_);
    std::ostringstream to;
    to << "# HELP service_requests_total Requests by status.\n# TYPE service_requests_total counter\n";
    for (const auto& [code, n] : requests_) to << "service_requests_total{code=\"" << code << "\"} " << n << '\n';
    to << "# HELP service_batches_total Runs by the size of the program.\n# TYPE service_batches_total counter\n";
    for (const auto& [size, n] : batches_) to << "service_batches_total{size=\"" << size << "\"} " << n << '\n';
    to << "# HELP service_samples_total Samples that were run, without padding.\n# TYPE service_samples_total counter\n"
       << "service_samples_total " << samples_ << '\n';
    to << "# HELP service_queue_length Requests that wait.\n# TYPE service_queue_length gauge\nservice_queue_length "
       << waiting << '\n';
    seconds_.print(to, "service_request_seconds", "From a request's headers to its answer.");
    running_.print(to, "service_run_seconds", "Runs of the model.");
    return to.str();
  }

 private:
  std::mutex mutex_;
  std::map<int, uint64_t> requests_;
  std::map<int64_t, uint64_t> batches_;
  uint64_t samples_ = 0;
  Histogram seconds_, running_;
};
