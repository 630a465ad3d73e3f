// Launches of a CUDA graph that are carried out only if a condition holds: conditional nodes.
#pragma once

#include "backend/cuda/conditional.cuh"

namespace rt::dev {

// Launches that go straight to a stream run in any case.
inline bool branches_at_once() { return false; }

#if CUDART_VERSION >= 12040
constexpr bool kHasBranches = true;

// Tells the graph whether a branch is taken. Every library has this kernel, because its plan says at run time whether
// there are branches; as a template it can be in several sources of one program.
template <class T>
__global__ void take_branch(cudaGraphConditionalHandle taken, const T* condition, bool unless) {
  cudaGraphSetConditional(taken, (*condition != 0) != unless);
}

// Where the recording of a stream stands: the graph, and the nodes that the next one comes after.
struct Recording {
  explicit Recording(Stream s) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
#if CUDART_VERSION >= 13000
    check(cudaStreamGetCaptureInfo(s, &status, nullptr, &graph, &last, nullptr, &count), "cudaStreamGetCaptureInfo");
#else
    check(cudaStreamGetCaptureInfo_v2(s, &status, nullptr, &graph, &last, &count), "cudaStreamGetCaptureInfo");
#endif
    if (status != cudaStreamCaptureStatusActive) throw Error{kInternal, "a branch of a stream that records nothing"};
  }
  cudaGraph_t graph = nullptr;
  const cudaGraphNode_t* last = nullptr;
  size_t count = 0;
};

// Adds a branch behind what the stream has recorded, and returns the graph that is its body.
inline cudaGraph_t add_branch(Stream s, cudaGraphConditionalHandle taken) {
  const Recording at(s);
  cudaGraphNode_t node;
  const cudaGraph_t body = add_conditional(at.graph, at.last, at.count, taken, cudaGraphCondTypeIf, &node);
#if CUDART_VERSION >= 13000
  check(cudaStreamUpdateCaptureDependencies(s, &node, nullptr, 1, cudaStreamSetCaptureDependencies),
        "cudaStreamUpdateCaptureDependencies");
#else
  check(cudaStreamUpdateCaptureDependencies(s, &node, 1, cudaStreamSetCaptureDependencies),
        "cudaStreamUpdateCaptureDependencies");
#endif
  return body;
}

template <class Put>
void put_branch(Stream s, Stream inside, const uint8_t* condition, bool unless, Put put) {
  cudaGraphConditionalHandle taken;
  check(cudaGraphConditionalHandleCreate(&taken, Recording(s).graph, 0, cudaGraphCondAssignDefault),
        "cudaGraphConditionalHandleCreate");
  take_branch<<<1, 1, 0, s>>>(taken, condition, unless);
  check(cudaGetLastError(), "launch");
  record_body(inside, add_branch(s, taken), put);
}
#else
constexpr bool kHasBranches = false;
template <class Put>
void put_branch(Stream, Stream, const uint8_t*, bool, Put) {}
#endif

}  // namespace rt::dev
