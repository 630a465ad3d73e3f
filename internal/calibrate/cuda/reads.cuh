// How fast one SM, and all SMs together, read from L2 and DRAM: with loads that bypass the first-level cache, and with
// bulk copies to shared memory. The compiler could leave out loads whose results nobody needs. So threads add up what
// they load, and the sum is compared with that of a kernel that reads every vector once. The bytes of a bulk copy are
// counted by the mbarrier that it completes.
#pragma once

#include "lab.cuh"
#include "rt/device/device.cuh"

namespace reads {

using lab::Lab;
using lab::Samples;

constexpr int kWide = 1024;   // threads of a block that is to keep an SM busy
constexpr int kInFlight = 8;  // loads of a thread that are under way at once

__device__ __forceinline__ uint32_t sum_of(uint4 v) { return v.x + v.y + v.z + v.w; }

// Reads a buffer of 2^n vectors of 16 bytes again and again until the given number of vectors is read. Each thread
// keeps kInFlight loads under way and writes the sum of its words at the end. cycles is how long the first block took.
__global__ void __launch_bounds__(kWide)
    read_all(const uint4* p, size_t vectors, size_t reads, uint32_t* sums, long long* cycles) {
  const long long begin = clock64();
  const size_t all = size_t{gridDim.x} * blockDim.x, me = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
  uint32_t sum = 0;
  for (size_t i = me; i < reads; i += kInFlight * all) {
    uint4 v[kInFlight];
#pragma unroll
    for (int k = 0; k < kInFlight; ++k) v[k] = __ldcg(p + ((i + k * all) & (vectors - 1)));
#pragma unroll
    for (int k = 0; k < kInFlight; ++k) sum += sum_of(v[k]);
  }
  sums[me] = sum;
  __syncthreads();
  if (me == 0) *cycles = clock64() - begin;
}

// Computes what the threads' sums must add up to.
__global__ void expect(const uint4* p, size_t vectors, size_t reads, uint32_t* total) {
  uint32_t sum = 0;
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < vectors; i += size_t{gridDim.x} * blockDim.x) {
    sum += static_cast<uint32_t>(reads / vectors + (i < reads % vectors)) * sum_of(p[i]);
  }
  atomicAdd(total, sum);
}

inline size_t power_of_two_within(size_t n) {
  size_t p = 1;
  while (2 * p <= n) p *= 2;
  return p;
}

template <class T>
std::vector<T> copied(const T* from, size_t count) {
  std::vector<T> v(count);
  LAB_CHECK(cudaMemcpy(v.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost));
  return v;
}

// The buffers and launches of one measurement.
class Reads {
 public:
  Reads(Lab& l, size_t buffer, double bytes, int blocks) : l_(l), blocks_(blocks) {
    const size_t size = power_of_two_within(buffer), turn = kInFlight * threads();
    vectors_ = size / sizeof(uint4);
    count_ = (static_cast<size_t>(bytes) / sizeof(uint4) + turn - 1) / turn * turn;
    p_ = reinterpret_cast<uint4*>(l.random(size / sizeof(float)));
    sums_ = l.zeroed<uint32_t>(threads() + 1);
    cycles_ = l.zeroed<long long>(1);
  }
  ~Reads() {
    LAB_CHECK(cudaFree(p_));
    LAB_CHECK(cudaFree(sums_));
    LAB_CHECK(cudaFree(cycles_));
  }

  double bytes() const { return static_cast<double>(count_ * sizeof(uint4)); }
  void run() {
    l_.launch(read_all, blocks_, kWide, 0, cudaLaunchAttributeIgnore, 0, p_, vectors_, count_, sums_, cycles_);
  }
  double cycles() const { return static_cast<double>(copied(cycles_, 1)[0]); }

  // Compares the sums. It is called after the last run.
  void check() const {
    expect<<<l_.sms() * 4, lab::kThreads, 0, l_.stream()>>>(p_, vectors_, count_, sums_ + threads());
    LAB_CHECK(cudaGetLastError());
    LAB_CHECK(cudaStreamSynchronize(l_.stream()));
    const std::vector<uint32_t> sums = copied(sums_, threads() + 1);
    uint32_t total = 0;
    for (size_t i = 0; i < threads(); ++i) total += sums[i];
    if (total == sums.back()) return;
    std::fprintf(stderr, "%d blocks read something else than what was counted\n", blocks_);
    std::exit(1);
  }

