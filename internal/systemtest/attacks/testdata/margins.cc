// Runs the library of margins.rir with tensors that stand between poisoned margins: at all extents of its range,
// where a run finds nothing or all, with predicates of NaN, and with loops that end early or at their bound.
// Extents that are out of range are refused. No run writes beside a tensor, and all results are right. Built with nvcc
// (-x cu) it does the same on a GPU, where all device memory of the library has such margins, too: its arena, weights,
// tables, flags, tagged words, and the tensors that it keeps for callers whose own are in host memory.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace {

constexpr size_t kMargin = 256;  // what device memory is aligned to
constexpr unsigned char kPoison = 0xA5;
int failures;

}  // namespace

#if defined(__CUDACC__)
#include <cuda_runtime.h>

namespace {

std::map<void*, size_t> allocated;  // device memory between margins, and its size
size_t most_allocated;

cudaError_t guarded_malloc(void** p, size_t n) {
  char* whole = nullptr;
  cudaError_t e = cudaMalloc(&whole, n + 2 * kMargin);
  if (e == cudaSuccess) e = cudaMemset(whole, kPoison, n + 2 * kMargin);
  *p = whole + kMargin;
  if (e == cudaSuccess) allocated[*p] = n;
  most_allocated = allocated.size() > most_allocated ? allocated.size() : most_allocated;
  return e;
}

cudaError_t guarded_free(void* p) {
  if (allocated.erase(p) == 0) return cudaFree(p);
  return cudaFree(static_cast<char*>(p) - kMargin);
}

// Whether all margins of device memory are as they were.
bool device_clean() {
  for (const auto& a : allocated) {
    unsigned char seen[2 * kMargin];
    const char* const at = static_cast<const char*>(a.first);
    if (cudaMemcpy(seen, at - kMargin, kMargin, cudaMemcpyDeviceToHost) != cudaSuccess ||
        cudaMemcpy(seen + kMargin, at + a.second, kMargin, cudaMemcpyDeviceToHost) != cudaSuccess) {
      return false;
    }
    for (const unsigned char c : seen) {
      if (c != kPoison) return false;
    }
  }
  return true;
}

}  // namespace

#define cudaMalloc guarded_malloc
#define cudaFree guarded_free
#include "margins.cu"
#undef cudaMalloc
#undef cudaFree
#else
#include "margins.cu"
#endif

namespace {

void fail(const std::string& what) {
  std::printf("%s\n", what.c_str());
  ++failures;
}

// A tensor between two margins, and on a GPU another one in device memory.
struct Guarded {
  std::vector<unsigned char> bytes;
  size_t size;
  void* device = nullptr;

