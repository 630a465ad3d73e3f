// What a back end defines for code that runs on the device: rKernels and the executor are written in these primitives
// and in C++, and in nothing else. Each is declared here, with its contract; rt/device/backend.cuh includes the
// definitions of the back end behind this file. A definition with another signature does not compile where it is used,
// and a test (codegen/backend) checks that every back end defines all of them.
//
// Where a contract speaks of order, it means the terms of the PTX memory consistency model: an access is relaxed,
// acquire or release at a scope, and the scope is the whole device ("gpu") unless it says "cta", the thread block.
// Names in brackets are instructions of the PTX ISA that the CUDA back end uses, and the chapter of the PTX ISA that
// describes them has the exact semantics. A back end for other hardware may order more, never less.
//
// Also defined by each back end, as types and constants:
//
//   Patience           a watchdog for a loop that waits, constructed before it with the nanoseconds that the wait may
//                      take. spent(waits, notes, report) is called after each look in vain; `waits` is whether this
//                      thread is among those that still wait. In debug builds it leaves the report in notes, and ends
//                      the launch when the time is over.
//   Ranks              the ranks of a cluster's blocks as store_near wants them, found out once for many stores
//   kMostGroups        how many warp groups of an rTask may have a group_barrier
//   kFillArrivals      how many arrivals of the loader's warp complete a phase of a stage's full mbarrier (fill_stage)
#pragma once

