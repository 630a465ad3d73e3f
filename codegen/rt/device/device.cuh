// The interface that rKernels are written against. It has the same functions on every back end, so an rKernel is
// compiled by nvcc for GPUs, and by any C++20 compiler for the emulator, in which an OS thread is a thread block and a
// fibre a CUDA thread.
#pragma once

#include "rt/device/backend.cuh"
#include "rt/device/gates.cuh"
#include "rt/device/stream.cuh"
#include "rt/device/task.cuh"
#include "rt/device/types.cuh"

namespace rt {

// a·b + c, for an element's place from a coordinate and a stride. Both fit 32 bits, the place does not.
RT_DEVICE int64_t mad_wide(int a, int b, int64_t c) { return detail::mad_wide(a, b, c); }

// 2^x, off by a few units in the last place at most. What is below the normal numbers may be 0.
RT_DEVICE float exp2(float x) { return detail::exp2(x); }

// The larger of two numbers, or a NaN if one of them is.
RT_DEVICE float larger(float a, float b) { return detail::larger(a, b); }
// The larger ones of two pairs of numbers of 16 bits without a sign, which lie in a word each.
RT_DEVICE uint32_t larger_pairs(uint32_t a, uint32_t b) { return detail::larger_pairs(a, b); }

// x, which the compiler must compute here. Otherwise it may move the computation under a branch where x is used, or
// repeat it in a loop. Values of types other than int, int64_t and float are returned as they are.
template <class T>
RT_DEVICE T settled(T x) {
  return x;
}
RT_DEVICE int settled(int x) { return detail::settled(x); }
RT_DEVICE float settled(float x) { return detail::settled(x); }
RT_DEVICE int64_t settled(int64_t x) { return detail::settled(x); }
// The same of a place in shared memory.
RT_DEVICE char* settled_shared(char* p) { return detail::settled_shared(p); }

// An address in global memory as a number, and back.
RT_DEVICE int64_t place_of(const void* p) { return static_cast<int64_t>(detail::global_place(p)); }
template <class T>
RT_DEVICE T* at_place(int64_t place) {
  return static_cast<T*>(detail::global_at(static_cast<uint64_t>(place)));
}
// p, which points to global memory, and which the compiler must compute here. What an rTask computes before it waits
// for its inputs costs nothing, but compilers compute it where it is used.
template <class T>
RT_DEVICE T* settled_place(T* p) {
  return at_place<T>(settled(place_of(p)));
}

// Reads weights, and nothing else: what the program itself writes may be stale on this path, the read-only cache.
template <class T>
RT_DEVICE T ld_const(const T* p) {
  static_assert(sizeof(T) <= 16, "ld_const loads at most 16 bytes");
  return detail::ld_const(p);
}

// *p if ok, otherwise zero; then p is not read. Without a branch, so that several such loads are on their way together.
// T has 1, 2, 4, 8 or 16 bytes.
template <class T>
RT_DEVICE T load_or_zero(const T* p, bool ok) {
  static_assert(sizeof(T) <= 16 && alignof(T) == sizeof(T));
  return detail::load_or_zero(p, ok);
}

// Exchanges in a warp. All 32 lanes call them together.
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

// Asynchronous copies of a thread into shared memory. cp_async_commit ends a group of copies; cp_async_wait<N> waits
// for all groups but the N latest. After that the thread itself can read them, and other threads after the next
// barrier.
RT_DEVICE void cp_async16(void* smem, const void* gmem) { detail::cp_async<16>(smem, gmem); }
RT_DEVICE void cp_async8(void* smem, const void* gmem) { detail::cp_async<8>(smem, gmem); }
RT_DEVICE void cp_async4(void* smem, const void* gmem) { detail::cp_async<4>(smem, gmem); }
// The first copy if ok; otherwise the shared memory becomes zero, and gmem is not read. Without a branch. 4 or 16
// bytes.
template <int Bytes>
RT_DEVICE void cp_async_or_zero(void* smem, const void* gmem, bool ok) {
  detail::cp_async_or_zero<Bytes>(smem, gmem, ok);
}
RT_DEVICE void cp_async_commit() { detail::cp_async_commit(); }
template <int N>
RT_DEVICE void cp_async_wait() {
  detail::cp_async_wait<N>();
}

// Begins to bring so many bytes of weights to L2: a hint. Both numbers are multiples of 16.
RT_DEVICE void prefetch(const void* gmem, uint32_t bytes) { detail::prefetch(gmem, bytes); }

}  // namespace rt
