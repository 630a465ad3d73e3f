// What clusters that share operands by multicast gain in whole products: C = A·B of float16 by warp groups whose
// operands come as boxes, as gemm_strip makes them, in clusters of CM×CN tiles below and beside each other. A block
// brings a part of the rows for the tiles beside its own, and a part of the columns for those above and below.
//
//   nvcc -std=c++20 -O3 -gencode arch=compute_90a,code=sm_90a -I../../codegen -I../../internal/calibrate/cuda \
//     pairs.cu -lcuda
//
// It writes JSON to standard output, one object a line: the shape, the tile, the cluster, what multiprocessors take in,
// the shortest and the median time of one launch among twenty, in microseconds, and the largest error.
#include <cuda.h>
#include <cuda_fp16.h>

#include <cmath>

#include "lab.cuh"
#include "rt/device/mma.cuh"

namespace {

using lab::Lab;

constexpr int kDeep = 64;  // halves of a box, which is 128 bytes wide

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
__device__ uint32_t shared(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ void wait(uint64_t* bar, uint32_t phase) {
  uint32_t done = 0;
  while (done == 0) {
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                 : "=r"(done)
                 : "r"(shared(bar)), "r"(phase & 1)
                 : "memory");
  }
}

// What was read was read by matrix instructions that have ended, so nothing must become visible: releasing for the
// cluster would wait for all of the warp's accesses to memory.
__device__ void arrive_at(uint64_t* bar, uint32_t rank) {
  asm volatile(
      "{.reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; "
      "mbarrier.arrive.shared::cluster.b64 _, [there];}" ::"r"(shared(bar)),
      "r"(rank)
      : "memory");
}

// Sends for a box: for this block alone, or for the blocks of the mask.
template <bool Shared>
__device__ void fill(char* to, uint64_t* bar, const CUtensorMap* map, int column, int row, uint16_t mask) {
  if constexpr (Shared) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
        "[%1, "
        "{%2, %3}], [%4], %5;" ::"r"(shared(to)),
        "l"(map), "r"(column), "r"(row), "r"(shared(bar)), "h"(mask)
        : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
        "[%4];" ::"r"(shared(to)),
        "l"(map), "r"(column), "r"(row), "r"(shared(bar))
        : "memory");
  }
}

__device__ void expect(uint64_t* bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared(bar)), "r"(bytes) : "memory");
}
#endif

template <int BM, int BN, int ST>
constexpr int kSharedBytes = 1024 + ST * (128 * (BM + BN) + 16);
template <int BM>
constexpr int kThreads = 2 * BM + 64;  // a warp group for 64 rows, and a warp that sends for each operand

template <int BM, int BN, int ST, int CM, int CN>
__global__ void __launch_bounds__(kThreads<BM>)
    product(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, __half* out, int M, int N,
            int tiles_m, int tiles_k) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  constexpr int kRows = BM, kWarps = BM / 16, kBytesA = 128 * kRows, kBytesB = 128 * BN, kStage = kBytesA + kBytesB;
  constexpr bool kCluster = CM * CN > 1;
  extern __shared__ char memory[];
  char* stages = memory + (1024 - shared(memory) % 1024) % 1024;
  uint64_t* full = reinterpret_cast<uint64_t*>(stages + ST * kStage);
  uint64_t* empty = full + ST;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const uint32_t rank = blockIdx.x % (CM * CN), cm = rank % CM, cn = rank / CM;
  const int cluster = blockIdx.x / (CM * CN), high = tiles_m / CM;
  const int m = cluster % high * CM + cm, n = cluster / high * CN + cn;
  if (threadIdx.x == 0) {
    for (int s = 0; s < ST; ++s) {
      asm volatile("mbarrier.init.shared.b64 [%0], 2;" ::"r"(shared(full + s)) : "memory");
      asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared(empty + s)), "n"(kWarps * (CM + CN - 1))
                   : "memory");
    }
    asm volatile("fence.mbarrier_init.release.cluster;\n\tfence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  if constexpr (kCluster) {
    asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
  }
  if (warp >= kWarps) {
    if (lane == 0) {
      const bool columns = warp > kWarps;
      uint16_t mask = 0;
      for (int i = 0; i < (columns ? CM : CN); ++i) mask |= 1 << (columns ? i + CM * cn : cm + CM * i);
      for (int s = 0; s < tiles_k; ++s) {
        const int at = s % ST;
        if (s >= ST) wait(empty + at, s / ST - 1);
        char* stage = stages + at * kStage;
        if (columns) {
          constexpr int kPart = BN / CM;
          fill<(CM > 1)>(stage + kBytesA + cm * kPart * 128, full + at, &b, 0, (n * tiles_k + s) * BN + cm * kPart,
                         mask);
          expect(full + at, kBytesB);
        } else {
          constexpr int kPart = kRows / CN;
          fill<(CN > 1)>(stage + cn * kPart * 128, full + at, &a, s * kDeep, m * kRows + cn * kPart, mask);
          expect(full + at, kBytesA);
        }
      }
    }
  } else {
    const int group = __shfl_sync(~0u, warp / 4, 0);
    float acc[BN / 2] = {};
    const auto give_back = [&](int s) {
      __syncwarp();
      if constexpr (!kCluster) {
        if (lane == 0) asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(shared(empty + s % ST)) : "memory");
      } else if (lane < CM + CN - 1) {  // to all blocks that send to this one
        arrive_at(empty + s % ST, lane < CM ? lane + CM * cn : cm + CM * ((cn + 1 + lane - CM) % CN));
      }
    };
    for (int s = 0; s < tiles_k; ++s) {
      const char* stage = stages + s % ST * kStage;
      const rt::OperandPlace rows = rt::operand_in_warp(stage + group * 64 * 128),
                             columns = rt::operand_in_warp(stage + kBytesA);
      wait(full + s % ST, s / ST);
      rt::multiply_begin();
#pragma unroll
      for (int k = 0; k < kDeep / 16; ++k) {
        rt::multiply_f16_swizzled<BN>(acc, rows + 32 * k, columns + k * (2 * 16 * BN), 16 * BN, true);
      }
      rt::multiply_end();
      rt::multiplied_but<1>();
      if (s > 0) give_back(s - 1);
    }
    rt::multiplied(acc);
    give_back(tiles_k - 1);
    const int row = m * kRows + warp * 16 + lane / 4, column = n * BN + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < BN / 8; ++i) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int r = row + 8 * h, c = column + 8 * i;
        if (r < M && c < N) {
          *reinterpret_cast<__half2*>(out + int64_t{r} * N + c) =
              __floats2half2_rn(acc[4 * i + 2 * h], acc[4 * i + 2 * h + 1]);
        }
      }
    }
  }
  // A block that ended could not be given back to, and nobody could send to it.
  if constexpr (kCluster) {
    asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
  }
