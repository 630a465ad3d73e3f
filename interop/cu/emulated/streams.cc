// Streams, events and graphs of the emulated driver.
#include "driver.h"

using emulated::current;
using emulated::Device;
using emulated::Event;
using emulated::Graph;
using emulated::hold;
using emulated::Stream;
using emulated::Work;

extern "C" {

CUresult cuStreamCreate(CUstream* s, unsigned flags) {
  if (!current) return CUDA_ERROR_INVALID_CONTEXT;
  const auto held = hold();
  *s = reinterpret_cast<CUstream>(Device::one().make_stream((flags & CU_STREAM_NON_BLOCKING) == 0));
  return CUDA_SUCCESS;
}
CUresult cuStreamDestroy_v2(CUstream s) {
  const auto held = hold();
  Stream* stream = Device::one().stream(s);
  return stream && s ? Device::one().drop(stream) : CUDA_ERROR_INVALID_HANDLE;
}
CUresult cuStreamSynchronize(CUstream s) {
  const auto held = hold();
  Stream* stream = Device::one().stream(s);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return s ? Device::one().finish(stream) : Device::one().finish_blocking();
}
CUresult cuStreamQuery(CUstream s) {
  const auto held = hold();
  Stream* stream = Device::one().stream(s);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  return stream->queue.empty() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned) {
  const auto held = hold();
  Event* event = reinterpret_cast<Event*>(e);
  Stream* stream = Device::one().stream(s);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  if (event->capture) {  // the stream is drawn into the capture
    stream->capture = event->capture;
    return CUDA_SUCCESS;
  }
  if (stream->capture) return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  const uint64_t wanted = event->recorded;
  return Device::one().put(stream, Work{[=] { return event->reached >= wanted; }, [] { return CUDA_SUCCESS; }});
}
CUresult cuStreamIsCapturing(CUstream s, CUstreamCaptureStatus* status) {
  const auto held = hold();
  Stream* stream = Device::one().stream(s);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  *status = stream->capture ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
CUresult cuStreamBeginCapture_v2(CUstream s, CUstreamCaptureMode) {
  const auto held = hold();
  Stream* stream = Device::one().stream(s);
  if (!stream || !s) return CUDA_ERROR_INVALID_HANDLE;
  stream->capture = &(new Graph)->work;
  return CUDA_SUCCESS;
}
CUresult cuStreamEndCapture(CUstream s, CUgraph* graph) {
  const auto held = hold();
  std::vector<Work>* work = Device::one().stream(s)->capture;
  if (!work) return CUDA_ERROR_ILLEGAL_STATE;
  Device::one().end_capture(work);
  *graph = reinterpret_cast<CUgraph>(work);  // the first member of a Graph
  return CUDA_SUCCESS;
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* made, CUgraph graph, unsigned long long) {
  *made = reinterpret_cast<CUgraphExec>(new Graph(*reinterpret_cast<Graph*>(graph)));
  return CUDA_SUCCESS;
}
CUresult cuGraphLaunch(CUgraphExec graph, CUstream s) {
  const auto held = hold();
  Stream* stream = Device::one().stream(s);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  for (const Work& w : reinterpret_cast<Graph*>(graph)->work) {
    const CUresult r = Device::one().put(stream, w);
    if (r != CUDA_SUCCESS) return r;
  }
  return CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph graph) {
  delete reinterpret_cast<Graph*>(graph);
  return CUDA_SUCCESS;
}
CUresult cuGraphExecDestroy(CUgraphExec graph) {
  const auto held = hold();
  const CUresult r = Device::one().finish_all();
  delete reinterpret_cast<Graph*>(graph);
  return r;
}

CUresult cuEventCreate(CUevent* e, unsigned) {
  *e = reinterpret_cast<CUevent>(new Event);
  return CUDA_SUCCESS;
}
CUresult cuEventDestroy_v2(CUevent e) {
  const auto held = hold();
  const CUresult r = Device::one().finish_all();
  delete reinterpret_cast<Event*>(e);
  return r;
}
CUresult cuEventRecord(CUevent e, CUstream s) {
  const auto held = hold();
  Event* event = reinterpret_cast<Event*>(e);
  Stream* stream = Device::one().stream(s);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  event->capture = stream->capture;
  if (stream->capture) return CUDA_SUCCESS;
  const uint64_t number = ++event->recorded;
  return Device::one().put(stream, Work{[] { return true; },
                                        [=] {
                                          event->reached = number;
                                          return CUDA_SUCCESS;
                                        }});
}
CUresult cuEventSynchronize(CUevent e) {
  const auto held = hold();
  Event* event = reinterpret_cast<Event*>(e);
  return Device::one().until([event] { return event->reached >= event->recorded; });
}
CUresult cuEventQuery(CUevent e) {
  const auto held = hold();
  Event* event = reinterpret_cast<Event*>(e);
  return event->reached >= event->recorded ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

}  // extern "C"