namespace rt::detail {

// ---- Threads and blocks ----

// The number of the thread in its block, from 0.
RT_DEVICE int thread_index();
// The same, held in a register: compilers do not read it anew where it is used. For bodies with short loops.
RT_DEVICE int kept_thread_index();
RT_DEVICE int block_index();
RT_DEVICE int block_threads();
// The block's shared memory, aligned to 128 bytes.
RT_DEVICE char* shared_base();
// The processor that the block runs on; for traces.
RT_DEVICE uint32_t multiprocessor();

// ---- Warps ---- All 32 lanes of a warp call these together. The exchanges order nothing; sync_warp orders accesses of
// the warp's lanes to shared and global memory (bar.warp.sync).

RT_DEVICE void sync_warp();
// Whether the predicate holds in every lane (vote.all).
RT_DEVICE bool all_lanes(bool predicate);
// True in one lane, always the same one (elect.sync). Compilers make no loop over lanes of a copy that it asks for.
RT_DEVICE bool one_lane();
// v, which is the same in all lanes, in a form that shows the compiler that it is: branches by it do not diverge.
RT_DEVICE int same_in_warp(int v);
// The value of lane `lane`, of the lane whose number differs by mask, of the lane delta further on (shfl.sync).
template <class T>
RT_DEVICE T shfl(T v, int lane);
template <class T>
RT_DEVICE T shfl_xor(T v, int mask);
template <class T>
RT_DEVICE T shfl_down(T v, int delta);

// ---- Arithmetic and addresses ----

// a·b + c, in one instruction (mad.wide.s32).
RT_DEVICE int64_t mad_wide(int a, int b, int64_t c);
// 2^x, off by a few units in the last place at most. What is below the normal numbers may be 0 (ex2.approx.ftz).
RT_DEVICE float exp2(float x);
// x / y for a normal y, off by no more than two units in the last place (div.approx).
RT_DEVICE float near_quotient(float x, float y);
// The larger of two numbers, or a NaN if one of them is (max.NaN).
RT_DEVICE float larger(float a, float b);
// The larger ones of two pairs of numbers of 16 bits without a sign, which lie in a word each (max.u16x2).
RT_DEVICE uint32_t larger_pairs(uint32_t a, uint32_t b);
// How many bits are set.
RT_DEVICE uint32_t bits(uint32_t v);
// x, which the compiler must compute here: it can neither move the computation to where x is used, nor repeat it there.
RT_DEVICE int settled(int x);
RT_DEVICE float settled(float x);
RT_DEVICE int64_t settled(int64_t x);
// p, which points to shared memory, and which the compiler does not compute again where it is used.
RT_DEVICE char* settled_shared(char* p);
// p, which points to global memory; the compiler is told so.
RT_DEVICE char* global(char* p);
// An address in global memory as a number, and back.
RT_DEVICE uint64_t global_place(const void* p);
RT_DEVICE void* global_at(uint64_t place);
// *p through the path for data that nobody writes during the launch (ld.global.nc).
template <class T>
RT_DEVICE T ld_const(const T* p);
// *p if ok, otherwise zero; then p is not read. Without a branch. T has 1, 2, 4, 8 or 16 bytes, and is aligned to
// as many.
template <class T>
RT_DEVICE T load_or_zero(const T* p, bool ok);

// ---- Barriers of a block ---- Each orders all accesses of the participating threads to shared and global memory at
// scope cta, and each has a number of its own (bar.sync, bar.arrive). `threads` is the number of participants, a
// multiple of 32: those who arrive, and those who wait.

// Of the vEU's threads, without the loader.
RT_DEVICE void block_barrier(int threads);
// Of the threads of the running rTask, its first ones.
RT_DEVICE void rtask_barrier(int threads);
// The same, which also tells how many of them have the predicate (bar.red.popc).
RT_DEVICE int rtask_barrier_count(int threads, bool predicate);
// The same two where threads of a warp may come to the barrier at different places of the program (without .aligned).
RT_DEVICE void rtask_barrier_apart(int threads);
RT_NOINLINE_DEVICE int rtask_barrier_count_apart(int threads, bool predicate);
// Of all threads of the block that have not ended, of which the second tells how many have the predicate (bar.sync and
// bar.red.popc of barrier 0 without a number of threads).
RT_DEVICE void remaining_barrier();
RT_DEVICE int remaining_barrier_count(bool predicate);
// The loader's warp arrives when its ring can be used; the vEU's threads wait for that. Threads of both count.
RT_DEVICE void loader_ready(int threads);
RT_DEVICE void wait_for_loader(int threads);
// Direct steps (exec/mode_direct.cuh): the warp that fetches tells that descriptors are there, the threads that compute
// tell that they have used them. `odd` is the step's number modulo 2; even and odd steps have barriers of their own.
RT_DEVICE void tell_fetched(uint32_t odd, int threads);
RT_DEVICE void wait_for_fetched(uint32_t odd, int threads);
RT_DEVICE void tell_used(uint32_t odd, int threads);
RT_DEVICE void wait_for_used(uint32_t odd, int threads);
// Of warp group `group` of the running rTask, 128 neighbouring threads, and of those behind it, so many in all. There
// are kMostGroups at most.
RT_DEVICE void group_barrier(int group, int groups);
// Of all warp groups of the running rTask, so many threads; others of its threads are in no warp group.
RT_DEVICE void groups_barrier(int threads);

// ---- Flags and counters: order between blocks ----
// Addresses are in global memory, words have 64 bits.

// Orders the thread's accesses before it, and those that a barrier put before it, before all accesses behind it, when a
// relaxed access to the same word stands between the fences of two threads (fence.acq_rel.gpu).
RT_DEVICE void fence_acq_rel_gpu();
// (ld.relaxed.gpu, st.relaxed.gpu, red.relaxed.gpu.add)
RT_DEVICE uint64_t load_relaxed_gpu(const uint64_t* p);
// The same as an acquire: what was written before the release whose value it returns, the thread and, behind a barrier,
// others of its block see (ld.acquire.gpu).
RT_DEVICE uint64_t load_acquire_gpu(const uint64_t* p);
RT_DEVICE void store_relaxed_gpu(uint64_t* p, uint64_t v);
// Adds 1. Additions of several threads form one chain: who loads the last one's value, as an acquire or with a fence
// behind it, sees what all of them wrote before a fence or release.
RT_DEVICE void add_relaxed_gpu(uint64_t* p);
// The same as releases of what the thread wrote, and others of its block before the last barrier (st.release.gpu,
// red.release.gpu).
RT_DEVICE void store_release_gpu(uint64_t* p, uint64_t v);
RT_DEVICE void add_release_gpu(uint64_t* p);
// Of the guard alone, relaxed: both return what the word held before (atom.add, atom.cas).
RT_DEVICE uint64_t add_gpu(uint64_t* p, uint64_t n);
RT_DEVICE uint64_t compare_swap_gpu(uint64_t* p, uint64_t expected, uint64_t v);
// Makes what the thread wrote before visible to the host, too (fence.sc.sys).
RT_DEVICE void fence_system();
// Gives way for about 100 ns, between two looks at a word that others change.
RT_DEVICE void relax();

// ---- Tagged words ----
// Value and tag in one relaxed access of 64 bits. They order nothing else: whoever sees a word knows that word alone.

RT_DEVICE uint64_t load_word(const uint64_t* p);
// 0 where `now` is false; without a branch.
RT_DEVICE uint64_t load_word_if(bool now, const uint64_t* p);
// Two neighbours, the first at a multiple of 16 bytes. Each of the two is one access; they may be seen at different
// times.
RT_DEVICE void load_words(const uint64_t* p, uint64_t (&v)[2]);
RT_DEVICE void store_word(uint64_t* p, uint64_t v);

// ---- Mbarriers ---- Words of 64 bits in shared memory that count arrivals (mbarrier). A phase is complete when all
// its arrivals, and all bytes that are announced for it, have come; then the next begins. Arriving is a release, and
// having waited an acquire, at scope cta. Phases count from 0 since init; a thread waits for the current phase or for
// the one before, never for an earlier or a later one.

RT_DEVICE void mbarrier_init(uint64_t* bar, int arrivals);
// After the last init, before other threads or copies use the mbarriers; a barrier of the threads must follow.
RT_DEVICE void mbarrier_init_done();
RT_DEVICE void mbarrier_arrive(uint64_t* bar);
// Whether the phase is complete, without waiting.
RT_DEVICE bool mbarrier_test(uint64_t* bar, uint32_t phase);
// Waits for a phase. After patience_ns the watchdog leaves the report in notes.
template <class Report>
RT_DEVICE void mbarrier_wait(uint64_t* bar, uint32_t phase, uint64_t patience_ns, Report* notes, const Report& r);
// The same, and calls meanwhile() again and again. A back end whose wait gives way to others need not call it.
template <class Report, class Meanwhile>
RT_DEVICE void mbarrier_wait(uint64_t* bar, uint32_t phase, uint64_t patience_ns, Report* notes, const Report& r,
                             Meanwhile meanwhile);

// ---- Copies into shared memory ----

// A thread's asynchronous copy of Bytes, 4, 8 or 16, aligned to as many (cp.async). It has landed for the thread itself
// after a wait for its group, for others after a barrier behind that.
template <int Bytes>
RT_DEVICE void cp_async(void* smem, const void* gmem);
// The same if ok; otherwise the shared memory becomes zero, and gmem is not read. Without a branch. 4 or 16 bytes.
template <int Bytes>
RT_DEVICE void cp_async_or_zero(void* smem, const void* gmem, bool ok);
// Ends a group of copies.
RT_DEVICE void cp_async_commit();
// Waits for all of the thread's groups but the N latest.
template <int N>
RT_DEVICE void cp_async_wait();
// Begins to bring so many bytes of constants from device memory to L2, if there is a way to say so. Both numbers are
// multiples of 16.
RT_DEVICE void prefetch(const void* gmem, uint32_t bytes);
// The thread arrives at the mbarrier when all copies that it has begun have landed; it does not wait
// (cp.async.mbarrier.arrive.noinc).
RT_DEVICE void copies_arrive(uint64_t* bar);
// All lanes of the loader's warp: copies bytes, a multiple of 16, into a stage, and completes a phase of its full
// mbarrier when they are there. Source and stage are aligned to 16 (cp.async.bulk). What is passing leaves L2 before
// other data do, if there is a way to say so.
RT_DEVICE void fill_stage(char* stage, uint64_t* full, const char* from, uint32_t bytes, bool passing = false);
// One thread: brings the tensor map near that boxes will be sent for with (prefetch.tensormap, sm_90).
RT_DEVICE void prefetch_map(const char* map);
// One thread: copies a box of a matrix (TiledMatrix) into shared memory, and counts its bytes at the mbarrier `full`
// when they are there. The box is the one whose first element is at the given column and row of the
// matrix. In shared memory it is rows of 128 bytes from a multiple of 1024 bytes on, swizzled as matrix instructions of
// warp groups take them. Elements outside the matrix become zeros, and numbers of float32 are rounded to tf32, to the
// nearest. `first` is the address of the matrix, and `map` that of its tensor map (cp.async.bulk.tensor, sm_90).
RT_DEVICE void fill_box(char* stage, uint64_t* full, const char* map, const char* first, const TiledMatrix& m,
                        uint32_t column, uint32_t row);
// A position of a filter: the pixel that its first tap meets, and the image.
struct Position {
  uint32_t x, y, image;
};
// The same for what a tap of a filter meets of images (TiledMatrix) at so many positions as a box has rows, from the
// given one on: the one behind it is on the right, and behind the last one of a line is the first one of the next.
RT_DEVICE void fill_patch(char* stage, uint64_t* full, const char* map, const char* first, const TiledMatrix& m,
                          uint32_t channel, const Position& p, uint32_t tap_x, uint32_t tap_y);
// The same thread, behind all boxes of a phase of the mbarrier: it is complete when so many bytes have come.
RT_DEVICE void boxes_sent(uint64_t* full, uint32_t bytes);
// Behind it copies of the thread find what other threads stored before the thread waited for them, in global memory and
// in shared (fence.proxy.async).
RT_DEVICE void stored_before_copies();
// All lanes of a warp, which have met after they read what they need of a stage: the warp arrives at the stage's empty
// mbarrier. The lane for which `one` is true does so for all, since arrivals at one mbarrier are carried out one after
// another.
RT_DEVICE void free_stage(char* stage, int bytes, uint64_t* empty, bool one);

// ---- Clusters ---- Words of 32 bits that blocks of a cluster store into each other's shared memory, and gates:
// mbarriers that count the bytes of such stores. Devices without clusters are never given launches that call these.

RT_DEVICE void gate_init(uint64_t* gate);
// The one arrival of a gate's phase, if now: the phase is complete when so many bytes have come, before or after this.
RT_DEVICE void gate_expect(uint64_t* gate, uint32_t bytes, bool now = true);
// Waits for a phase of a gate of one's own block, as mbarrier_wait. The words it counts can be read behind it.
template <class Report>
RT_DEVICE void gate_wait(uint64_t* gate, uint32_t phase, uint64_t patience_ns, Report* notes, const Report& r);
// Two words of one's own block, the first at a multiple of 8 bytes, behind the gate.
RT_DEVICE void take_pair(uint32_t* p, uint32_t (&v)[2]);
// Stores v, or v and w at a multiple of 8 bytes, to the place that p is in one's own block, in all blocks of the
// cluster that have a bit in `ranks`, and has the gate there count the bytes (st.async). It does not wait.
struct Ranks;
RT_DEVICE void store_near(uint32_t* p, uint64_t* gate, uint32_t ranks, const Ranks& around, uint32_t v);
RT_DEVICE void store_near(uint32_t* p, uint64_t* gate, uint32_t ranks, const Ranks& around, uint32_t v, uint32_t w);
// Barrier of all threads of all blocks of a cluster, release and acquire at its scope (barrier.cluster).
RT_DEVICE void cluster_barrier();

// ---- Order of launches ----
// Where a launch may start while those before it on the stream end (griddepcontrol: programmatic dependent launch).

// The next launch's blocks may come; said by all blocks of this one.
RT_DEVICE void allow_next_launch();
// Returns when the launches before have ended, and what they wrote can be read. Every block calls it, also one without
// work: that a launch has ended stands for all before it.
RT_DEVICE void wait_for_launches_before();
// The same; p is a global address that is computed before and used only behind it.
RT_DEVICE const char* inputs(const char* p);

// ---- Clocks ----

// The processor's clock in cycles, comparable on that processor alone; the device's in nanoseconds; both at once. They
// are in order with the accesses around them.
RT_DEVICE uint64_t clock_cycles();
RT_DEVICE uint64_t clock_nanoseconds();
RT_DEVICE void both_clocks(uint64_t* cycles, uint64_t* nanoseconds);

// ---- What finds mistakes ----
// Only back ends that check programs do something here.

// Sleeps about so long: debug builds, between steps.
RT_DEVICE void nap(uint32_t ns);
// Makes an rTask's shared memory undefined. All of the vEU's threads call it, `threads` in number.
RT_DEVICE void poison(char* smem, int bytes, int threads);
// A chunk was given back; an rTask asked for its inputs; an rTask has ended that must have taken so many chunks.
RT_DEVICE void note_chunk();
RT_DEVICE void note_inputs();
RT_DEVICE void expect_streamed(uint32_t chunks, bool inputs);
// So many words of the block's slots are free: each may be stored to once until it is taken.
RT_DEVICE void note_free(uint32_t* words, int count);

// ---- Matrix instructions ----
// All 32 lanes of a warp call these together, on architectures that have them (sm_80 and later). tf32 is float32 of
// which the upper 19 bits count: 1 of sign, 8 of exponent, 10 of mantissa. With g = lane / 4 and q = lane % 4, a
// fragment is
//
//   A   16 rows, 8 deep      a[0], a[1] rows g, g + 8 at depth q;  a[2], a[3] the same rows at depth q + 4
//   B   8 deep, 8 columns    b[0], b[1] depths q, q + 4 of column g
//   D   16 rows, 8 columns   d[0], d[1] columns 2q, 2q + 1 of row g;  d[2], d[3] the same columns of row g + 8

// x as tf32, rounded to the nearest: ties to even from sm_90 on, and away from zero before (cvt.rn.tf32.f32,
// cvt.rna.tf32.f32).
RT_DEVICE uint32_t to_tf32(float x);
// d += A·B. Of the operands the lower 13 bits do not count; products are exact, sums are float32, in an order and with
// a rounding that are the hardware's (mma.sync.m16n8k8.tf32).
RT_DEVICE void mma_tf32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);
// Four blocks of 8 rows by 4 numbers of 32 bits, each row 16 aligned bytes of shared memory: the lane gives the address
// of row lane % 8 of block lane / 8, and gets element q of row g of every block (ldmatrix.m8n8.x4).
RT_DEVICE void load_fragments(uint32_t (&r)[4], const void* row);

