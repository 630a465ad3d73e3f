// The conditional nodes of CUDA graphs that branches and loops are made of. CUDA has them from 12.4 on.
#pragma once

#include "backend/cuda/host.cuh"

namespace rt::dev {

#if CUDART_VERSION >= 12040
// Adds a conditional node to `graph`, behind its `count` nodes `last`, and returns the graph that is its body.
inline cudaGraph_t add_conditional(cudaGraph_t graph, const cudaGraphNode_t* last, size_t count,
                                   cudaGraphConditionalHandle handle, cudaGraphConditionalNodeType type,
                                   cudaGraphNode_t* node) {
  cudaGraphNodeParams p = {};
  p.type = cudaGraphNodeTypeConditional;
  p.conditional.handle = handle;
  p.conditional.type = type;
  p.conditional.size = 1;
#if CUDART_VERSION >= 13000
  check(cudaGraphAddNode(node, graph, last, nullptr, count, &p), "cudaGraphAddNode");
#else
  check(cudaGraphAddNode(node, graph, last, count, &p), "cudaGraphAddNode");
#endif
  return p.conditional.phGraph_out[0];
}

// Records what `put` gives to stream `s` as the nodes of `body`.
template <class Put>
void record_body(Stream s, cudaGraph_t body, Put put) {
  check(cudaStreamBeginCaptureToGraph(s, body, nullptr, nullptr, 0, cudaStreamCaptureModeThreadLocal),
        "cudaStreamBeginCaptureToGraph");
  cudaGraph_t same = nullptr;
  try {
    put();
  } catch (...) {
    cudaStreamEndCapture(s, &same);
    cudaGetLastError();
    throw;
  }
  check(cudaStreamEndCapture(s, &same), "cudaStreamEndCapture");
}
#endif

}  // namespace rt::dev
