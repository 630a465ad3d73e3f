// Clusters on the emulator: stores into other blocks' shared memory, and gates.
#pragma once

namespace rt::detail {

// What the 64 bits of a gate hold. `bytes` are those that are still to come: announced by gate_expect, less those that
// have come; the difference is negative where stores were faster. `phases` is twice the number of complete phases, plus
// 1 when the current phase has had its arrival. Blocks, which are OS threads, change both in one atomic exchange.
struct Gate {
  int32_t bytes;
  uint32_t phases;
};

RT_EMU_QUIET inline Gate read_gate(const uint64_t* gate) {
  const uint64_t v = __atomic_load_n(gate, __ATOMIC_RELAXED);
  Gate g;
  std::memcpy(&g, &v, sizeof g);
  return g;
}

// Adds to the bytes, and arrives, if asked to. What a thread did before comes before what others do after they have
// seen the phase end.
inline void change_gate(uint64_t* gate, int32_t bytes, bool arrives) {
  emu::order_release(gate);
  uint64_t old = __atomic_load_n(gate, __ATOMIC_RELAXED), now;
  do {
    Gate g;
    std::memcpy(&g, &old, sizeof g);
    if (arrives && (g.phases & 1) != 0) emu::running_block->fail("a gate gets a second arrival in a phase");
    g.bytes += bytes;
    g.phases += arrives ? 1 : 0;
    if ((g.phases & 1) != 0 && g.bytes == 0) ++g.phases;
    std::memcpy(&now, &g, sizeof g);
  } while (!__atomic_compare_exchange_n(gate, &old, now, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  emu::running_block->grid()->publish();
}

RT_EMU_QUIET inline void gate_init(uint64_t* gate) { __atomic_store_n(gate, uint64_t{0}, __ATOMIC_RELAXED); }
inline void gate_expect(uint64_t* gate, uint32_t bytes, bool now) {
  if (now) change_gate(gate, static_cast<int32_t>(bytes), true);
}
template <class Report>
inline void gate_wait(uint64_t* gate, uint32_t phase, uint64_t patience_ns, Report* notes, const Report& r) {
  Patience patience(patience_ns);
  while (read_gate(gate).phases / 2 <= phase) patience.spent(true, notes, r);
  if (read_gate(gate).phases / 2 > phase + 1) {
    emu::running_block->fail("a gate is waited for when its phase is long over");
  }
  emu::order_acquire(gate);
}

// What the emulator writes into a word of a slot when it has been taken. A store to a word that holds anything else
// would overwrite a value that is still wanted. These accesses are the emulator's own, so ThreadSanitizer does not see
// them.
constexpr uint32_t kFreeWord = 0xffffffff;

RT_EMU_QUIET inline uint32_t peek(const uint32_t* p) { return *static_cast<const volatile uint32_t*>(p); }
RT_EMU_QUIET inline void free_word(uint32_t* p) { *static_cast<volatile uint32_t*>(p) = kFreeWord; }
RT_EMU_QUIET inline void note_free(uint32_t* p, int count) {
  for (int i = thread_index(); i < count; i += block_threads()) free_word(p + i);
}

inline void take_pair(uint32_t* p, uint32_t (&v)[2]) {
  if (reinterpret_cast<uintptr_t>(p) % 8 != 0) emu::running_block->fail("two words in a slot that are not aligned");
  v[0] = p[0], v[1] = p[1];
  free_word(p), free_word(p + 1);
}
struct Ranks {};

inline void store_near(uint32_t* p, uint64_t* gate, uint32_t ranks, const Ranks&, uint32_t v) {
  for (uint32_t rank = 0; ranks >> rank != 0; ++rank) {
    if ((ranks >> rank & 1) == 0) continue;
    uint32_t* to = emu::running_block->near(p, rank);
    if (peek(to) != kFreeWord) emu::running_block->fail("a word in a slot is used again before it has been taken");
    *to = v;
    change_gate(reinterpret_cast<uint64_t*>(emu::running_block->near(reinterpret_cast<uint32_t*>(gate), rank)), -4,
                false);
  }
}
inline void store_near(uint32_t* p, uint64_t* gate, uint32_t ranks, const Ranks& around, uint32_t v, uint32_t w) {
  if (reinterpret_cast<uintptr_t>(p) % 8 != 0) emu::running_block->fail("two words in a slot that are not aligned");
  store_near(p, gate, ranks, around, v);
  store_near(p + 1, gate, ranks, around, w);
}
inline void copies_arrive(uint64_t* bar) {
  emu::running_block->finish_copies(-1);
  mbarrier_arrive(bar);
}
inline void cluster_barrier() { emu::running_block->cluster_barrier(); }

}  // namespace rt::detail