#endif
}

__global__ void randomise(__half* p, int64_t count, uint32_t seed) {
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count; i += int64_t{gridDim.x} * blockDim.x) {
    uint32_t x = static_cast<uint32_t>(i) * 2654435761u + seed;
    x ^= x >> 15, x *= 2246822519u, x ^= x >> 13;
    p[i] = __float2half(static_cast<float>(x % 2048) / 1024 - 1);
  }
}

// Packs B[k][n] as stages of columns: [n / BN][k / 64][k % 64 / 8][n % BN][k % 8].
__global__ void pack(const __half* b, __half* packed, int K, int N, int BN) {
  const int64_t count = int64_t{K} * ((N + BN - 1) / BN * BN);
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count; i += int64_t{gridDim.x} * blockDim.x) {
    int64_t rest = i;
    const int low = rest % 8, column = rest / 8 % BN;
    rest /= 8 * BN;
    const int plane = rest % 8, stage = rest / 8 % (K / kDeep), tile = rest / 8 / (K / kDeep);
    const int n = tile * BN + column, k = stage * kDeep + plane * 8 + low;
    packed[i] = n < N ? b[int64_t{k} * N + n] : __float2half(0);
  }
}

__global__ void compare(const __half* a, const __half* b, const __half* c, int M, int K, int N, float* worst) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < M * N; i += gridDim.x * blockDim.x) {
    float sum = 0;
    for (int k = 0; k < K; ++k)
      sum += __half2float(a[int64_t{i / N} * K + k]) * __half2float(b[int64_t{k} * N + i % N]);
    const float apart = fabsf(sum - __half2float(c[i]));
    atomicMax(reinterpret_cast<int*>(worst), __float_as_int(apart));
  }
}

struct Problem {
  int M, K, N;
  __half *a, *b, *packed, *c;
  float* worst;
};

CUtensorMap map_of(void* p, int rows, int width, int box, bool swizzled) {
  CUtensorMap map;
  const cuuint64_t dims[2] = {static_cast<cuuint64_t>(width), static_cast<cuuint64_t>(rows)};
  const cuuint64_t pitch[1] = {static_cast<cuuint64_t>(width) * 2};
  const cuuint32_t boxes[2] = {kDeep, static_cast<cuuint32_t>(box)}, steps[2] = {1, 1};
  const CUresult r = cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, p, dims, pitch, boxes, steps,
                                            CU_TENSOR_MAP_INTERLEAVE_NONE,
                                            swizzled ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE,
                                            CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (r != CUDA_SUCCESS) std::fprintf(stderr, "cuTensorMapEncodeTiled: %d\n", static_cast<int>(r)), std::exit(1);
  return map;
}

