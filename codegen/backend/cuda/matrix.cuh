// Matrix instructions of a warp, in CUDA (PTX ISA, warp-level matrix instructions). They are there from sm_80 on;
// rKernels that use them say so in their manifests.
#pragma once

namespace rt::detail {

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
// Ties to even are one instruction, and ties away from zero three.
RT_DEVICE uint32_t to_tf32(float x) {
  uint32_t r;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
#else
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
#endif
  return r;
}

RT_DEVICE void load_fragments(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}

RT_DEVICE void mma_tf32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

RT_DEVICE void load_fragments_across(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}

RT_DEVICE void mma_f16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

RT_DEVICE void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

template <bool SignedA, bool SignedB>
RT_DEVICE void mma_int8(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#define RT_MMA_INT8(A, B)                                            \
  asm("mma.sync.aligned.m16n8k32.row.col.s32." A "." B               \
      ".s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, " \
      "%2, %3};"                                                     \
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])               \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
  if constexpr (SignedA && SignedB) {
    RT_MMA_INT8("s8", "s8");
  } else if constexpr (SignedA) {
    RT_MMA_INT8("s8", "u8");
  } else if constexpr (SignedB) {
    RT_MMA_INT8("u8", "s8");
  } else {
    RT_MMA_INT8("u8", "u8");
  }
#undef RT_MMA_INT8
}
#endif

}  // namespace rt::detail
