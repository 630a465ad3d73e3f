// Measures what emitted programs are compared with: the work of the models of bench/models.py, written by hand and with
// cuBLAS, and the least time that the hardware needs. It writes JSON to standard output, one object a line, like the
// measuring program of `rammerc calibrate`, parts of which it uses:
//
//   nvcc -std=c++20 -O3 -arch=sm_90 -I../../internal/calibrate/cuda -I../../codegen peers.cu -lcublas
//
// Without the header of cuBLAS the rows that need it are left out. Numbers of steps are those of bench/models.py.
#include "clusters.cuh"
#include "edges.cuh"
#include "lab.cuh"
#include "memory.cuh"
#include "nodes.cuh"
#include "products.cuh"
#include "reads.cuh"

namespace {

using lab::Lab;

const lab::Measurement kTable[] = {
    // Steps, per node.
    {"node_sparse_1", "ns", 9, nodes::sparse_step<1>},
    {"node_sparse_8", "ns", 9, nodes::sparse_step<8>},
    {"node_sparse_64", "ns", 9, nodes::sparse_step<64>},
    {"node_sparse_256", "ns", 9, nodes::sparse_step<256>},
    {"node_dense", "ns", 9, nodes::dense_step},
    {"node_group_8", "ns", 9, nodes::group_step},
    // The least time of an edge.
    {"hop", "ns", 0, edges::hop},
    {"hop_thread", "ns", 0, edges::hop_thread},
    {"hop_ring", "ns", 0, edges::waits<1>},
    {"tagged_1", "ns", 0, edges::tagged<1>},
    {"tagged_8", "ns", 0, edges::tagged<8>},
    {"tagged_64", "ns", 0, edges::tagged<64>},
    {"ring_values", "ns", 0, memory::ring_step},
    {"cluster_8", "ns", 9, edges::cluster<8>},
    {"cluster_8_pull", "ns", 9, clusters::step<clusters::Way::kPull>},
    {"cluster_8_push", "ns", 9, clusters::step<clusters::Way::kPush>},
    {"cluster_8_poll", "ns", 9, clusters::step<clusters::Way::kPoll>},
    {"cluster_8_async", "ns", 9, clusters::step<clusters::Way::kAsync>},
    {"cluster_8_async_meet", "ns", 9, clusters::step<clusters::Way::kAsyncMeet>},
    {"cluster_8_bulk", "ns", 9, clusters::step<clusters::Way::kBulk>},
    {"dram", "B/ns", 0, reads::dram},
    // Chains of products, per step. With a deep ring one block fits on an SM, otherwise two.
    {"ring_deep_512", "ns", 9, products::by_ring<512, 64, 12>},
    {"ring_deep_1024", "ns", 9, products::by_ring<1024, 64, 12>},
    {"ring_deep_2048", "ns", 9, products::by_ring<2048, 24, 12>},
    {"ring_deep_4096", "ns", 9, products::by_ring<4096, 12, 12>},
    {"ring_half_2048", "ns", 9, products::by_ring<2048, 24, 6>},
    {"ring_half_4096", "ns", 9, products::by_ring<4096, 12, 6>},
#if HAVE_CUBLAS
    {"cublas_rows_512", "ns", 0, products::by_cublas<512, 64, false>},
    {"cublas_columns_512", "ns", 0, products::by_cublas<512, 64, true>},
    {"cublas_rows_1024", "ns", 0, products::by_cublas<1024, 64, false>},
    {"cublas_columns_1024", "ns", 0, products::by_cublas<1024, 64, true>},
    {"cublas_rows_2048", "ns", 0, products::by_cublas<2048, 24, false>},
    {"cublas_columns_2048", "ns", 0, products::by_cublas<2048, 24, true>},
    {"cublas_rows_4096", "ns", 0, products::by_cublas<4096, 12, false>},
    {"cublas_columns_4096", "ns", 0, products::by_cublas<4096, 12, true>},
#endif
};

}  // namespace

int main() {
  Lab l;
  int count = 0;
  for (const lab::Measurement& m : kTable) count += l.props().major >= m.least_major;
  std::printf("{\"device\": {\"product\": \"%s\", \"sms\": %d}, \"measurements\": %d}\n", l.props().name, l.sms(),
              count);
  for (int i = 0; i < 25; ++i) memory::fp32(l);  // until the device's clocks have risen
  for (const lab::Measurement& m : kTable) {
    if (l.props().major >= m.least_major) lab::print(m, m.run(l));
  }
  return 0;
}
