// Measures the GPU at hand for `rammerc calibrate`. It writes JSON to standard output, one object a line: first the
// device and the number of measurements that follow, then each measurement with all its samples.
#include <chrono>

#include "edges.cuh"
#include "lab.cuh"
#include "launches.cuh"
#include "memory.cuh"
#include "reads.cuh"
#include "steps.cuh"

namespace {

using lab::Lab;
using lab::Samples;

constexpr auto kPlain = launches::kPlain;
constexpr auto kCooperative = launches::kCooperative;
constexpr auto kOverlapping = launches::kOverlapping;

const lab::Measurement kTable[] = {
    {"fp32", "flop/ns", 0, memory::fp32},
    {"hop", "ns", 0, edges::hop},
    {"hop_thread", "ns", 0, edges::hop_thread},
    {"wait_1", "ns", 0, edges::waits<1>},
    {"wait_2", "ns", 0, edges::waits<2>},
    {"wait_4", "ns", 0, edges::waits<4>},
    {"wait_8", "ns", 0, edges::waits<8>},
    {"wait_16", "ns", 0, edges::waits<16>},
    {"wait_32", "ns", 0, edges::waits<32>},
    {"wait_all", "ns", 0, edges::waits<0>},
    {"barrier_steps", "ns", 0, edges::barrier_steps},
    {"barrier_counter", "ns", 0, edges::counters<0>},
    {"barrier_groups", "ns", 0, edges::barrier_groups},
    {"counter_8", "ns", 0, edges::counters<8>},
    {"counter_32", "ns", 0, edges::counters<32>},
    {"tagged_1", "ns", 0, edges::tagged<1>},
    {"tagged_8", "ns", 0, edges::tagged<8>},
    {"tagged_64", "ns", 0, edges::tagged<64>},
    {"tagged_256", "ns", 0, edges::tagged<256>},
    {"cluster_4", "ns", 9, edges::cluster<4>},
    {"cluster_8", "ns", 9, edges::cluster<8>},
    {"launch_cooperative", "ns", 0, launches::in_stream<kCooperative>},
    {"launch_plain", "ns", 0, launches::in_stream<kPlain>},
    {"node_1", "ns", 0, launches::in_graph<kPlain, 1>},
    {"node_all", "ns", 0, launches::in_graph<kPlain, 0>},
    {"node_cooperative", "ns", 0, launches::in_graph<kCooperative, 0>},
    {"pdl_1", "ns", 9, launches::in_graph<kOverlapping, 1>},
    {"pdl_all", "ns", 9, launches::in_graph<kOverlapping, 0>},
    {"step", "ns", 0, steps::program<false>},
    {"step_ring", "ns", 0, steps::program<true>},
    {"ring_values", "ns", 0, memory::ring_step},
    {"latency_l2", "ns", 0, memory::latency_l2},
    {"latency_dram", "ns", 0, memory::latency_dram},
    {"l2_one", "B/ns", 0, reads::l2_of_one},
    {"l2_all", "B/ns", 0, reads::l2_of_all},
    {"dram", "B/ns", 0, reads::dram},
    {"shared", "B/ns", 0, memory::shared},
    {"latency_few", "ns", 0, memory::latency_few},
    {"l2_clock", "B/clock", 0, reads::l2_by_clock},
    {"bulk_one", "B/ns", 9, reads::bulk_of_one},
    {"bulk_all", "B/ns", 9, reads::bulk_of_all},
};

void print_device(const Lab& l, int measurements) {
  const cudaDeviceProp& p = l.props();
  int driver = 0, runtime = 0;
  LAB_CHECK(cudaDriverGetVersion(&driver));
  LAB_CHECK(cudaRuntimeGetVersion(&runtime));
  std::printf("{\"device\": {\"product\": \"%s\", \"major\": %d, \"minor\": %d, \"sms\": %d, \"max_threads\": %d, ",
              p.name, p.major, p.minor, p.multiProcessorCount, p.maxThreadsPerBlock);
  std::printf(
      "\"shared_bytes\": %zu, \"shared_per_block\": %zu, \"registers\": %d, \"l2_bytes\": %d, \"memory_bytes\": %zu, ",
      p.sharedMemPerMultiprocessor, p.sharedMemPerBlockOptin, p.regsPerMultiprocessor, p.l2CacheSize, p.totalGlobalMem);
  std::printf("\"clock_khz\": %d, \"cuda_driver\": %d, \"cuda_runtime\": %d, \"clusters\": {",
              l.attribute(cudaDevAttrClockRate), driver, runtime);
  if (l.hopper()) {
    const size_t shared = p.sharedMemPerBlockOptin - 2048;  // nearly all, as plans with clusters do
    std::printf("\"4\": %d, \"8\": %d, \"16\": %d", edges::fitting_clusters<4>(l, shared),
                edges::fitting_clusters<8>(l, shared), edges::fitting_clusters<16>(l, shared));
  }
  std::printf("}}, \"measurements\": %d}\n", measurements);
  std::fflush(stdout);
}

// Keeps the device busy until its clocks have risen to what they are under load.
void warm_up(Lab& l) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::milliseconds(500);
  while (Clock::now() < end) memory::fp32(l);
}

}  // namespace

int main() {
  Lab l;
  if (!l.attribute(cudaDevAttrCooperativeLaunch)) {
    std::fprintf(stderr, "%s cannot launch a kernel cooperatively\n", l.props().name);
    return 1;
  }
  int count = 0;
  for (const lab::Measurement& m : kTable) count += l.props().major >= m.least_major;
  print_device(l, count);
  warm_up(l);
  for (const lab::Measurement& m : kTable) {
    if (l.props().major < m.least_major) continue;
    lab::print(m, m.run(l));
  }
  return 0;
}
