// The device interface that rKernels and the executor are written against. nvcc compiles it to CUDA;
// any other C++20 compiler gets the emulator's twin of the same names (cudaemu/), in which one OS
// thread is a thread block and one fibre a CUDA thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "rt/schema/memory.cuh"
#include "rt/schema/tables.cuh"

#if defined(__CUDACC__)
#define RT_DEVICE __device__ __forceinline__
#define RT_HOST_DEVICE __host__ __device__ __forceinline__
#define RT_NOINLINE_DEVICE __device__ __noinline__
#define RT_UNROLL _Pragma("unroll")
#define RT_NO_UNROLL _Pragma("unroll 1")
#else
#define RT_DEVICE inline
#define RT_HOST_DEVICE inline
#define RT_NOINLINE_DEVICE __attribute__((noinline)) inline
#define RT_UNROLL
#define RT_NO_UNROLL
#endif

namespace rt {

// A reference to bytes of a buffer: the top 8 bits name the space, the rest is a byte offset in it.
struct Ref {
  uint64_t bits;
};

constexpr uint64_t kRefOffsetMask = (uint64_t{1} << kSpaceShift) - 1;

#define RT_REF(space, offset) ((static_cast<uint64_t>(space) << rt::kSpaceShift) | static_cast<uint64_t>(offset))
#define RT_ARENA(offset) RT_REF(rt::kArenaSpace, offset)
#define RT_WEIGHTS(offset) RT_REF(rt::kWeightsSpace, offset)

// An operand seen as [i0][i1][i2], with element strides; a stride of 0 broadcasts.
struct Operand3 {
  Ref ref;
  int64_t s0, s1, s2;
};

// Of Move::gate: the number of the gate, and which of the mbarriers of all gates a word of a slot comes through.
RT_HOST_DEVICE constexpr uint32_t gate_number(uint32_t gate) { return gate & ((1u << kGateShift) - 1); }
RT_HOST_DEVICE constexpr uint32_t gate_part(uint32_t gate, uint32_t word) {
  return gate_number(gate) * kGateParts + word / kGateWords % kGateParts;
}
// Of count words, so many come through a part.
RT_HOST_DEVICE constexpr uint32_t gate_words(uint32_t count, uint32_t part) {
  const uint32_t round = kGateWords * kGateParts, rest = count % round, before = part * kGateWords;
  const uint32_t last = rest <= before ? 0 : rest - before < kGateWords ? rest - before : kGateWords;
  return count / round * kGateWords + last;
}

struct alignas(16) float4v {
  float x, y, z, w;
};

}  // namespace rt

#include "rt/device/backend.cuh"
#include "rt/device/stream.cuh"

namespace rt {

// The address that a result is given away to; kind is a MoveKind or one of these.
enum : uint32_t { kNoOutlet = 0x100, kSeveralOutlets = 0x101 };
struct Outlet {
  void* to;
  uint32_t kind;
  uint32_t ranks;  // of a kSlotMove
  uint64_t* gate;  // of a kSlotMove
};

// What an rTask knows about where it runs.
struct Task {
  int tid;              // thread within the rTask: 0 … kThreads-1
  char* smem;           // kShared bytes, 128-byte aligned, contents undefined
  char* const* bases;   // address of every space
  int threads;          // kThreads
  const float* in;      // import area: operands that the executor brought (Candidate.Imports)
  const Move* exports;  // where results go that are given away by number (Candidate.Exports)
  int export_count;
  uint32_t tag;  // of this launch; 0 in waves
  uint64_t* tagged;
  uint32_t* slots;  // the vEU's own, in shared memory; null in programs without clusters
  uint64_t* gates;  // of the slots
  Stream stream = {};  // its weights, if its rKernel streams them

  template <class T>
  RT_DEVICE T* ptr(Ref r) const {
    return reinterpret_cast<T*>(detail::global(bases[r.bits >> kSpaceShift] + (r.bits & kRefOffsetMask)));
  }

  // rKernels that stream weights may start before the launches before them have ended. They call this
  // once, before they touch anything that the program produces, and get p back; others need not.
  template <class T>
  RT_DEVICE const T* inputs(const T* p) const {
    detail::note_inputs();
    return reinterpret_cast<const T*>(detail::inputs(reinterpret_cast<const char*>(p)));
  }

  // Where result number at goes, found before the result is there.
  RT_DEVICE Outlet outlet(int at) const {
    Outlet o{nullptr, kNoOutlet, 0, nullptr};
    RT_NO_UNROLL
    for (int k = 0; k < export_count; ++k) {
      const Move& m = exports[k];
      const uint32_t i = static_cast<uint32_t>(at) - m.staged;
      if (i >= m.count || m.kind == (tag != 0 ? kSpareMove : kSlotMove)) continue;
      if (o.kind != kNoOutlet) {
        o.kind = kSeveralOutlets;
      } else if (m.kind == kSlotMove) {
        o = Outlet{slots + m.slot + i, kSlotMove, m.ranks, gate(m, i)};
      } else if (m.kind == kPlainMove) {
        o = Outlet{ptr<uint32_t>(Ref{m.at}) + static_cast<size_t>(i) * m.step, kPlainMove, 0, nullptr};
      } else {
        o = Outlet{tagged + m.at + static_cast<size_t>(i) * m.step, kTaggedMove, 0, nullptr};
      }
    }
    return o;
  }
  RT_DEVICE void give(const Outlet& o, int at, float x) const {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    if (o.kind == kTaggedMove) {
      detail::store_word(static_cast<uint64_t*>(o.to), static_cast<uint64_t>(tag) << 32 | bits);
    } else if (o.kind == kSlotMove) {
      detail::store_near(static_cast<uint32_t*>(o.to), o.gate, o.ranks, detail::Ranks(), bits);
    } else if (o.kind == kPlainMove) {
      *static_cast<uint32_t*>(o.to) = bits;
    } else {
      put(at, x);
    }
  }

