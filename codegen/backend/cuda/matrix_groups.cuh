// Matrix instructions of a warp group, in CUDA (PTX ISA, asynchronous warpgroup-level matrix instructions). They are
// there on sm_90a alone; rKernels that use them say so in their manifests.
#pragma once

namespace rt::detail {

// Descriptors have addresses in units of 16 bytes, without the block's rank in its cluster, which shared addresses have
// above the lowest 24 bits. Of a place that is known, that of one further on takes one addition.
struct OperandPlace {
  uint32_t units;
  RT_DEVICE OperandPlace(const void* p) : units(shared_address(p) % (1 << 18) / 16) {}
};
RT_DEVICE OperandPlace operator+(OperandPlace p, int bytes) {
  p.units += static_cast<uint32_t>(bytes / 16);
  return p;
}

RT_DEVICE OperandPlace operand_in_warp(OperandPlace p) {
  uint32_t units;
  asm volatile("shfl.sync.idx.b32 %0, %1, 0, 0x1f, 0xffffffff;" : "=r"(units) : "r"(p.units));
  p.units = units;
  return p;
}

// The matrix descriptor of an operand in blocks: its address, the bytes from one block of depths to the next, and those
// from eight columns or rows to the next eight, which are 128; without swizzling.
RT_DEVICE uint64_t group_operand(OperandPlace b, int pitch) {
  return uint64_t{128 >> 4} << 32 | b.units + (static_cast<uint32_t>(pitch >> 4) << 16);
}

// The descriptor of rows of 128 bytes with a swizzle of as many: 1024 bytes from eight rows to the next eight. The
// hardware exchanges runs by the bits of their addresses, so that the first row may be any one. Where rows are depths,
// it has the bytes from the rows of 64 columns to those of the next 64, too.
RT_DEVICE uint64_t swizzled_operand(OperandPlace a, int pitch = 16) {
  return uint64_t{1} << 62 | uint64_t{1024 >> 4} << 32 | a.units + (static_cast<uint32_t>(pitch >> 4) << 16);
}

// What the instructions of N columns are called with: inline PTX has no lists of registers but those that are written
// out.
template <int N>
struct GroupProduct;

#define RT_R0 "%0, %1, %2, %3, %4, %5, %6, %7"
#define RT_R1 "%8, %9, %10, %11, %12, %13, %14, %15"
#define RT_R2 "%16, %17, %18, %19, %20, %21, %22, %23"
#define RT_R3 "%24, %25, %26, %27, %28, %29, %30, %31"
#define RT_R4 "%32, %33, %34, %35, %36, %37, %38, %39"
#define RT_R5 "%40, %41, %42, %43, %44, %45, %46, %47"
#define RT_R6 "%48, %49, %50, %51, %52, %53, %54, %55"
#define RT_R7 "%56, %57, %58, %59, %60, %61, %62, %63"
#define RT_R8 "%64, %65, %66, %67, %68, %69, %70, %71"
#define RT_R9 "%72, %73, %74, %75, %76, %77, %78, %79"
#define RT_R10 "%80, %81, %82, %83, %84, %85, %86, %87"
#define RT_R11 "%88, %89, %90, %91, %92, %93, %94, %95"
#define RT_R12 "%96, %97, %98, %99, %100, %101, %102, %103"
#define RT_R13 "%104, %105, %106, %107, %108, %109, %110, %111"
#define RT_R14 "%112, %113, %114, %115, %116, %117, %118, %119"
#define RT_R15 "%120, %121, %122, %123, %124, %125, %126, %127"
// The sums, as operands of type TYPE: "f" or "r".
#define RT_D(TYPE, i)                                                                                                 \
  "+" TYPE(d[8 * i]), "+" TYPE(d[8 * i + 1]), "+" TYPE(d[8 * i + 2]), "+" TYPE(d[8 * i + 3]), "+" TYPE(d[8 * i + 4]), \
      "+" TYPE(d[8 * i + 5]), "+" TYPE(d[8 * i + 6]), "+" TYPE(d[8 * i + 7])
#define RT_D16(TYPE) RT_D(TYPE, 0)
#define RT_D32(TYPE) RT_D16(TYPE), RT_D(TYPE, 1)
#define RT_D64(TYPE) RT_D32(TYPE), RT_D(TYPE, 2), RT_D(TYPE, 3)
#define RT_D96(TYPE) RT_D64(TYPE), RT_D(TYPE, 4), RT_D(TYPE, 5)
#define RT_D128(TYPE) RT_D96(TYPE), RT_D(TYPE, 6), RT_D(TYPE, 7)
#define RT_D192(TYPE) RT_D128(TYPE), RT_D(TYPE, 8), RT_D(TYPE, 9), RT_D(TYPE, 10), RT_D(TYPE, 11)
#define RT_D256(TYPE) RT_D192(TYPE), RT_D(TYPE, 12), RT_D(TYPE, 13), RT_D(TYPE, 14), RT_D(TYPE, 15)
#define RT_GROUP_INSTRUCTION(NAME, TYPES, MORE, SUM, SUMS, N, TEXT, A0, A1, A2, A3, B, ADD)                         \
  RT_DEVICE static void NAME(SUM(&d)[N / 2], const uint32_t(&a)[4], uint64_t b, int add) {                          \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %" #ADD ", 0; wgmma.mma_async.sync.aligned.m64n" #N TYPES " {" TEXT \
                 "}, {%" #A0 ", %" #A1 ", %" #A2 ", %" #A3 "}, %" #B ", p" MORE ";}"                                \
                 : RT_D##N(SUMS)                                                                                    \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));                                   \
  }
// The same with A in shared memory. There are fewer operands, so that the first three numbers are those of the
// descriptors and of ADD.
#define RT_GROUP_SHARED(NAME, TYPES, MORE, SUM, SUMS, N, TEXT, A, B, ADD, ...)                                      \
  RT_DEVICE static void NAME(SUM(&d)[N / 2], uint64_t a, uint64_t b, int add) {                                     \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %" #ADD ", 0; wgmma.mma_async.sync.aligned.m64n" #N TYPES " {" TEXT \
                 "}, %" #A ", %" #B ", p" MORE ";}"                                                                 \
                 : RT_D##N(SUMS)                                                                                    \
                 : "l"(a), "l"(b), "r"(add));                                                                       \
  }
#define RT_GROUP_PRODUCT(N, ...)                                                                    \
  template <>                                                                                       \
  struct GroupProduct<N> {                                                                          \
    RT_GROUP_SHARED(tf32_shared, "k8.f32.tf32.tf32", ", 1, 1", float, "f", N, __VA_ARGS__)          \
    RT_GROUP_SHARED(f16_shared, "k16.f32.f16.f16", ", 1, 1, 0, 0", float, "f", N, __VA_ARGS__)      \
    RT_GROUP_SHARED(bf16_shared, "k16.f32.bf16.bf16", ", 1, 1, 0, 0", float, "f", N, __VA_ARGS__)   \
    RT_GROUP_SHARED(s8s8_shared, "k32.s32.s8.s8", "", int32_t, "r", N, __VA_ARGS__)                 \
    RT_GROUP_SHARED(s8u8_shared, "k32.s32.s8.u8", "", int32_t, "r", N, __VA_ARGS__)                 \
    RT_GROUP_SHARED(u8s8_shared, "k32.s32.u8.s8", "", int32_t, "r", N, __VA_ARGS__)                 \
    RT_GROUP_SHARED(u8u8_shared, "k32.s32.u8.u8", "", int32_t, "r", N, __VA_ARGS__)                 \
    RT_GROUP_INSTRUCTION(tf32, "k8.f32.tf32.tf32", ", 1, 1", float, "f", N, __VA_ARGS__)            \
    RT_GROUP_INSTRUCTION(f16, "k16.f32.f16.f16", ", 1, 1, 0", float, "f", N, __VA_ARGS__)           \
    RT_GROUP_INSTRUCTION(bf16, "k16.f32.bf16.bf16", ", 1, 1, 0", float, "f", N, __VA_ARGS__)        \
    RT_GROUP_INSTRUCTION(f16_depths, "k16.f32.f16.f16", ", 1, 1, 1", float, "f", N, __VA_ARGS__)    \
    RT_GROUP_INSTRUCTION(bf16_depths, "k16.f32.bf16.bf16", ", 1, 1, 1", float, "f", N, __VA_ARGS__) \
    RT_GROUP_INSTRUCTION(s8s8, "k32.s32.s8.s8", "", int32_t, "r", N, __VA_ARGS__)                   \
    RT_GROUP_INSTRUCTION(s8u8, "k32.s32.s8.u8", "", int32_t, "r", N, __VA_ARGS__)                   \
    RT_GROUP_INSTRUCTION(u8s8, "k32.s32.u8.s8", "", int32_t, "r", N, __VA_ARGS__)                   \
    RT_GROUP_INSTRUCTION(u8u8, "k32.s32.u8.u8", "", int32_t, "r", N, __VA_ARGS__)                   \
  };
RT_GROUP_PRODUCT(16, RT_R0, 8, 9, 10, 11, 12, 13)
RT_GROUP_PRODUCT(32, RT_R0 ", " RT_R1, 16, 17, 18, 19, 20, 21)
RT_GROUP_PRODUCT(64, RT_R0 ", " RT_R1 ", " RT_R2 ", " RT_R3, 32, 33, 34, 35, 36, 37)
RT_GROUP_PRODUCT(96, RT_R0 ", " RT_R1 ", " RT_R2 ", " RT_R3 ", " RT_R4 ", " RT_R5, 48, 49, 50, 51, 52, 53)
RT_GROUP_PRODUCT(128, RT_R0 ", " RT_R1 ", " RT_R2 ", " RT_R3 ", " RT_R4 ", " RT_R5 ", " RT_R6 ", " RT_R7, 64, 65, 66,
                 67, 68, 69)
RT_GROUP_PRODUCT(192,
                 RT_R0 ", " RT_R1 ", " RT_R2 ", " RT_R3 ", " RT_R4 ", " RT_R5 ", " RT_R6 ", " RT_R7 ", " RT_R8
                       ", " RT_R9 ", " RT_R10 ", " RT_R11,
                 96, 97, 98, 99, 100, 101)
RT_GROUP_PRODUCT(256,
                 RT_R0 ", " RT_R1 ", " RT_R2 ", " RT_R3 ", " RT_R4 ", " RT_R5 ", " RT_R6 ", " RT_R7 ", " RT_R8
                       ", " RT_R9 ", " RT_R10 ", " RT_R11 ", " RT_R12 ", " RT_R13 ", " RT_R14 ", " RT_R15,
                 128, 129, 130, 131, 132, 133)
#undef RT_R0
#undef RT_R1
#undef RT_R2
#undef RT_R3
#undef RT_R4
#undef RT_R5
#undef RT_R6
#undef RT_R7
#undef RT_R8
#undef RT_R9
#undef RT_R10
#undef RT_R11
#undef RT_R12
#undef RT_R13
#undef RT_R14
#undef RT_R15
#undef RT_D
#undef RT_D16
#undef RT_D32
#undef RT_D64
#undef RT_D96
#undef RT_D128
#undef RT_D192
#undef RT_D256
#undef RT_GROUP_PRODUCT
#undef RT_GROUP_INSTRUCTION
#undef RT_GROUP_SHARED

RT_DEVICE void multiply_begin() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}

