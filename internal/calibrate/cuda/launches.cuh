// How long it takes to launch work: one launch after the other in a stream, and dependent nodes of a CUDA graph.
#pragma once

#include "lab.cuh"
#include "rt/device/device.cuh"

namespace launches {

using lab::kThreads;
using lab::Lab;
using lab::Samples;

constexpr int kLaunches = 200;
constexpr int kNodes = 500;

__global__ void nothing(int* never) {
  if (threadIdx.x > kThreads) *never = 1;
}

__global__ void nothing_dependent(int* never) {
  rt::detail::allow_next_launch();
  rt::detail::wait_for_launches_before();
  if (threadIdx.x > kThreads) *never = 1;
}

template <cudaLaunchAttributeID Kind>
void put(Lab& l, int blocks, int* never) {
  auto* kernel = Kind == cudaLaunchAttributeProgrammaticStreamSerialization ? nothing_dependent : nothing;
  l.launch(kernel, blocks, kThreads, 0, Kind, 1, never);
}

// Launches one after the other. The time of one is what the host needs to launch it or what the device needs to start
// it, whichever is longer.
template <cudaLaunchAttributeID Kind>
Samples in_stream(Lab& l) {
  int* never = l.zeroed<int>(1);
  return l.times(
      kLaunches,
      [&] {
        for (int i = 0; i < kLaunches; ++i) put<Kind>(l, l.sms(), never);
      },
      true);
}

// A CUDA graph that is a chain of kernel nodes with Blocks blocks each; 0 stands for one block on every SM.
template <cudaLaunchAttributeID Kind, int Blocks>
Samples in_graph(Lab& l) {
  int* never = l.zeroed<int>(1);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  LAB_CHECK(cudaStreamBeginCapture(l.stream(), cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < kNodes; ++i) put<Kind>(l, Blocks == 0 ? l.sms() : Blocks, never);
  LAB_CHECK(cudaStreamEndCapture(l.stream(), &graph));
  LAB_CHECK(cudaGraphInstantiate(&exec, graph, 0));
  LAB_CHECK(cudaGraphUpload(exec, l.stream()));
  Samples s = l.times(kNodes, [&] { LAB_CHECK(cudaGraphLaunch(exec, l.stream())); });
  LAB_CHECK(cudaGraphExecDestroy(exec));
  LAB_CHECK(cudaGraphDestroy(graph));
  return s;
}

constexpr auto kPlain = cudaLaunchAttributeIgnore;
constexpr auto kCooperative = cudaLaunchAttributeCooperative;
constexpr auto kOverlapping = cudaLaunchAttributeProgrammaticStreamSerialization;

}  // namespace launches