 private:
  size_t threads() const { return static_cast<size_t>(blocks_) * kWide; }

  Lab& l_;
  int blocks_;
  size_t vectors_, count_;
  uint4* p_;
  uint32_t* sums_;
  long long* cycles_;
};

inline Samples rates(Lab& l, size_t buffer, double bytes, int blocks) {
  Reads r(l, buffer, bytes, blocks);
  Samples s = l.rates(r.bytes(), [&] { r.run(); });
  r.check();
  return s;
}

// The size of a buffer that stays in L2: half of it.
inline size_t cached(const Lab& l) { return static_cast<size_t>(l.props().l2CacheSize) / 2; }

constexpr double kOfOne = 64e6, kOfAll = 4e9;  // bytes that a run reads

inline Samples l2_of_one(Lab& l) { return rates(l, cached(l), kOfOne, 1); }
inline Samples l2_of_all(Lab& l) { return rates(l, cached(l), kOfAll, 2 * l.sms()); }

// The same for one SM, timed by its own clock, so that neither the launch nor events are part of it.
inline Samples l2_by_clock(Lab& l) {
  Reads r(l, cached(l), kOfOne, 1);
  Samples s;
  for (int i = 0; i < lab::kRuns; ++i) {
    r.run();
    LAB_CHECK(cudaStreamSynchronize(l.stream()));
    s.push_back(r.bytes() / r.cycles());
  }
  r.check();
  return s;
}

// A buffer that is far larger than L2, as far as there is memory for it.
inline Samples dram(Lab& l) {
  size_t free_bytes = 0, total = 0;
  LAB_CHECK(cudaMemGetInfo(&free_bytes, &total));
  const size_t buffer = std::min(size_t{4} << 30, free_bytes / 2);
  return rates(l, buffer, static_cast<double>(power_of_two_within(buffer)), 2 * l.sms());
}

// Bulk copies into a ring of stages. A stage is copied to again as soon as its previous copy has landed.
constexpr int kStages = 12;
constexpr int kStageBytes = 16 << 10;

__global__ void __launch_bounds__(32) copy_all(const char* p, uint32_t blocks_of_p, uint32_t copies) {
  extern __shared__ __align__(128) char copied_stages[];
  __shared__ uint64_t full[kStages];
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) rt::detail::mbarrier_init(full + i, rt::detail::kFillArrivals);
    rt::detail::mbarrier_init_done();
  }
  __syncwarp();
  for (uint32_t i = 0; i < copies + kStages; ++i) {
    const uint32_t stage = i % kStages, round = i / kStages;
    while (round > 0 && !rt::detail::mbarrier_done(full + stage, round - 1)) {
    }
    if (i >= copies) continue;
    const char* from = p + size_t{(blockIdx.x + i * gridDim.x) & (blocks_of_p - 1)} * kStageBytes;
    rt::detail::fill_stage(copied_stages + stage * kStageBytes, full + stage, from, kStageBytes);
  }
}

inline Samples bulk(Lab& l, double bytes, int blocks) {
  const size_t size = power_of_two_within(cached(l));
  const auto copies = static_cast<uint32_t>(bytes / blocks / kStageBytes);
  float* p = l.random(size / sizeof(float));
  Samples s = l.rates(static_cast<double>(copies) * blocks * kStageBytes, [&] {
    l.launch(copy_all, blocks, 32, size_t{kStages} * kStageBytes, cudaLaunchAttributeIgnore, 0,
             reinterpret_cast<const char*>(p), static_cast<uint32_t>(size / kStageBytes), copies);
  });
  LAB_CHECK(cudaFree(p));
  return s;
}

inline Samples bulk_of_one(Lab& l) { return bulk(l, kOfOne, 1); }
inline Samples bulk_of_all(Lab& l) { return bulk(l, kOfAll, l.sms()); }

}  // namespace reads
