// Launches that a CUDA graph carries out again and again: the runs of a program that repeats.
#pragma once

#include "backend/cuda/conditional.cuh"

namespace rt::dev {

#if CUDART_VERSION >= 12040
constexpr bool kHasLoops = true;

// Behind a run of a program that repeats: one block tells the graph whether another one follows. As a template it is in
// no library that does not use it.
template <class T>
__global__ void turn_to_next_run(cudaGraphConditionalHandle more, T t) {
  const uint32_t again = *t.again, run = again ? *t.run + 1 : 0;
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < t.count; i += blockDim.x) {
    const Patch p = t.patches[i];
    *reinterpret_cast<uint32_t*>(t.args + p.at) = p.first + run * p.step;
  }
  if (threadIdx.x > 0) return;
  *t.run = run;
  cudaGraphSetConditional(more, again);
}

// A CUDA graph of launches that come first, if there are any, and one WHILE node, whose body are other launches and the
// turn. The body is carried out at least once.
class Loop {
 public:
  template <class Begin, class Enqueue>
  Loop(Stream s, Begin begin, Enqueue enqueue, const Turn& turn) {
    cudaGraph_t graph = nullptr;
    check(cudaGraphCreate(&graph, 0), "cudaGraphCreate");
    try {
      const cudaGraphNode_t first = first_of(s, graph, begin);
      cudaGraphConditionalHandle more;
      check(cudaGraphConditionalHandleCreate(&more, graph, 1, cudaGraphCondAssignDefault),
            "cudaGraphConditionalHandleCreate");
      cudaGraphNode_t node;
      record_body(s, add_conditional(graph, &first, first ? 1 : 0, more, cudaGraphCondTypeWhile, &node), [&] {
        enqueue();
        turn_to_next_run<<<1, 128, 0, s>>>(more, turn);
        check(cudaGetLastError(), "launch");
      });
      check(cudaGraphInstantiate(&graph_, graph, 0), "cudaGraphInstantiate");
    } catch (...) {
      cudaGraphDestroy(graph);
      cudaGetLastError();
      throw;
    }
    cudaGraphDestroy(graph);
  }
  ~Loop() { cudaGraphExecDestroy(graph_); }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  void launch(Stream s) { check(cudaGraphLaunch(graph_, s), "launch"); }

 private:
  // The node of a graph that has the launches that come first; null if there are none.
  template <class Begin>
  static cudaGraphNode_t first_of(Stream s, cudaGraph_t graph, Begin begin) {
    cudaGraph_t launches = nullptr;
    cudaGraphNode_t node = nullptr;
    check(cudaGraphCreate(&launches, 0), "cudaGraphCreate");
    try {
      record_body(s, launches, begin);
      size_t count = 0;
      check(cudaGraphGetNodes(launches, nullptr, &count), "cudaGraphGetNodes");
      if (count > 0) {
        check(cudaGraphAddChildGraphNode(&node, graph, nullptr, 0, launches), "cudaGraphAddChildGraphNode");
      }
    } catch (...) {
      cudaGraphDestroy(launches);
      throw;
    }
    cudaGraphDestroy(launches);
    return node;
  }

  cudaGraphExec_t graph_ = nullptr;
};
#else
constexpr bool kHasLoops = false;
struct Loop {
  template <class Begin, class Enqueue>
  Loop(Stream, Begin, Enqueue, const Turn&) {}
  void launch(Stream) {}
};
#endif

}  // namespace rt::dev