RT_DEVICE void multiply_end() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}

template <int N>
RT_DEVICE void multiply_tf32(float (&d)[N / 2], const uint32_t (&a)[4], OperandPlace b, int pitch, bool add) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  GroupProduct<N>::tf32(d, a, group_operand(b, pitch), add);
#else
  static_assert(N == 0, "warp groups multiply on sm_90a: compile with -arch=sm_90a");
#endif
}
template <int N>
RT_DEVICE void multiply_f16(float (&d)[N / 2], const uint32_t (&a)[4], OperandPlace b, int pitch, bool add) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  GroupProduct<N>::f16(d, a, group_operand(b, pitch), add);
#else
  static_assert(N == 0, "warp groups multiply on sm_90a: compile with -arch=sm_90a");
#endif
}
template <int N>
RT_DEVICE void multiply_bf16(float (&d)[N / 2], const uint32_t (&a)[4], OperandPlace b, int pitch, bool add) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  GroupProduct<N>::bf16(d, a, group_operand(b, pitch), add);
#else
  static_assert(N == 0, "warp groups multiply on sm_90a: compile with -arch=sm_90a");
#endif
}

template <int N, bool SignedA, bool SignedB>
RT_DEVICE void multiply_int8(int32_t (&d)[N / 2], const uint32_t (&a)[4], OperandPlace b, int pitch, bool add) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  if constexpr (SignedA && SignedB) {
    GroupProduct<N>::s8s8(d, a, group_operand(b, pitch), add);
  } else if constexpr (SignedA) {
    GroupProduct<N>::s8u8(d, a, group_operand(b, pitch), add);
  } else if constexpr (SignedB) {
    GroupProduct<N>::u8s8(d, a, group_operand(b, pitch), add);
  } else {
    GroupProduct<N>::u8u8(d, a, group_operand(b, pitch), add);
  }
