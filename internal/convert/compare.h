// Compares converted kernels with the originals: both run on the same random tensors, and must leave the same bytes. On
// a GPU both are also timed.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "rt/host/harness.cuh"
#include "rt/device/launch.cuh"

#if !defined(__CUDACC__)
#include "shim.h"
#endif

namespace compare {

// An extent of a grid, as the compiler of models gives it (DivOf in lower/arg).
inline rt::Div divisor(uint32_t d) {
  uint32_t shift = 0;
  while (1ull << shift < d) ++shift;
  return {d, static_cast<uint32_t>(((1ull << shift) - d << 32) / d + 1), shift};
}

inline bool wanted(const char* name, int count, char** names) {
  bool any = count < 2;
  for (int i = 1; i < count; ++i) any = any || strcmp(names[i], name) == 0;
  return any;
}

enum Kind { kReal, kHalf, kBfloat16, kInteger, kBool };
enum { kNothing = -1, kZero = -2 };

struct Tensor {
  const char* name;
  Kind kind;
  int size;  // bytes of an element
  size_t elements;
  double from, to;  // of random elements, of inputs
  bool input, result;
  int initial;  // kNothing, kZero, or the number of a tensor
};

// Where tensors lie: each behind a gap, which nobody may write to.
constexpr size_t kGap = 256;

struct Memory {
  std::vector<size_t> at;
  size_t bytes = kGap;
  explicit Memory(const std::vector<Tensor>& tensors) {
    for (const Tensor& t : tensors) {
      at.push_back(bytes);
      bytes += (t.elements * static_cast<size_t>(t.size) + 2 * kGap - 1) / kGap * kGap;
    }
  }
};

inline uint64_t draw(uint64_t* state) {
  *state ^= *state >> 12, *state ^= *state << 25, *state ^= *state >> 27;
  return *state * 0x2545F4914F6CDD1Dull;
}

// Writes x as an element: real numbers in 2, 4 or 8 bytes, integers in any size.
inline void put(char* to, const Tensor& t, double x) {
  const float f = static_cast<float>(x);
  uint32_t bits;
  memcpy(&bits, &f, 4);
  if (t.kind == kReal && t.size == 8) {
    memcpy(to, &x, 8);
  } else if (t.kind == kReal) {
    memcpy(to, &f, 4);
  } else if (t.kind == kBfloat16) {
    memcpy(to, reinterpret_cast<char*>(&bits) + 2, 2);
  } else if (t.kind == kHalf) {  // truncated; numbers here are normal or 0
    const uint32_t magnitude = bits & 0x7fffffffu;
    uint16_t h = static_cast<uint16_t>(bits >> 16 & 0x8000u);
    if (magnitude >= 0x38800000u) h = static_cast<uint16_t>(h | (magnitude - 0x38000000u) >> 13);
    memcpy(to, &h, 2);
  } else {
    const int64_t n = t.kind == kBool ? (x >= 0.5 ? 1 : 0) : static_cast<int64_t>(std::floor(x));
    memcpy(to, &n, static_cast<size_t>(t.size));
  }
}

inline double get(const char* from, const Tensor& t) {
  if (t.size == 8) {
    double x;
    memcpy(&x, from, 8);
    return x;
  }
  float x;
  memcpy(&x, from, 4);
  return x;
}

inline std::vector<char> fill(const std::vector<Tensor>& tensors, const Memory& m) {
  std::vector<char> out(m.bytes, static_cast<char>(0xCD));
  uint64_t state = 88172645463325252ull;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    char* p = out.data() + m.at[i];
    if (t.input) {
      for (size_t e = 0; e < t.elements; ++e) {
        const double u = static_cast<double>(draw(&state) >> 11) / 9007199254740992.0;
        put(p + e * static_cast<size_t>(t.size), t, t.from + u * (t.to - t.from));
      }
    } else if (t.initial == kZero) {
      memset(p, 0, t.elements * static_cast<size_t>(t.size));
    }
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    if (t.initial >= 0)
      memcpy(out.data() + m.at[i], out.data() + m.at[t.initial], t.elements * static_cast<size_t>(t.size));
  }
  return out;
}

// Compares what both left. Scratch memory may differ; with a tolerance real numbers may, too.
inline bool equal(const char* name, const std::vector<Tensor>& tensors, const Memory& m, std::vector<char> want,
                  std::vector<char> got, double tolerance) {
  bool ok = true;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    const size_t bytes = t.elements * static_cast<size_t>(t.size);
    char *w = want.data() + m.at[i], *g = got.data() + m.at[i];
    if (t.result && tolerance > 0 && t.kind == kReal) {
      double most = 0, off = 0;
      for (size_t e = 0; e < t.elements; ++e) {
        const double a = get(w + e * static_cast<size_t>(t.size), t), b = get(g + e * static_cast<size_t>(t.size), t);
        most = std::fmax(most, std::fabs(a)), off = std::fmax(off, std::fabs(a - b));
        if (a - b != a - b && memcmp(w + e * t.size, g + e * t.size, static_cast<size_t>(t.size)) != 0) off = INFINITY;
      }
      if (off > tolerance * most) printf("%s: %s differs by %g of %g\n", name, t.name, off, most), ok = false;
    } else if (t.result && memcmp(w, g, bytes) != 0) {
      size_t e = 0;
      while (memcmp(w + e * t.size, g + e * t.size, static_cast<size_t>(t.size)) == 0) ++e;
      printf("%s: %s differs, first in element %zu of %zu\n", name, t.name, e, t.elements), ok = false;
    }
    memset(w, 0, bytes), memset(g, 0, bytes);
  }
  if (ok && want != got) printf("%s: writes beyond its tensors\n", name), ok = false;
  return ok;
}