  // Gives away result number at: to whoever polls it, to plain memory, or both.
  RT_DEVICE void put(int at, float x) const {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    RT_NO_UNROLL
    for (int k = 0; k < export_count; ++k) {
      const Move& m = exports[k];
      const uint32_t i = static_cast<uint32_t>(at) - m.staged;
      if (i >= m.count) continue;
      if (m.kind == kTaggedMove) {
        detail::store_word(tagged + m.at + static_cast<size_t>(i) * m.step, static_cast<uint64_t>(tag) << 32 | bits);
      } else if (m.kind == kPlainMove) {
        ptr<uint32_t>(Ref{m.at})[static_cast<size_t>(i) * m.step] = bits;
      } else {
        put_near(m, i, bits);
      }
    }
  }

  // Through which word i of an export to slots comes.
  RT_DEVICE uint64_t* gate(const Move& m, uint32_t i) const { return gates + gate_part(m.gate, (m.gate >> kGateShift) + i); }

  // For vEUs of the cluster; in waves for global memory, once.
  RT_DEVICE void put_near(const Move& m, uint32_t i, uint32_t bits) const {
    if (slots == nullptr) return;
    if (tag != 0 && m.kind == kSlotMove) {
      detail::store_near(slots + m.slot + i, gate(m, i), m.ranks, detail::Ranks(), bits);
    } else if (tag == 0 && m.kind == kSpareMove) {
      detail::store_word(tagged + m.at + static_cast<size_t>(i) * m.step, bits);
    }
  }

  // Barrier over the kThreads threads of this rTask; the vEU's other threads do not take part.
  RT_DEVICE void sync() const { detail::rtask_barrier(threads); }
};

// a·b + c: an element's place from a coordinate and a stride, both of which fit 32 bits.
RT_DEVICE int64_t mad_wide(int a, int b, int64_t c) { return detail::mad_wide(a, b, c); }

// x, computed here: neither only where some of the threads use it, nor again where it is used. Types that no
// rKernel needs this for are left as they are.
template <class T>
RT_DEVICE T settled(T x) {
  return x;
}
RT_DEVICE int settled(int x) { return detail::settled(x); }
RT_DEVICE float settled(float x) { return detail::settled(x); }

// An address in global memory as a number of bytes, and back.
RT_DEVICE int64_t place_of(const void* p) { return static_cast<int64_t>(detail::global_place(p)); }
template <class T>
RT_DEVICE T* at_place(int64_t place) {
  return static_cast<T*>(detail::global_at(static_cast<uint64_t>(place)));
}

// ld_const reads weights, and only weights: data that the program produces may be stale on this path.
template <class T>
RT_DEVICE T ld_const(const T* p) {
  static_assert(sizeof(T) <= 16, "ld_const loads at most 16 bytes");
  return detail::ld_const(p);
}

// Warp collectives: all 32 lanes of a warp call them together.
template <class T>
RT_DEVICE T shfl_xor(const Task&, T v, int mask) {
  return detail::shfl_xor(v, mask);
}
template <class T>
RT_DEVICE T shfl_down(const Task&, T v, int delta) {
  return detail::shfl_down(v, delta);
}
template <class T>
RT_DEVICE T shfl(const Task&, T v, int lane) {
  return detail::shfl(v, lane);
}
RT_DEVICE void sync_warp(const Task&) { detail::sync_warp(); }

// Asynchronous copies into shared memory. A thread's copies are there for itself after
// cp_async_wait<n> (all but its n latest commits), for others after the next barrier.
RT_DEVICE void cp_async16(void* smem, const void* gmem) { detail::cp_async<16>(smem, gmem); }
RT_DEVICE void cp_async8(void* smem, const void* gmem) { detail::cp_async<8>(smem, gmem); }
RT_DEVICE void cp_async4(void* smem, const void* gmem) { detail::cp_async<4>(smem, gmem); }
// The first copy if ok; otherwise the shared memory becomes zero, and gmem is not read. Without a branch. 4 or 16 bytes.
template <int Bytes>
RT_DEVICE void cp_async_or_zero(void* smem, const void* gmem, bool ok) {
  detail::cp_async_or_zero<Bytes>(smem, gmem, ok);
}
RT_DEVICE void cp_async_commit() { detail::cp_async_commit(); }
template <int N>
RT_DEVICE void cp_async_wait() {
  detail::cp_async_wait<N>();
}

}  // namespace rt
