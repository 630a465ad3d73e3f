// A context: one independent instance of the program, with its arena, its barrier flags and its place on
// a device. The C interface is a thin skin over it.
#pragma once

#include <cstdio>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "rt/executor.cuh"
#include "rt/model.h"

#if defined(__CUDACC__)
#include "rt/dev_cuda.cuh"
#else
#include "cudaemu/dev.h"
#endif
#include "rt/streams.h"
#include "rt/trace.h"
#include "rt/weights.h"

namespace rt {

template <class Program>
class Context {
 public:
  Context(const Model& m, const Options& o)
      : model_(m), options_(o), device_(o.device < 0 ? dev::current_device() : o.device), scope_(device_) {
    if (options_.patience_ns == 0) options_.patience_ns = 10'000'000'000;
    choose_mode();
    const std::string path = o.weights_path ? o.weights_path : library_folder() + "/" + m.weights_file;
    weights_ = share_weights(m, path, device_);
    arena_ = DeviceBuffer(m.arena_bytes);
    flags_ = DeviceBuffer(flag_bytes());
    dev::clear(flags_.get(), flag_bytes());
    // No word of another program may look like one of this one's.
    tagged_ = DeviceBuffer(m.tagged_bytes);
    dev::clear(tagged_.get(), m.tagged_bytes);
    trace_.reset(new TraceBuffers(m, persistent_));
    report_.reset(dev::make_report());
    stream_.reset(new OwnStream(dev::make_stream()));
    streams_.reset(new SideStreams(m));
    fence_.reset(new dev::Fence);
    scope_.reset();
  }

  ~Context() {
    try {
      dev::DeviceScope scope(device_);
      dev::wait_for(stream_->get());
      release();
    } catch (const Error&) {
      release();  // a device that failed holds nothing worth waiting for
    }
  }

  // Puts one inference on the stream. Pointers are the device's.
  void run_async(dev::Stream stream, const void* const* in, void* const* out) {
    std::lock_guard<std::mutex> hold(mutex_);
    dev::DeviceScope scope(device_);
    check_pointers(in, out, true);
    explained([&] { enqueue(stream, in, out); });
  }

  void run(const void* const* in, void* const* out, bool on_host) {
    std::lock_guard<std::mutex> hold(mutex_);
    dev::DeviceScope scope(device_);
    check_pointers(in, out, !on_host);
    explained([&] {
      if (on_host) {
        run_staged(in, out);
      } else {
        enqueue(stream_->get(), in, out);
      }
      dev::wait_for(stream_->get());
    });
  }

  // Copies what the latest inference recorded; with a null pointer only tells its size.
  void trace(void* to, size_t* bytes) {
    std::lock_guard<std::mutex> hold(mutex_);
    dev::DeviceScope scope(device_);
    const size_t size = trace_->size();
    if (to && *bytes < size) throw Error{kBadArgument, "the trace takes " + std::to_string(size) + " bytes"};
    *bytes = size;
    if (!to) return;
    fence_->wait();
    trace_->read(static_cast<char*>(to));
  }

  const char* info() const { return info_.c_str(); }

  void set_error(const std::string& text) {
    std::lock_guard<std::mutex> hold(error_mutex_);
    error_ = text;
  }
  // The text stays valid until the next failing call with this context.
  const char* error() const { return error_.c_str(); }

 private:
  using Args = LaunchArgs<Program::kSpaces>;

  // A graph is made when its pointers come for the second time.
  struct Recorded {
    std::vector<const void*> key;
    std::unique_ptr<dev::Graph> graph;
  };
  static constexpr size_t kRecorded = 8;

  struct DropReport {
    void operator()(Report* r) const { dev::drop_report(r); }
  };

  // The constructor's device scope, which must not outlive it.
  class EarlyScope {
   public:
    explicit EarlyScope(int device) : scope_(new dev::DeviceScope(device)) {}
    void reset() { scope_.reset(); }

   private:
    std::unique_ptr<dev::DeviceScope> scope_;
  };