  explicit Guarded(size_t n) : bytes(n + 2 * kMargin, kPoison), size(n) {
#if defined(__CUDACC__)
    if (guarded_malloc(&device, n) != cudaSuccess) fail("no device memory");
#endif
  }
  ~Guarded() {
#if defined(__CUDACC__)
    guarded_free(device);
#endif
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  unsigned char* at() { return bytes.data() + kMargin; }
  // What the library is given: for runs in device memory, that of the GPU.
  void* given([[maybe_unused]] margins_memory memory) {
#if defined(__CUDACC__)
    if (memory == margins_DEVICE) {
      if (cudaMemcpy(device, at(), size, cudaMemcpyHostToDevice) != cudaSuccess) fail("no copy");
      return device;
    }
#endif
    return at();
  }
  // Brings back what a run in device memory has written.
  void take([[maybe_unused]] margins_memory memory) {
#if defined(__CUDACC__)
    if (memory == margins_DEVICE && cudaMemcpy(at(), device, size, cudaMemcpyDeviceToHost) != cudaSuccess) {
      fail("no copy");
    }
#endif
  }
  bool clean() const {
    for (size_t i = 0; i < kMargin; ++i) {
      if (bytes[i] != kPoison || bytes[kMargin + size + i] != kPoison) return false;
    }
    return true;
  }
};

// One inference with seq rows, of which every share-th element is positive (0: none), checked.
void run(margins_ctx* ctx, int64_t seq, int share, float c, margins_memory memory) {
  const std::string what = "seq " + std::to_string(seq) + " share " + std::to_string(share) + " c " + std::to_string(c);
  const int64_t dims[] = {seq, 4};
  const int64_t* const both[] = {dims, dims};
  if (margins_set_dims(ctx, both) != margins_OK) return fail(what + ": " + margins_last_error(ctx));
  const margins_io* io = margins_ctx_io(ctx);
  Guarded x(io->inputs[0].bytes), limit(sizeof c);
  Guarded y(io->outputs[0].bytes), places(io->outputs[1].bytes), turns(io->outputs[2].bytes);
  std::vector<float> values(static_cast<size_t>(4 * seq));
  std::vector<int64_t> positive;
  for (size_t i = 0; i < values.size(); ++i) {
    const bool above = share > 0 && i % static_cast<size_t>(share) == 0;
    values[i] = (above ? 1.0f : -1.0f) * static_cast<float>(i + 1);
    if (above) positive.push_back(static_cast<int64_t>(i));
  }
  std::memcpy(x.at(), values.data(), x.size);
  std::memcpy(limit.at(), &c, sizeof c);
  const void* in[] = {x.given(memory), limit.given(memory)};
  void* out[] = {y.given(memory), places.given(memory), turns.given(memory)};
  if (margins_run(ctx, in, out, memory) != margins_OK) return fail(what + ": " + margins_last_error(ctx));
  for (Guarded* g : {&x, &limit, &y, &places, &turns}) {
    g->take(memory);
    if (!g->clean()) fail(what + ": a margin was written");
  }
#if defined(__CUDACC__)
  if (!device_clean()) fail(what + ": a margin of device memory was written");
#endif
  for (size_t i = 0; i < values.size(); ++i) {
    float got;
    std::memcpy(&got, y.at() + 4 * i, 4);
    if (got != (c > 0 ? 2 * values[i] : -values[i])) return fail(what + ": the wrong branch");
  }
  const int64_t found = margins_ctx_io(ctx)->outputs[1].dims[1];
  if (found != static_cast<int64_t>(positive.size())) return fail(what + ": it found " + std::to_string(found));
  for (size_t i = 0; i < positive.size(); ++i) {
    int64_t row, column;
    std::memcpy(&row, places.at() + 8 * i, 8);
    std::memcpy(&column, places.at() + 8 * (positive.size() + i), 8);
    if (4 * row + column != positive[i]) return fail(what + ": a wrong place");
  }
  float want = 0, got;
  do want += 1;
  while (want < c && want < 5);
  std::memcpy(&got, turns.at(), 4);
  if (got != want) fail(what + ": the loop made " + std::to_string(got) + " turns");
}

// Extents out of range have a status and a message, and change nothing.
void refused(margins_ctx* ctx, int64_t seq) {
  const int64_t dims[] = {seq, 4};
  const int64_t* const both[] = {dims, dims};
  if (margins_set_dims(ctx, both) != margins_BAD_ARGUMENT || margins_last_error(ctx)[0] == 0) {
    fail("seq " + std::to_string(seq) + " is not refused");
  }
}

// A context that runs the rProgram as one launch, or in waves.
void all(margins_options options) {
  margins_ctx* ctx = nullptr;
  if (margins_create(&options, &ctx) != margins_OK) return fail(margins_last_error(nullptr));
  for (const margins_memory memory : {margins_HOST, margins_DEVICE}) {
    for (const int64_t seq : {8, 1, 5}) {
      for (const float c : {2.5f, -1.0f, 100.0f, std::nanf("")}) {
        for (const int share : {0, 1, 3}) run(ctx, seq, share, c, memory);
      }
      for (const int64_t wrong : {int64_t{0}, int64_t{9}, int64_t{-1}, INT64_MAX}) refused(ctx, wrong);
    }
  }
  margins_destroy(ctx);
}

}  // namespace

int main(int, char** argv) {
  margins_options options{};
  options.size = sizeof options;
  options.weights_path = argv[1];
  for (const margins_mode mode : {margins_MODE_RPROGRAM, margins_MODE_WAVES}) {
    options.mode = mode;
    all(options);
  }
#if defined(__CUDACC__)
  std::printf("%zu pieces of device memory had margins\n", most_allocated);
#endif
  std::printf(failures == 0 ? "clean\n" : "");
  return failures != 0;
}