#else
  static_assert(N == 0, "warp groups multiply on sm_90a: compile with -arch=sm_90a");
#endif
}

template <int N>
RT_DEVICE void multiply_tf32_swizzled(float (&d)[N / 2], OperandPlace a, OperandPlace b, int pitch, bool add) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  GroupProduct<N>::tf32_shared(d, swizzled_operand(a), group_operand(b, pitch), add);
#else
  static_assert(N == 0, "warp groups multiply on sm_90a: compile with -arch=sm_90a");
#endif
}
template <int N>
RT_DEVICE void multiply_f16_swizzled(float (&d)[N / 2], OperandPlace a, OperandPlace b, int pitch, bool add) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  GroupProduct<N>::f16_shared(d, swizzled_operand(a), group_operand(b, pitch), add);
#else
  static_assert(N == 0, "warp groups multiply on sm_90a: compile with -arch=sm_90a");
#endif
}
template <int N>
RT_DEVICE void multiply_bf16_swizzled(float (&d)[N / 2], OperandPlace a, OperandPlace b, int pitch, bool add) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  GroupProduct<N>::bf16_shared(d, swizzled_operand(a), group_operand(b, pitch), add);
#else
  static_assert(N == 0, "warp groups multiply on sm_90a: compile with -arch=sm_90a");