  // The step arrays of all segments, one behind the other.
  size_t flag_bytes() const {
    int lines = 0;
    for (int i = 0; i < model_.segment_count; ++i) {
      const SegmentRow& seg = model_.segments[i];
      if (seg.kind == kRProgram) lines += seg.veus + seg.counters;
    }
    return sizeof(uint64_t) * kFlagStride * static_cast<size_t>(lines);
  }

  // Launches of a segment where it is not one persistent launch start behind that.
  static int first_launch(const SegmentRow& seg) { return seg.kind == kRProgram ? 1 : 0; }

  // The kinds of segments that run, each once: "waves", "rprogram+graph".
  std::string kinds() const {
    static const char* const names[] = {"rprogram", "waves", "graph", "parallel"};
    bool seen[4] = {};
    std::string text;
    for (int i = 0; i < model_.segment_count; ++i) {
      SegmentKind k = model_.segments[i].kind;
      if (k == kRProgram && !persistent_) k = kWaves;
      if (!seen[k]) text += std::string(text.empty() ? "" : "+") + names[k];
      seen[k] = true;
    }
    return text.empty() ? "waves" : text;
  }

  // An rProgram needs all its vEUs resident; where they are not, its waves run one launch each.
  void choose_mode() {
    const int resident = dev::resident_veus<Program>(device_, options_);
    int wanted = 0;
    for (int i = 0; i < model_.segment_count; ++i) {
      const SegmentRow& seg = model_.segments[i];
      if (seg.kind == kRProgram && seg.veus > wanted) wanted = seg.veus;
    }
    const bool fits = wanted <= resident;
    const std::string count = std::to_string(wanted) + " vEUs, the device holds " + std::to_string(resident) + " at once";
    if (!fits && options_.mode == kRProgramMode) {
      throw Error{kNotResident, "the rProgram has " + count + " (" + dev::describe(device_) + ")"};
    }
    persistent_ = fits && options_.mode != kWavesMode;
    for (int i = 0; i < model_.segment_count; ++i) {
      const SegmentRow& seg = model_.segments[i];
      launches_ += seg.kind == kRProgram && persistent_ ? 1 : seg.launches - first_launch(seg);
    }
    std::string why = "the plan";
    if (options_.mode == kWavesMode) why = "asked for";
    if (!fits) why = "the rProgram has " + count;
    info_ = std::string("{\"schema\":1,\"device\":\"") + dev::describe(device_) + "\",\"mode\":\"" +
            kinds() + "\",\"reason\":\"" + why + "\"}";
  }

  // Kernels load vectors, so what is used in place has to be aligned.
  void check_pointers(const void* const* in, void* const* out, bool in_place) const {
    for (int i = 0; i < model_.input_count; ++i) {
      check_pointer("input ", model_.inputs[i], in ? in[i] : nullptr, in_place);
    }
    for (int i = 0; i < model_.output_count; ++i) {
      check_pointer("output ", model_.outputs[i], out ? out[i] : nullptr, in_place);
    }
  }

  static void check_pointer(const char* side, const PortRow& port, const void* p, bool in_place) {
    if (!p && port.bytes > 0) throw Error{kBadArgument, std::string(side) + port.name + " is a null pointer"};
    if (in_place && reinterpret_cast<uintptr_t>(p) % 16 != 0) {
      throw Error{kBadArgument, std::string(side) + port.name + " is not aligned to 16 bytes"};
    }
  }

  void make_staging() {
    if (!staging_.empty()) return;
    auto add = [this](const PortRow& p) {
      staging_.emplace_back(static_cast<size_t>(p.bytes));
      return staging_.back().get();
    };
    for (int i = 0; i < model_.input_count; ++i) staged_in_.push_back(add(model_.inputs[i]));
    for (int i = 0; i < model_.output_count; ++i) staged_out_.push_back(add(model_.outputs[i]));
  }

