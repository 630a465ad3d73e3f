// What an rKernel is told about the rTask that it computes, and how it gives results away.
#pragma once

#include "rt/device/backend.cuh"
#include "rt/device/gates.cuh"
#include "rt/device/pending.cuh"
#include "rt/device/stream.cuh"

namespace rt {

// Where a result goes that is given away by number. `kind` is a MoveKind, or one of these: nobody wants the result, or
// several moves take it, which Task::put has to look up.
enum : uint32_t { kNoOutlet = 0x100, kSeveralOutlets = 0x101 };
struct Outlet {
  void* to;
  uint32_t kind;
  uint32_t ranks;  // of a kSlotMove: the blocks of the cluster that it goes to, a bit each
  uint64_t* gate;  // of a kSlotMove: the mbarrier that counts its bytes there
};

// What an rTask knows about where it runs. The executor makes one for each thread and passes it to the rKernel.
struct Task {
  int tid;              // the thread's number within the rTask: 0 … kThreads - 1
  char* smem;           // kShared bytes of shared memory, 128-byte aligned, contents undefined
  char* const* bases;   // the address of every address space
  int threads;          // kThreads
  const float* in;      // the import area: operands that the executor brought (Candidate.Imports)
  const Move* exports;  // where results go that are given away by number (Candidate.Exports)
  int export_count;
  uint32_t tag;        // the tag of words that this launch exports; 0 in waves
  uint64_t* tagged;    // the program's tagged words, of which rKernels poll some themselves
  uint32_t* slots;     // the vEU's own slots, in shared memory; null in programs without clusters
  uint64_t* gates;     // the mbarriers of the slots' gates
  Stream stream = {};  // its weights, if the rKernel streams them
  // What an rKernel that begins early waits for when it asks for its inputs, beside launches.
  Pending pending = {};
  uint32_t turn = 0;  // of the loop that the rTask is part of
  // Whether the block has nothing else to do in its launch. Then a thread may end before others, and a barrier may be
  // one of all threads that have not ended. Nor does anybody write in this launch what the rTask reads: in one without
  // rPrograms, rTasks are independent.
  bool alone = false;

  // The address that a Ref stands for.
  template <class T>
  RT_DEVICE T* ptr(Ref r) const {
    return reinterpret_cast<T*>(detail::global(address(r)));
  }
  // The same of what need not be in global memory: tensor maps may be in the kernel's parameter.
  RT_DEVICE char* address(Ref r) const { return bases[r.bits >> kSpaceShift] + (r.bits & kRefOffsetMask); }

  // An rKernel that streams weights, or has kEarly, may start before the launches before it have ended, and before the
  // steps have ended that it waits for. Each thread calls one of these once, before it touches anything that the
  // program produces. The first gives p back. Other rKernels start later, and need not call them.
  template <class T>
  RT_DEVICE const T* inputs(const T* p) const {
    detail::note_inputs();
    if (pending.count > 0) pending.wait(tid);
    return reinterpret_cast<const T*>(detail::inputs(reinterpret_cast<const char*>(p)));
  }

  // Such an rKernel calls this before it touches inputs of the model, if it does so before it asks for its own. Then
  // whatever the caller's stream did before the inference has ended.
  RT_DEVICE void wait_for_model() const { detail::wait_for_launches_before(); }

  RT_DEVICE void wait_for_inputs() const {
    detail::note_inputs();
    if (pending.count > 0) pending.wait(tid);
    detail::wait_for_launches_before();
  }

  // Where result number `at` goes. It can be found out before the result is there, while operands are on their way.
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
  // Gives result number `at` away, to where outlet() has found that it goes.
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

  // Gives result number `at` away to all who want it: as tagged words, to plain memory, into slots.
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

  // The mbarrier that word i of an export to slots comes through.
  RT_DEVICE uint64_t* gate(const Move& m, uint32_t i) const {
    return gates + gate_part(m.gate, (m.gate >> kGateShift) + i);
  }

  // Into slots of vEUs in the cluster. In waves there are no clusters: then it goes to a tagged word, of a kSpareMove.
  RT_DEVICE void put_near(const Move& m, uint32_t i, uint32_t bits) const {
    if (slots == nullptr) return;
    if (tag != 0 && m.kind == kSlotMove) {
      detail::store_near(slots + m.slot + i, gate(m, i), m.ranks, detail::Ranks(), bits);
    } else if (tag == 0 && m.kind == kSpareMove) {
      detail::store_word(tagged + m.at + static_cast<size_t>(i) * m.step, bits);
    }
  }

  // Barrier of the kThreads threads of this rTask. The vEU's other threads do not take part.
  RT_DEVICE void sync() const { detail::rtask_barrier(threads); }
};

}  // namespace rt
