// The emulator's definitions of the primitives of the host's side (backend/host_primitives.h). Device memory is host
// memory, and a launch is over when it has been carried out, so copies have nothing to wait for. What may still happen
// in several orders are launches of several streams (streams.h).
#pragma once

#include "backend/emu/launch.h"
#include "backend/emu/streams.h"
#include "rt/exec/executor.cuh"
#include "rt/host/environment.h"
#include "rt/host/model.h"

namespace rt {

template <class Kernel>
void vdevice_run(void* p) {
  const auto& l = *static_cast<const ArgsOf<Kernel>*>(p);
  run_thread<Kernel>(l);
}

namespace dev {

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
struct Graph {
  template <class Enqueue>
  Graph(Stream, Enqueue) {}
  void launch(Stream) {}
};
constexpr bool kHasGraphs = false;
struct Loop {
  template <class Begin, class Enqueue>
  Loop(Stream, Begin, Enqueue, const Turn&) {}
  void launch(Stream) {}
};
constexpr bool kHasLoops = false;

// All that is put on a stream outside of a Together happens at once, and so do branches. Where RAMMER_EMU_BRANCHES is 0
// the launches of branches run in any case, as on a GPU where they are not recorded.
constexpr bool kHasBranches = true;
inline bool branches_at_once() { return environment("RAMMER_EMU_BRANCHES", 1) != 0; }
template <class Put>
void put_branch(Stream, Stream, const uint8_t* condition, bool unless, Put put) {
  if ((*condition != 0) != unless) put();
}

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

template <class Program>
void launch_now(const LaunchRow& row, LaunchKind kind, const ArgsOf<Program>& args, const Options& o) {
  ArgsOf<Program> copy = args;
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

template <class Program>
void launch(const LaunchRow& row, LaunchKind kind, const ArgsOf<Program>& args, Stream s, const Options& o) {
  if (!emu::queues) return launch_now<Program>(row, kind, args, o);
  emu::queues->work(s, [&row, kind, args, &o] { launch_now<Program>(row, kind, args, o); });
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