  void run_staged(const void* const* in, void* const* out) {
    const dev::Stream s = stream_->get();
    make_staging();
    for (int i = 0; i < model_.input_count; ++i) dev::upload_async(staged_in_[i], in[i], model_.inputs[i].bytes, s);
    enqueue(s, staged_in_.data(), staged_out_.data());
    for (int i = 0; i < model_.output_count; ++i) dev::download_async(out[i], staged_out_[i], model_.outputs[i].bytes, s);
  }

  void enqueue(dev::Stream stream, const void* const* in, void* const* out) {
    // A stream under capture records the launches themselves.
    const bool captured = dev::capturing(stream);
    if (!captured && used_) fence_->join(stream);
    if (captured || !launch_graph(stream, in, out)) launch_all(stream, in, out);
    if (captured) return;
    used_ = true;
    fence_->set(stream);
  }

  // Launches the inference as a CUDA graph when it takes several launches and these pointers were given
  // before. False: not this time.
  bool launch_graph(dev::Stream stream, const void* const* in, void* const* out) {
    // Every inference draws delays of its own, so none is replayed.
    if (!dev::kHasGraphs || launches_ < 2 || options_.delays) return false;
    std::vector<const void*> key(in, in + model_.input_count);
    key.insert(key.end(), out, out + model_.output_count);
    for (Recorded& r : recorded_) {
      if (r.key != key) continue;
      if (!r.graph) r.graph.reset(new dev::Graph(stream_->get(), [&] { launch_all(stream_->get(), in, out); }));
      r.graph->launch(stream);
      return true;
    }
    if (recorded_.size() == kRecorded) recorded_.erase(recorded_.begin());
    recorded_.push_back(Recorded{std::move(key), nullptr});
    return false;
  }

  void launch_all(dev::Stream stream, const void* const* in, void* const* out) {
    Args args = {};
    args.args = weights_->args();
    args.tagged = reinterpret_cast<uint64_t*>(tagged_.get());
    args.report = report_.get();
    args.patience_ns = options_.patience_ns;
    if (options_.delays) args.delays = options_.delays + ++delayed_;
    args.bases[kArenaSpace] = arena_.get();
    args.bases[kWeightsSpace] = weights_->constants();
    for (int i = 0; i < model_.input_count; ++i) {
      args.bases[kFirstPortSpace + i] = static_cast<char*>(const_cast<void*>(in[i]));
    }
    for (int i = 0; i < model_.output_count; ++i) {
      args.bases[kFirstPortSpace + model_.input_count + i] = static_cast<char*>(out[i]);
      dev::poison(out[i], model_.outputs[i].bytes);
    }
    dev::poison(arena_.get(), model_.arena_bytes);
    for (int i = 0; i < model_.segment_count; ++i) {
      args.segment = static_cast<uint32_t>(i);
      launch(model_.segments[i], args, stream);
    }
  }

  void launch(const SegmentRow& seg, Args& args, dev::Stream stream) {
    const char* tables = weights_->tables();
    args.steps = reinterpret_cast<const Step*>(tables + seg.steps);
    args.waits = reinterpret_cast<const Wait*>(tables + seg.waits);
    args.moves = reinterpret_cast<const Move*>(tables + seg.moves);
    args.flags = reinterpret_cast<uint64_t*>(flags_.get()) + kFlagStride * static_cast<size_t>(seg.first_line);
    args.persistent = seg.kind == kRProgram && persistent_ ? 1 : 0;
    args.max_steps = seg.max_steps;
    if (seg.kind == kParallel) {
      streams_->run(model_, seg, stream, options_, [&](int i, dev::Stream s) { launch(seg, i, args, s); });
      return;
    }
    if (args.persistent) return launch(seg, 0, args, stream);
    for (int i = first_launch(seg); i < seg.launches; ++i) launch(seg, i, args, stream);
  }