// Of numbers of 16 bits a word of a fragment holds two that are neighbours along the depth, the first in the lower
// half:
//
//   A   16 rows, 16 deep     a[0], a[1] rows g, g + 8 at depths 2q, 2q + 1;  a[2], a[3] the same rows at 2q + 8, 2q + 9
//   B   16 deep, 8 columns   b[0], b[1] depths 2q, 2q + 1 and 2q + 8, 2q + 9 of column g
//
// and D is as above. load_fragments brings such words too: its rows have 8 numbers, of which the lane gets 2q and
// 2q + 1.

// d += A·B of float16 and of bfloat16; products are exact, sums are float32 as those of mma_tf32
// (mma.sync.m16n8k16.f16, .bf16).
RT_DEVICE void mma_f16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);
RT_DEVICE void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);
// Of numbers of 8 bits a word of a fragment holds four that are neighbours along the depth, the first in the lowest
// byte:
//
//   A   16 rows, 32 deep     a[0], a[1] rows g, g + 8 at depths 4q to 4q + 3;  a[2], a[3] the same rows 16 deeper
//   B   32 deep, 8 columns   b[0], b[1] depths 4q to 4q + 3 and 4q + 16 to 4q + 19 of column g
//
// and D is as above, of int32. load_fragments brings such words too: its rows have 16 numbers.

