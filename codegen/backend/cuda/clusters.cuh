// Clusters, which came with compute capability 9.0: words that blocks store into each other's shared memory, and gates,
// the mbarriers that count their bytes.
#pragma once

namespace rt::detail {

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
RT_DEVICE void gate_init(uint64_t* gate) { mbarrier_init(gate, 1); }

RT_DEVICE void gate_expect(uint64_t* gate, uint32_t bytes, bool now) {
  asm volatile(
      "{.reg .b64 state; .reg .pred p; setp.ne.u32 p, %2, 0; "
      "@p mbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1;}" ::"r"(shared_address(gate)),
      "r"(bytes), "r"(static_cast<unsigned>(now))
      : "memory");
}
// An acquire at scope cta is enough, since the words are in the block's own shared memory. An acquire at scope cluster
// would also throw away the L1 cache, and wait for all that is on its way there.
template <class Report>
RT_DEVICE void gate_wait(uint64_t* gate, uint32_t phase, uint64_t patience_ns, Report* notes, const Report& r) {
  mbarrier_wait(gate, phase, patience_ns, notes, r);
}

RT_DEVICE void take_pair(uint32_t* p, uint32_t (&v)[2]) {
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(v[0]), "=r"(v[1]) : "r"(shared_address(p)) : "memory");
}

// The ranks of a cluster's blocks, beginning with one's own.
struct Ranks {
  unsigned rank[kMostRanks];
  RT_DEVICE Ranks() {
    unsigned first;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(first));
    RT_UNROLL
    for (unsigned k = 0; k < kMostRanks; ++k) {
      asm volatile("and.b32 %0, %1, %2;" : "=r"(rank[k]) : "r"(first + k), "n"(kMostRanks - 1));
    }
  }
};

// Calls store with the address of p in every block of the cluster whose rank has a bit. Each block begins with its own
// rank; if all began with rank 0, all would store to the same block at a time.
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

RT_DEVICE void store_near(uint32_t* p, uint64_t* gate, uint32_t ranks, const Ranks& around, uint32_t v) {
  const unsigned apart = shared_address(gate) - shared_address(p);
  each_rank(p, ranks, around, [&](unsigned to) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(to), "r"(v),
                 "r"(to + apart)
                 : "memory");
  });
}
RT_DEVICE void store_near(uint32_t* p, uint64_t* gate, uint32_t ranks, const Ranks& around, uint32_t v, uint32_t w) {
  const unsigned apart = shared_address(gate) - shared_address(p);
  each_rank(p, ranks, around, [&](unsigned to) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [%0], {%1, %2}, [%3];" ::"r"(to), "r"(v),
                 "r"(w), "r"(to + apart)
                 : "memory");
  });
}

RT_DEVICE void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
}
#else
// Plans for older devices have no clusters, so nobody calls these there.
RT_DEVICE void gate_init(uint64_t*) { __trap(); }
RT_DEVICE void gate_expect(uint64_t*, uint32_t, bool) { __trap(); }
template <class Report>
RT_DEVICE void gate_wait(uint64_t*, uint32_t, uint64_t, Report*, const Report&) {
  __trap();
}
RT_DEVICE void take_pair(uint32_t*, uint32_t (&)[2]) { __trap(); }
struct Ranks {};
RT_DEVICE void store_near(uint32_t*, uint64_t*, uint32_t, const Ranks&, uint32_t) { __trap(); }
RT_DEVICE void store_near(uint32_t*, uint64_t*, uint32_t, const Ranks&, uint32_t, uint32_t) { __trap(); }
RT_DEVICE void cluster_barrier() { __trap(); }
#endif

}  // namespace rt::detail