#if defined(__CUDACC__)

inline bool good(cudaError_t e, const char* name) {
  if (e != cudaSuccess) printf("%s: %s\n", name, cudaGetErrorString(e));
  return e == cudaSuccess;
}

// The time of a launch in microseconds: the least mean of several series.
template <class F>
float microseconds(F launch) {
  constexpr int kLaunches = 20;
  cudaEvent_t a, b;
  cudaEventCreate(&a), cudaEventCreate(&b);
  cudaEventRecord(a);
  for (int i = 0; i < kLaunches; ++i) launch();
  cudaEventRecord(b);
  cudaEventSynchronize(b);
  float ms = 0;
  cudaEventElapsedTime(&ms, a, b);
  cudaEventDestroy(a), cudaEventDestroy(b);
  return ms * 1000 / kLaunches;
}

// All rTasks, each in a block of its own.
template <class K, bool Alone>
void launch_all(const typename K::Args& args, int rtasks, const rt::harness::Bases& bases) {
  using Layout = rt::harness::Layout<K>;
  rt::harness::run_one<K, Alone><<<rtasks, Layout::kThreads, Layout::kShared>>>(args, bases, nullptr, 0);
}

// The times of an rKernel are those of rTasks that have their blocks for themselves (Task::alone), and those of the
// same blocks with what rTasks run elsewhere.
template <class K, class Original>
bool run(const char* name, const std::vector<Tensor>& tensors, const typename K::Args& args, int rtasks,
         Original original, double tolerance) {
  const Memory m(tensors);
  const std::vector<char> start = fill(tensors, m);
  char *a = nullptr, *b = nullptr;
  if (!good(cudaMalloc(&a, m.bytes), name) || !good(cudaMalloc(&b, m.bytes), name)) return false;
  cudaMemcpy(a, start.data(), m.bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(b, start.data(), m.bytes, cudaMemcpyHostToDevice);
  rt::harness::Bases bases{};
  bases.at[0] = b;
  original(a);
  if (!good(cudaGetLastError(), name) || !good(cudaDeviceSynchronize(), name)) {
    return printf("%s: the original cannot be run\n", name), false;
  }
  std::vector<char> want(m.bytes), got(m.bytes);
  cudaMemcpy(want.data(), a, m.bytes, cudaMemcpyDeviceToHost);
  bool ok = true;
  for (const bool alone : {false, true}) {
    cudaMemcpy(b, start.data(), m.bytes, cudaMemcpyHostToDevice);
    const rt::harness::Result r =
        alone ? rt::harness::run<K, true>(args, rtasks, bases) : rt::harness::run<K, false>(args, rtasks, bases);
    if (!r.ok) return printf("%s: %s\n", name, r.error), false;
    cudaMemcpy(got.data(), b, m.bytes, cudaMemcpyDeviceToHost);
    ok = equal(name, tensors, m, want, got, tolerance) && ok;
  }
  float first = INFINITY, second = INFINITY, beside = INFINITY;
  for (int round = 0; round < 15; ++round) {
    first = std::fmin(first, microseconds([&] { original(a); }));
    second = std::fmin(second, microseconds([&] { launch_all<K, true>(args, rtasks, bases); }));
    beside = std::fmin(beside, microseconds([&] { launch_all<K, false>(args, rtasks, bases); }));
  }
  printf(
      "{\"kernel\": \"%s\", \"equal\": %s, \"original_us\": %.3f, \"converted_us\": %.3f, \"ratio\": %.3f, "
      "\"with_others_us\": %.3f, \"with_others_ratio\": %.3f}\n",
      name, ok ? "true" : "false", first, second, second / first, beside, beside / first);
  cudaFree(a), cudaFree(b);
  return ok;
}

#else

template <class K, class Original>
bool run(const char* name, const std::vector<Tensor>& tensors, const typename K::Args& args, int rtasks,
         Original original, double tolerance) {
  const Memory m(tensors);
  const std::vector<char> start = fill(tensors, m);
  std::vector<char> want = start;
  if (!original(want.data())) return printf("%s: the original's threads wait for ever\n", name), false;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    std::vector<char> got = start;
    rt::harness::Bases bases{};
    bases.at[0] = got.data();
    const rt::harness::Result r = seed % 2 == 1 ? rt::harness::run<K, true>(args, rtasks, bases, seed)
                                                : rt::harness::run<K, false>(args, rtasks, bases, seed);
    if (!r.ok) return printf("%s: %s\n", name, r.error), false;
    if (!equal(name, tensors, m, want, got, tolerance)) return false;
  }
  printf("{\"kernel\": \"%s\", \"equal\": true}\n", name);
  return true;
}

#endif

}  // namespace compare
