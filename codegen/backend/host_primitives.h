// What a back end defines for the host's side, in namespace rt::dev. The expressions below are a check that every
// program makes when it is compiled; the comments are the contracts. All functions may be called from any thread, and
// throw rt::Error with a status of the C interface. "The device" is the one that a living DeviceScope has made current.
//
// Also defined: the macro RT_ENGINE, a string literal that says in NAME_build_info what the library runs on.
#pragma once

#include <concepts>
#include <cstddef>
#include <string>

#include "rt/host/model.h"

namespace rt::dev {

// Devices and memory.
static_assert(requires(int device, size_t n, size_t pitch, void* p, const void* q, Stream s) {
  // The number of the device that the calling thread uses.
  { current_device() } -> std::same_as<int>;
  // Makes a device current while it lives.
  DeviceScope(device);
  // The device's name, for messages.
  { describe(device) } -> std::same_as<std::string>;
  // Device memory, aligned to 256 bytes; release takes null pointers, too, and does not throw.
  { allocate(n) } -> std::same_as<void*>;
  { release(p) } -> std::same_as<void>;
  // Copies that have happened when the function returns: to the device, from the device.
  { upload(p, q, n) } -> std::same_as<void>;
  { download(p, q, n) } -> std::same_as<void>;
  // Copies in the order of a stream. Host memory must stay until the stream has been waited for.
  { upload_async(p, q, n, s) } -> std::same_as<void>;
  { download_async(p, q, n, s) } -> std::same_as<void>;
  // The same for n rows of bytes, from one of which to the next it is a pitch there and another here. Both sides may be
  // host or device memory.
  { copy_rows_async(p, pitch, q, pitch, n, n, s) } -> std::same_as<void>;
  // Fills device memory with zeros.
  { clear(p, n) } -> std::same_as<void>;
  // Makes the tensor map of a matrix, in host memory of kTensorMapBytes that is aligned to 64 bytes. The first pointer
  // is the device address of the matrix's first element. Throws where the driver knows no tensor maps.
  { make_tensor_map(TiledMatrix{}, p, p) } -> std::same_as<void>;
  // Makes device memory undefined, where a back end checks programs; else nothing.
  { poison(p, n) } -> std::same_as<void>;
  // After a launch failed: makes flags or words, of so many bytes, fit for another launch, where the device is still of
  // use.
  { after_failure(p, n) } -> std::same_as<void>;
});

// Streams, events and graphs. What is put on one stream happens in that order.
static_assert(requires(Stream s, Fence f, Graph g, void (*put)(), int count, Report* r, const uint8_t* c) {
  { make_stream() } -> std::same_as<Stream>;
  // A stream that only its context uses; it can also be made while the caller captures another one.
  { make_side_stream() } -> std::same_as<Stream>;
  { drop_stream(s) } -> std::same_as<void>;
  // Waits for all that is on the stream. Failures of launches surface here.
  { wait_for(s) } -> std::same_as<void>;
  // Whether the stream records what is put on it instead of carrying it out.
  { capturing(s) } -> std::same_as<bool>;
  // An event: set marks a place in a stream; join makes another stream wait for the latest mark, and wait the host.
  f.set(s);
  f.join(s);
  f.wait();
  // The launches that a function puts on a stream, recorded once, launched as one. Only where kHasGraphs.
  Graph(s, put);
  g.launch(s);
  { kHasGraphs } -> std::convertible_to<bool>;
  // The same, launched as one that carries them out once, and then those of another function again and again: between
  // two times, and behind the last one, it does what a Turn says (device/types.cuh). Only where kHasLoops. Throws where
  // the device cannot do so.
  Loop(s, put, put, Turn{});
  { kHasLoops } -> std::convertible_to<bool>;
  // What a function puts on the second stream becomes a part of what is put on the first: launches that are carried out
  // only if, when the first stream comes there, the bool at c is not what the last argument but one says. A stream that
  // is recorded takes such branches where kHasBranches, another one where branches_at_once(). Throws where the device
  // cannot do so.
  put_branch(s, s, c, true, put);
  { kHasBranches } -> std::convertible_to<bool>;
  { branches_at_once() } -> std::same_as<bool>;
  // Notes that device code writes and the host can read, also after a launch has failed.
  { make_reports(count) } -> std::same_as<Report*>;
  { drop_reports(r) } -> std::same_as<void>;
});

// Launches of a Program (exec/executor.cuh), with the arguments A of its kernel.
template <class Program, class A>
concept Launches = requires(const LaunchRow& row, LaunchKind kind, const A& args, Stream s, const Options& o, int n) {
  // How many of the program's blocks the device can hold at once, and how it starts them. Throws where its code does
  // not run.
  { residency<Program>(n, o) } -> std::same_as<Residency>;
  // How many clusters of n blocks the device can hold at once; 0 where it has no clusters.
  { resident_clusters<Program>(n, n, o) } -> std::same_as<int>;
  // Puts one launch on a stream, in the order that its kind says (LaunchKind).
  { launch<Program>(row, kind, args, s, o) } -> std::same_as<void>;
  // While a Together lives, launches, marks and joins of this thread may be put off until run(s), in any order that
  // streams and events allow. All other streams have been joined with s then.
  Together(o).run(s);
};

}  // namespace rt::dev