// d += A·B of integers of 8 bits, with or without a sign. Products are exact, and sums wrap around as those of int32 do
// (mma.sync.m16n8k32.s8, .u8).
template <bool SignedA, bool SignedB>
RT_DEVICE void mma_int8(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);
// load_fragments of numbers of 16 bits, with rows and columns exchanged: the lane gets element g of rows 2q and 2q + 1
// of every block (ldmatrix.m8n8.x4.trans).
RT_DEVICE void load_fragments_across(uint32_t (&r)[4], const void* row);

// ---- Matrix instructions of a warp group ---- All 128 threads of four neighbouring warps call these together, the
// first of which has a number that four divides, on architectures of which the manifest says so (sm_90a). They multiply
// 64 rows of A by N columns of B, 32 bytes deep: 8 numbers of tf32, 16 of 16 bits, 32 of 8 bits. N is one of 16, 32,
// 64, 96, 128, 192, 256.
//
//   A   in registers: warp w holds rows 16w to 16w + 15 as a fragment for mma_tf32, mma_f16, mma_bf16 or mma_int8; or
//       swizzled in shared memory: rows of 128 bytes, one behind the other, in which run r of 16 bytes is the one at
//       r ^ i % 8, if the row is number i from a multiple of 1024 bytes on. `a` is where the first of the two runs that
//       are multiplied would be in the first row without swizzling. That may be any row.
//   B   in shared memory, as two blocks of 16 bytes of depth: a block has N columns of 16 aligned bytes each, one
//       behind the other. `pitch` is the bytes from the first block to the second. Or, of 16 bits, swizzled as A is:
//       "columns" are N such rows of 128 bytes, one a column of B; "depths" are 16 such rows, one a depth, with 64
//       columns of B in each, and `pitch` bytes behind them follow the rows with the next 64 columns.
//   D   warp w holds rows 16w to 16w + 15; d[4j] to d[4j + 3] are a fragment D of mma_tf32 for columns 8j to 8j + 7
//
// The instructions run beside the threads, one after another. Until multiplied() has returned, the operands must stay
// as they are, and d must not be touched. multiplied_but() says the same of the operands of earlier products.

