// CUDA's side of what rt/device/device.cuh says of clusters: words that blocks store into each other's shared memory, and
// gates, mbarriers that count their bytes. Behind backend/cuda/device.cuh.
#pragma once

namespace rt::detail {

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
RT_DEVICE void gate_init(uint64_t* gate) { mbarrier_init(gate, 1); }

// The one arrival that a phase needs; it ends when so many bytes have come, before or after.
RT_DEVICE void gate_expect(uint64_t* gate, uint32_t bytes, bool now = true) {
  asm volatile("{.reg .b64 state; .reg .pred p; setp.ne.u32 p, %2, 0; @p mbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1;}" ::"r"(
                   shared_address(gate)),
               "r"(bytes), "r"(static_cast<unsigned>(now))
               : "memory");
}
// What it lets through is in the block's own shared memory. An acquire at the scope of the cluster would throw away
// the L1 cache too, and wait for all that is on its way there.
template <class Report>
RT_DEVICE void gate_wait(uint64_t* gate, uint32_t phase, uint64_t patience_ns, Report* notes, const Report& r) {
  mbarrier_wait(gate, phase, patience_ns, notes, r);
}

// Two words of one's own, behind the gate.
RT_DEVICE void take_pair(const uint32_t* p, uint32_t (&v)[2]) {
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(v[0]), "=r"(v[1]) : "r"(shared_address(p)) : "memory");
}

// The ranks of a cluster's blocks, from one's own on, for who uses them again and again.
struct Ranks {
  unsigned rank[kMostRanks];
  RT_DEVICE Ranks() {
    unsigned first;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(first));
    RT_UNROLL
    for (unsigned k = 0; k < kMostRanks; ++k) asm volatile("and.b32 %0, %1, %2;" : "=r"(rank[k]) : "r"(first + k), "n"(kMostRanks - 1));
  }
};

// Calls store with the address of p in every block of the cluster whose rank has a bit. Blocks begin with different
// ones, or all would store to one at a time.
template <class Store>
RT_DEVICE void each_rank(const uint32_t* p, uint32_t ranks, const Ranks& around, Store store) {
  const unsigned at = shared_address(p);
  const auto there = [&](uint32_t k) {
    unsigned to;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(at), "r"(around.rank[k]));
    return to;
  };
  if (ranks == (1u << kMostRanks) - 1) {
    RT_UNROLL
    for (uint32_t k = 0; k < kMostRanks; ++k) store(there(k));
  } else {
    RT_UNROLL
    for (uint32_t k = 0; k < kMostRanks; ++k) {
      if ((ranks >> around.rank[k] & 1) != 0) store(there(k));
    }
  }
}

// A word, or two at a multiple of 8 bytes, to the same place in blocks of the cluster, through the same gate.
RT_DEVICE void store_near(const uint32_t* p, const uint64_t* gate, uint32_t ranks, const Ranks& around, uint32_t v) {
  const unsigned apart = shared_address(gate) - shared_address(p);
  each_rank(p, ranks, around, [&](unsigned to) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(to), "r"(v), "r"(to + apart)
                 : "memory");
  });
}
RT_DEVICE void store_near(const uint32_t* p, const uint64_t* gate, uint32_t ranks, const Ranks& around, uint32_t v, uint32_t w) {
  const unsigned apart = shared_address(gate) - shared_address(p);
  each_rank(p, ranks, around, [&](unsigned to) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [%0], {%1, %2}, [%3];" ::"r"(to), "r"(v), "r"(w),
                 "r"(to + apart)
                 : "memory");
  });
}

// When all copies that the thread has begun have landed, it arrives at the mbarrier.
RT_DEVICE void copies_arrive(uint64_t* bar) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(bar)) : "memory");
}

// Of all threads of all blocks of a cluster.
RT_DEVICE void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
}
#else
// No such device gets clusters.
RT_DEVICE void gate_init(uint64_t*) { __trap(); }
RT_DEVICE void gate_expect(uint64_t*, uint32_t, bool = true) { __trap(); }
template <class Report>
RT_DEVICE void gate_wait(uint64_t*, uint32_t, uint64_t, Report*, const Report&) {
  __trap();
}
RT_DEVICE void take_pair(const uint32_t*, uint32_t (&)[2]) { __trap(); }
struct Ranks {};
RT_DEVICE void store_near(const uint32_t*, const uint64_t*, uint32_t, const Ranks&, uint32_t) { __trap(); }
RT_DEVICE void store_near(const uint32_t*, const uint64_t*, uint32_t, const Ranks&, uint32_t, uint32_t) { __trap(); }
RT_DEVICE void copies_arrive(uint64_t*) { __trap(); }
RT_DEVICE void cluster_barrier() { __trap(); }
#endif

// The emulator checks that no word is stored to before the one that was there has been taken.
RT_DEVICE void note_free(uint32_t*, int) {}

}  // namespace rt::detail
