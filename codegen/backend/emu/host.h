// The emulator's definitions of the primitives of the host's side (backend/host_primitives.h). Device memory is host
// memory, and a launch is over when the function returns, so streams, events and copies have nothing to do.
#pragma once

#include "backend/emu/launch.h"
#include "rt/exec/executor.cuh"
#include "rt/host/environment.h"
#include "rt/host/model.h"

namespace rt {

template <class Kernel>
void vdevice_run(void* p) {
  const auto& l = *static_cast<const LaunchArgs<Kernel::kSpaces>*>(p);
  run_thread<Kernel>(l);
}

namespace dev {

using Stream = void*;
#define RT_ENGINE "emulator"

inline int current_device() { return 0; }

class DeviceScope {
 public:
  explicit DeviceScope(int device) {
    if (device != 0) throw Error{kNoDevice, "the emulator is device 0; there is no device " + std::to_string(device)};
  }
};

inline void* allocate(size_t bytes) {
  void* p = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!p) throw Error{kOutOfMemory, "no memory for " + std::to_string(bytes) + " bytes"};
  return p;
}
inline void release(void* p) { std::free(p); }
inline void upload(void* to, const void* from, size_t n) {
  if (n > 0) std::memcpy(to, from, n);
}
inline void download(void* to, const void* from, size_t n) { upload(to, from, n); }
inline void upload_async(void* to, const void* from, size_t n, Stream) { upload(to, from, n); }
inline void download_async(void* to, const void* from, size_t n, Stream) { upload(to, from, n); }
inline void copy_rows_async(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t bytes, size_t rows,
                            Stream) {
  for (size_t i = 0; i < rows; ++i) {
    upload(static_cast<char*>(to) + i * to_pitch, static_cast<const char*>(from) + i * from_pitch, bytes);
  }
}
inline void make_tensor_map(const TiledMatrix&, void*, void*) {}
inline void clear(void* p, size_t n) { std::memset(p, 0, n); }
inline Stream make_stream() { return nullptr; }
inline Stream make_side_stream() { return nullptr; }
inline void drop_stream(Stream) {}
inline void wait_for(Stream) {}
inline bool capturing(Stream) { return false; }

class Fence {
 public:
  void set(Stream) {}
  void join(Stream) {}
  void wait() {}
};

struct Graph {
  template <class Enqueue>
  Graph(Stream, Enqueue) {}
  void launch(Stream) {}
};
constexpr bool kHasGraphs = false;

inline Report* make_reports(int count) { return new Report[static_cast<size_t>(count)]{}; }
inline void drop_reports(Report* r) { delete[] r; }
inline std::string describe(int) { return "CPU emulator"; }

// Environment variables play a device that other processes use too, for tests. RAMMER_EMU_ROOM is how many blocks find
// room at launch, whatever this function says. RAMMER_EMU_COOPERATIVE=0 makes the device one without cooperative
// launches. RAMMER_EMU_TENANTS=1 has kernels of other processes run beside the program's.
template <class Program>
Residency residency(int, const Options& o) {
  const int usual = emu::kDefaultMaxResident > Program::kVEUs ? emu::kDefaultMaxResident : Program::kVEUs;
  int veus = o.max_resident;
  if (veus <= 0) veus = static_cast<int>(environment("RAMMER_EMU_MAX_BLOCKS", static_cast<uint64_t>(usual)));
  return Residency{veus, environment("RAMMER_EMU_COOPERATIVE", 1) != 0, environment("RAMMER_EMU_TENANTS", 0) != 0};
}

template <class Program>
int resident_clusters(int device, int size, const Options& o) {
  return residency<Program>(device, o).veus / size;
}

// The emulator knows in every build what a GPU's watchdog finds out in debug builds.
inline Report to_report(const emu::WaitNote& n) {
  return Report{n.set, n.segment, n.veu, n.step, n.on_veu, n.on_order, n.op, n.rtask, n.expected, n.seen};
}

// The order is drawn from the seed among those that streams and waits allow, and is another one every time: where a
// wait is missing, results are wrong with some seeds.
template <class Body>
void each_launch(const LaunchRow* rows, int count, const int* waits, const Options& o, Body body) {
  static std::atomic<uint64_t> calls{0};
  const uint64_t seed = o.seed ? o.seed : environment("RAMMER_EMU_SEED", 1);
  uint64_t state = (seed + (calls++ << 32)) * 0x9E3779B97F4A7C15ull | 1;
  std::vector<int> open, before(static_cast<size_t>(count), 0), last;
  std::vector<std::vector<int>> behind(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    const LaunchRow& row = rows[i];
    auto after = [&](int x) {
      behind[static_cast<size_t>(x)].push_back(i);
      ++before[static_cast<size_t>(i)];
    };
    if (static_cast<size_t>(row.stream) >= last.size()) last.resize(static_cast<size_t>(row.stream) + 1, -1);
    if (last[static_cast<size_t>(row.stream)] >= 0) after(last[static_cast<size_t>(row.stream)]);
    last[static_cast<size_t>(row.stream)] = i;
    for (int w = 0; w < row.wait_count; ++w) after(waits[row.wait_begin + w]);
    if (before[static_cast<size_t>(i)] == 0) open.push_back(i);
  }
  while (!open.empty()) {
    state ^= state >> 12, state ^= state << 25, state ^= state >> 27;  // xorshift64*
    const size_t k = static_cast<size_t>((state * 0x2545F4914F6CDD1Dull >> 32) % open.size());
    const int i = open[k];
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(k));
    body(i);
    for (const int x : behind[static_cast<size_t>(i)]) {
      if (--before[static_cast<size_t>(x)] == 0) open.push_back(x);
    }
  }
}

template <class Program>
void launch(const LaunchRow& row, LaunchKind kind, const LaunchArgs<Program::kSpaces>& args, Stream, const Options& o) {
  LaunchArgs<Program::kSpaces> copy = args;
  emu::Launch l;
  l.grid = row.grid, l.threads = row.threads + (args.stages > 0 ? 32 : 0);
  l.together = kind == LaunchKind::kCooperative || kind == LaunchKind::kGuarded;
  l.cluster = static_cast<int>(args.cluster);
  l.max_resident = residency<Program>(0, o).veus;
  l.room = static_cast<int>(environment("RAMMER_EMU_ROOM", static_cast<uint64_t>(l.grid)));
  if (kind == LaunchKind::kCooperative && l.grid > l.room) {
    throw Error{kNotResident,
                "there is room for " + std::to_string(l.room) + " of " + std::to_string(l.grid) + " blocks"};
  }
  l.seed = o.seed ? o.seed : environment("RAMMER_EMU_SEED", 1);
  emu::Failure f;
  bool done = false;
  Program::Kernels::one(row.kernel, [&]<class Kernel>(Kernel*) {
    l.shared = SharedLayout<Kernel>::bytes(row.shared, static_cast<int>(args.stages));
    done = emu::run_launch(l, vdevice_run<Kernel>, &copy, &f);
  });
  if (done) return;
  if (f.note.set) *copy.reports = to_report(f.note);
  throw Error{kRunFailed, f.text};
}

// A launch that ended early leaves flags, epochs and tags of different launches. Nothing is running any more, so they
// start from 0.
inline void after_failure(void* flags, size_t bytes) { clear(flags, bytes); }

// Every byte becomes 0xFF, which makes all floats NaNs, so that reading too early shows in results.
inline void poison(void* p, size_t n) {
  if (n > 0) std::memset(p, 0xFF, n);
}

}  // namespace dev
}  // namespace rt