// An operand in shared memory is named by an OperandPlace, which a pointer converts to; `+ n` is the place n bytes
// further on, a multiple of 16.
struct OperandPlace;

// The place, which is the same in all lanes of a warp, in a form that shows the compiler that it is.
RT_DEVICE OperandPlace operand_in_warp(OperandPlace p);
// The threads' registers hold operands and sums that the following products take (wgmma.fence).
RT_DEVICE void multiply_begin();
// The products that the thread has begun are all of a group (wgmma.commit_group). It stands in the branch in which they
// were begun: otherwise ptxas adds synchronisation of its own at the next join of branches, and has products wait for
// each other (its remarks C7519 and C7520).
RT_DEVICE void multiply_end();
// Begins d += A·B, or d = A·B if not add. Roundings are those of mma_tf32 (wgmma.mma_async.m64nNk8.tf32, .m64nNk16.f16
// and .bf16).
template <int N>
RT_DEVICE void multiply_tf32(float (&d)[N / 2], const uint32_t (&a)[4], OperandPlace b, int pitch, bool add);
template <int N>
RT_DEVICE void multiply_f16(float (&d)[N / 2], const uint32_t (&a)[4], OperandPlace b, int pitch, bool add);
template <int N>
RT_DEVICE void multiply_bf16(float (&d)[N / 2], const uint32_t (&a)[4], OperandPlace b, int pitch, bool add);
// The same with integers of 8 bits, whose products and sums are those of mma_int8 (wgmma.mma_async.m64nNk32.s32).
template <int N, bool SignedA, bool SignedB>
RT_DEVICE void multiply_int8(int32_t (&d)[N / 2], const uint32_t (&a)[4], OperandPlace b, int pitch, bool add);
// The same with A in shared memory.
template <int N>
RT_DEVICE void multiply_f16_swizzled(float (&d)[N / 2], OperandPlace a, OperandPlace b, int pitch, bool add);
template <int N>
RT_DEVICE void multiply_bf16_swizzled(float (&d)[N / 2], OperandPlace a, OperandPlace b, int pitch, bool add);
template <int N, bool SignedA, bool SignedB>
RT_DEVICE void multiply_int8_swizzled(int32_t (&d)[N / 2], OperandPlace a, OperandPlace b, int pitch, bool add);
// The same with A and B in shared memory, B as columns; and with A in registers and B as depths.
template <int N>
RT_DEVICE void multiply_f16_columns(float (&d)[N / 2], OperandPlace a, OperandPlace b, bool add);
template <int N>
RT_DEVICE void multiply_bf16_columns(float (&d)[N / 2], OperandPlace a, OperandPlace b, bool add);
template <int N>
RT_DEVICE void multiply_f16_depths(float (&d)[N / 2], const uint32_t (&a)[4], OperandPlace b, int pitch, bool add);
template <int N>
RT_DEVICE void multiply_bf16_depths(float (&d)[N / 2], const uint32_t (&a)[4], OperandPlace b, int pitch, bool add);
// What the thread has stored to shared memory, and its copies that have landed there, can be read by products that are
// begun behind the next barrier (fence.proxy.async). Bulk copies need no such fence.
RT_DEVICE void operands_written();
// Waits until all products that the thread has begun are in d (wgmma.wait_group). Sum is float or int32_t. What copies
// have written of the operands can be written anew behind it.
template <class Sum, int M>
RT_DEVICE void multiplied(Sum (&d)[M]);
// Waits until the operands of all products have been read but those of the latest Groups groups. No d may be touched
// before multiplied().
template <int Groups>
RT_DEVICE void multiplied_but();
// The same, and the sums d of products that are not of these groups may be touched behind it.
template <int Groups, int M>
RT_DEVICE void multiplied_but(float (&d)[M]);

}  // namespace rt::detail