#endif
}

template <int N, bool SignedA, bool SignedB>
RT_DEVICE void multiply_int8_swizzled(int32_t (&d)[N / 2], OperandPlace a, OperandPlace b, int pitch, bool add) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  const uint64_t left = swizzled_operand(a), right = group_operand(b, pitch);
  if constexpr (SignedA && SignedB) {
    GroupProduct<N>::s8s8_shared(d, left, right, add);
  } else if constexpr (SignedA) {
    GroupProduct<N>::s8u8_shared(d, left, right, add);
  } else if constexpr (SignedB) {
    GroupProduct<N>::u8s8_shared(d, left, right, add);
  } else {
    GroupProduct<N>::u8u8_shared(d, left, right, add);
  }
#else
  static_assert(N == 0, "warp groups multiply on sm_90a: compile with -arch=sm_90a");
#endif
}

template <int N>
RT_DEVICE void multiply_f16_columns(float (&d)[N / 2], OperandPlace a, OperandPlace b, bool add) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  GroupProduct<N>::f16_shared(d, swizzled_operand(a), swizzled_operand(b), add);
#else
  static_assert(N == 0, "warp groups multiply on sm_90a: compile with -arch=sm_90a");
#endif
}
template <int N>
RT_DEVICE void multiply_f16_depths(float (&d)[N / 2], const uint32_t (&a)[4], OperandPlace b, int pitch, bool add) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  GroupProduct<N>::f16_depths(d, a, swizzled_operand(b, pitch), add);
#else
  static_assert(N == 0, "warp groups multiply on sm_90a: compile with -arch=sm_90a");
#endif
}
template <int N>
RT_DEVICE void multiply_bf16_columns(float (&d)[N / 2], OperandPlace a, OperandPlace b, bool add) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  GroupProduct<N>::bf16_shared(d, swizzled_operand(a), swizzled_operand(b), add);
#else
  static_assert(N == 0, "warp groups multiply on sm_90a: compile with -arch=sm_90a");
#endif
}
template <int N>
RT_DEVICE void multiply_bf16_depths(float (&d)[N / 2], const uint32_t (&a)[4], OperandPlace b, int pitch, bool add) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  GroupProduct<N>::bf16_depths(d, a, swizzled_operand(b, pitch), add);
#else
  static_assert(N == 0, "warp groups multiply on sm_90a: compile with -arch=sm_90a");
#endif
}

RT_DEVICE void operands_written() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

template <int Groups>
RT_DEVICE void multiplied_but() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Groups) : "memory");
#endif
}

// The empty statements keep the compiler from reading d before the wait.
RT_DEVICE void keep_behind(float& x) { asm volatile("" : "+f"(x)::"memory"); }
RT_DEVICE void keep_behind(int32_t& x) { asm volatile("" : "+r"(x)::"memory"); }

template <int Groups, int M>
RT_DEVICE void multiplied_but(float (&d)[M]) {
  multiplied_but<Groups>();
  RT_UNROLL
  for (int i = 0; i < M; ++i) keep_behind(d[i]);
}

template <class Sum, int M>
RT_DEVICE void multiplied(Sum (&d)[M]) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#endif
  RT_UNROLL
  for (int i = 0; i < M; ++i) keep_behind(d[i]);
}

}  // namespace rt::detail