template <int BM, int BN, int ST, int CM, int CN>
void measure(Lab& lab, const Problem& p) {
  constexpr int kRows = BM;
  const int tiles_m = (p.M + kRows - 1) / kRows, tiles_n = (p.N + BN - 1) / BN, tiles_k = p.K / kDeep;
  if (tiles_m % CM != 0 || tiles_n % CN != 0 || BN / CM % 8 != 0) return;
  pack<<<1024, 256, 0, lab.stream()>>>(p.b, p.packed, p.K, p.N, BN);
  const CUtensorMap a = map_of(p.a, p.M, p.K, kRows / CN, true);
  const CUtensorMap b = map_of(p.packed, tiles_n * tiles_k * BN, kDeep, BN / CM, false);
  const auto kernel = product<BM, BN, ST, CM, CN>;
  LAB_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes<BM, BN, ST>));
  cudaLaunchAttribute cluster;
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {CM * CN, 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = tiles_m * tiles_n;
  config.blockDim = kThreads<BM>;
  config.dynamicSmemBytes = kSharedBytes<BM, BN, ST>;
  config.stream = lab.stream();
  config.attrs = &cluster;
  config.numAttrs = CM * CN > 1;
  constexpr int kLaunches = 20;
  lab::Samples times = lab.times(1000.0 * kLaunches, [&] {
    for (int i = 0; i < kLaunches; ++i) {
      LAB_CHECK(cudaLaunchKernelEx(&config, kernel, a, b, p.c, p.M, p.N, tiles_m, tiles_k));
    }
  });
  std::sort(times.begin(), times.end());
  LAB_CHECK(cudaMemsetAsync(p.worst, 0, sizeof(float), lab.stream()));
  compare<<<4096, 256, 0, lab.stream()>>>(p.a, p.b, p.c, p.M, p.K, p.N, p.worst);
  float worst;
  LAB_CHECK(cudaMemcpyAsync(&worst, p.worst, sizeof worst, cudaMemcpyDeviceToHost, lab.stream()));
  LAB_CHECK(cudaStreamSynchronize(lab.stream()));
  const double bytes = tiles_m * double(tiles_n) * tiles_k * 128 * (kRows / double(CN) + BN / double(CM));
  std::printf(
      "{\"m\": %d, \"k\": %d, \"n\": %d, \"rows\": %d, \"columns\": %d, \"stages\": %d, \"cluster_m\": %d, "
      "\"cluster_n\": %d, "
      "\"blocks\": %d, "
      "\"read_mb\": %.1f, \"least_us\": %.3f, \"median_us\": %.3f, \"largest_error\": %.4f}\n",
      p.M, p.K, p.N, BM, BN, ST, CM, CN, tiles_m * tiles_n, bytes / 1e6, times.front(), times[times.size() / 2], worst);
  std::fflush(stdout);
}

template <int BM, int BN, int ST>
void clusters(Lab& lab, const Problem& p) {
  measure<BM, BN, ST, 1, 1>(lab, p);
  measure<BM, BN, ST, 2, 1>(lab, p);
  measure<BM, BN, ST, 1, 2>(lab, p);
  measure<BM, BN, ST, 2, 2>(lab, p);
  measure<BM, BN, ST, 4, 1>(lab, p);
}

}  // namespace

int main() {
  Lab lab;
  constexpr int kShapes[][3] = {{1024, 768, 768}, {1024, 768, 2304}, {1024, 768, 3072}, {1024, 3072, 768},
                                {512, 768, 3072}, {1576, 768, 3072}, {4096, 768, 3072}, {4096, 3072, 768}};
  for (const auto& [M, K, N] : kShapes) {
    Problem p = {M, K, N};
    p.a = lab.zeroed<__half>(size_t{1} * M * K), p.b = lab.zeroed<__half>(size_t{1} * K * N);
    p.packed = lab.zeroed<__half>(size_t{1} * K * (N + 256)), p.c = lab.zeroed<__half>(size_t{1} * M * N);
    p.worst = lab.zeroed<float>(1);
    randomise<<<1024, 256, 0, lab.stream()>>>(p.a, int64_t{M} * K, 1);
    randomise<<<1024, 256, 0, lab.stream()>>>(p.b, int64_t{K} * N, 2);
    clusters<64, 64, 8>(lab, p);
    clusters<64, 96, 8>(lab, p);
    clusters<64, 128, 7>(lab, p);
    clusters<128, 64, 6>(lab, p);
    clusters<128, 96, 5>(lab, p);
    clusters<128, 128, 5>(lab, p);
    clusters<128, 192, 4>(lab, p);
    clusters<128, 256, 4>(lab, p);
    for (void* q : {(void*)p.a, (void*)p.b, (void*)p.packed, (void*)p.c, (void*)p.worst}) LAB_CHECK(cudaFree(q));
  }
}
