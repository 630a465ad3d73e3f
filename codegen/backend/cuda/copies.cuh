// Asynchronous copies into shared memory: by threads, and in bulk by the loader.
#pragma once

namespace rt::detail {

template <int Bytes>
RT_DEVICE void cp_async(void* smem, const void* gmem) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(smem));
  const size_t from = __cvta_generic_to_global(gmem);
  if constexpr (Bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(Bytes) : "memory");
  }
#else
  if constexpr (Bytes == 16) {
    *static_cast<uint4*>(smem) = *static_cast<const uint4*>(gmem);
  } else if constexpr (Bytes == 8) {
    *static_cast<uint2*>(smem) = *static_cast<const uint2*>(gmem);
  } else {
    *static_cast<unsigned*>(smem) = *static_cast<const unsigned*>(gmem);
  }
#endif
}

template <int Bytes>
RT_DEVICE void cp_async_or_zero(void* smem, const void* gmem, bool ok) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(smem));
  const size_t from = __cvta_generic_to_global(gmem);
  const int bytes = ok ? Bytes : 0;  // with a source size of 0 the source address is ignored
  if constexpr (Bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(Bytes), "r"(bytes)
                 : "memory");
  }
#else
  if (ok) {
    cp_async<Bytes>(smem, gmem);
  } else {
    memset(smem, 0, Bytes);
  }
#endif
}

RT_DEVICE void cp_async_commit() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

template <int N>
RT_DEVICE void cp_async_wait() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}

RT_DEVICE void prefetch(const void* gmem, uint32_t bytes) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(gmem)), "r"(bytes)
               : "memory");
#endif
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
RT_DEVICE void copies_arrive(uint64_t* bar) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(bar)) : "memory");
}
#else
RT_DEVICE void copies_arrive(uint64_t* bar) { mbarrier_arrive(bar); }  // its copies have landed already
#endif

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
constexpr int kFillArrivals = 1;  // one lane copies the whole chunk, and the copy counts its own bytes
#else
constexpr int kFillArrivals = 32;  // every lane copies a part, and arrives for it
#endif

RT_DEVICE void fill_stage(char* stage, uint64_t* full, const char* from, uint32_t bytes, bool passing) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  if (!one_lane()) return;
  asm volatile("{.reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1;}" ::"r"(shared_address(full)),
               "r"(bytes)
               : "memory");
  if (passing) {
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::
            "r"(shared_address(stage)),
        "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(full)), "l"(policy)
        : "memory");
    return;
  }
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(stage)),
               "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(full))
               : "memory");
#elif __CUDA_ARCH__ >= 800
  RT_NO_UNROLL
  for (uint32_t at = threadIdx.x % 32 * 16; at < bytes; at += 16 * 32) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(stage + at)),
                 "l"(__cvta_generic_to_global(from + at))
                 : "memory");
  }
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(full)) : "memory");
#else
  RT_NO_UNROLL
  for (uint32_t at = threadIdx.x % 32 * 16; at < bytes; at += 16 * 32) {
    *reinterpret_cast<uint4*>(stage + at) = __ldg(reinterpret_cast<const uint4*>(from + at));
  }
  mbarrier_arrive(full);
#endif
}
RT_DEVICE void free_stage(char*, int, uint64_t* empty, bool one) {
  if (one) mbarrier_arrive(empty);
}

}  // namespace rt::detail