  void launch(const SegmentRow& seg, int i, Args& args, dev::Stream stream) {
    const LaunchRow& row = model_.launches[seg.first_launch + i];
    args.ranges = reinterpret_cast<const StepRange*>(weights_->tables() + row.ranges);
    args.launch = static_cast<uint32_t>(i);
    args.first_veu = static_cast<uint32_t>(row.first_veu);
    args.shared = static_cast<uint32_t>(row.shared);
    args.stages = static_cast<uint32_t>(SharedLayout<Program>::stages(row.shared, row.chunks, args.persistent != 0));
    trace_->place(args.segment, seg.first_launch + i, args);
    const LaunchKind apart = row.overlap ? LaunchKind::kOverlapping : LaunchKind::kDependent;
    dev::launch<Program>(row, args.persistent ? LaunchKind::kCooperative : apart, args, stream, options_);
  }

  template <class Body>
  void explained(Body body) {
    try {
      body();
    } catch (Error& e) {
      explain(e);
      throw;
    }
  }

  // Adds what the watchdog saw.
  void explain(Error& e) {
    dev::after_failure(flags_.get(), flag_bytes());
    dev::after_failure(tagged_.get(), model_.tagged_bytes);
    const Report r = *report_;
    if (!r.set || r.op >= static_cast<uint32_t>(model_.op_count)) return;
    *report_ = Report{};
    const OpRow& op = model_.ops[r.op];
    char on[80], text[256];
    if (r.set == kTaggedReport) {
      std::snprintf(on, sizeof on, "tagged word %u: expected tag", r.on_order);
    } else if (r.set == kWeightsReport) {
      std::snprintf(on, sizeof on, "its weights in stage %u of the ring: expected filling", r.on_order);
    } else if (r.on_veu & kCounterWait) {
      const uint32_t veus = static_cast<uint32_t>(model_.segments[r.segment].veus);
      std::snprintf(on, sizeof on, "counter %u of %u additions: expected", (r.on_veu & ~kCounterWait) - veus, r.on_order);
    } else {
      std::snprintf(on, sizeof on, "vEU %u, step %u: expected flag", r.on_veu, r.on_order);
    }
    std::snprintf(text, sizeof text, "segment %u, vEU %u, step %u waits for %s %llu, seen %llu; its rTask is %u of ", r.segment,
                  r.veu, r.step, on, static_cast<unsigned long long>(r.expected), static_cast<unsigned long long>(r.seen),
                  r.rtask);
    e.text += std::string(": ") + text + op.name + " (" + op.kind + "; ONNX nodes: " + op.nodes + ")";
  }

  void release() {
    recorded_.clear();
    fence_.reset();
    streams_.reset();
    stream_.reset();
    report_.reset();
    trace_.reset();
    staging_.clear();
    arena_ = DeviceBuffer();
    flags_ = DeviceBuffer();
    tagged_ = DeviceBuffer();
    weights_.reset();
  }

  const Model& model_;
  Options options_;
  int device_;
  EarlyScope scope_;
  std::shared_ptr<Weights> weights_;
  DeviceBuffer arena_, flags_, tagged_;
  std::unique_ptr<TraceBuffers> trace_;
  std::unique_ptr<Report, DropReport> report_;
  std::unique_ptr<OwnStream> stream_;
  std::unique_ptr<dev::Fence> fence_;
  std::unique_ptr<SideStreams> streams_;
  std::vector<DeviceBuffer> staging_;
  std::vector<void*> staged_in_, staged_out_;
  std::vector<Recorded> recorded_;
  int launches_ = 0;
  uint64_t delayed_ = 0;  // inferences with random sleeps so far
  bool persistent_ = false, used_ = false;
  std::string info_;
  std::mutex mutex_, error_mutex_;
  std::string error_;
};

// Runs body and turns what it throws into a status; say keeps the message.
template <class Body, class Say>
int guarded(Body body, Say say) noexcept {
  Error failure{kInternal, {}};
  try {
    body();
    return kOk;
  } catch (Error& e) {
    failure.code = e.code;
    failure.text.swap(e.text);
  } catch (const std::bad_alloc&) {
    failure.code = kOutOfMemory;
  } catch (...) {
  }
  try {
    say(failure.text.empty() ? (failure.code == kOutOfMemory ? "out of host memory" : "an unexpected exception")
                             : failure.text);
  } catch (...) {
    // Without memory for the message the status alone must do.
  }
  return failure.code;
}

}  // namespace rt
