// A context: one independent instance of the program, with its arena, its barrier flags and its place on
// a device. The C interface is a thin skin over it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "rt/exec/executor.cuh"
#include "rt/host/environment.h"
#include "rt/host/model.h"
#include "rt/host/preset.h"

#include "rt/host/backend.h"
#include "rt/host/streams.h"
#include "rt/trace/trace.h"
#include "rt/host/weights.h"

namespace rt {

template <class Program>
class Context {
  static_assert(dev::Launches<Program, LaunchArgs<Program::kSpaces>>);

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
    if (const uint64_t before = launches_before()) preset(before);
    trace_.reset(new TraceBuffers(m, persistent_, !persistent_ || !residency_.cooperative));
    reports_.reset(dev::make_reports(report_count()));
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
    waited_for_ = false;
    explained([&] { enqueue(stream, in, out); });
  }

  void run(const void* const* in, void* const* out, bool on_host) {
    std::lock_guard<std::mutex> hold(mutex_);
    dev::DeviceScope scope(device_);
    check_pointers(in, out, !on_host);
    waited_for_ = true;
    explained([&] {
      run_once(in, out, on_host);
      // Then nothing was computed, and in waves nobody has to be there.
      if (gave_up()) run_once(in, out, on_host);
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

  const char* info() const { return info_.load()->c_str(); }

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
#if defined(RT_DEBUG)
  static constexpr bool kWatched = true;
#else
  static constexpr bool kWatched = false;
#endif
  // Blocks that find room come within microseconds; behind another's kernel they may have to wait.
  static constexpr uint64_t kGuardNS = 200'000'000;

  struct DropReports {
    void operator()(Report* r) const { dev::drop_reports(r); }
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
      if (seg.kind == kRProgram) lines += guard_line(seg) + 1;
    }
    return sizeof(uint64_t) * kFlagStride * static_cast<size_t>(lines);
  }

  // For tests: makes flags, counters and words what so many inferences leave behind.
  void preset(uint64_t launches) {
    std::vector<uint64_t> lines(flag_bytes() / sizeof(uint64_t)), words(model_.tagged_bytes / sizeof(uint64_t));
    for (int i = 0; i < model_.segment_count; ++i) {
      const SegmentRow& seg = model_.segments[i];
      if (seg.kind != kRProgram) continue;
      std::vector<Step> steps(static_cast<size_t>(seg.step_count));
      dev::download(steps.data(), weights_->tables() + seg.steps, steps.size() * sizeof(Step));
      preset_lines(seg, launches, steps, lines.data() + kFlagStride * static_cast<size_t>(seg.first_line));
    }
    preset_words(launches, words);
    dev::upload(flags_.get(), lines.data(), flag_bytes());
    dev::upload(tagged_.get(), words.data(), model_.tagged_bytes);
  }

  static int guard_line(const SegmentRow& seg) { return seg.veus + seg.counters; }

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
    residency_ = dev::residency<Program>(device_, options_);
    // Of several rPrograms the first that does not fit says why.
    std::string lack;
    for (int i = 0; i < model_.segment_count && lack.empty(); ++i) {
      const SegmentRow& seg = model_.segments[i];
      if (seg.kind != kRProgram) continue;
      int room = residency_.veus;
      std::string kind = " vEUs";
      if (seg.cluster > 1) {
        room = dev::resident_clusters<Program>(device_, seg.cluster, options_) * seg.cluster;
        kind += " in clusters of " + std::to_string(seg.cluster);
      }
      if (seg.veus > room) {
        lack = "the rProgram has " + std::to_string(seg.veus) + kind + ", the device holds " + std::to_string(room) + " at once";
      }
    }
    const bool fits = lack.empty();
    if (!fits && options_.mode == kRProgramMode) throw Error{kNotResident, lack + " (" + dev::describe(device_) + ")"};
    std::string why = "the plan";
    if (options_.mode == kWavesMode) why = "asked for";
    if (!fits) why = lack;
    set_mode(fits && options_.mode != kWavesMode, why);
  }

  void set_mode(bool persistent, const std::string& why) {
    persistent_ = persistent;
    launches_ = 0;
    for (int i = 0; i < model_.segment_count; ++i) {
      const SegmentRow& seg = model_.segments[i];
      launches_ += seg.kind == kRProgram && persistent_ ? 1 : seg.launches - first_launch(seg);
    }
    infos_.emplace_back(new std::string("{\"schema\":1,\"device\":\"" + dev::describe(device_) + "\",\"mode\":\"" + kinds() +
                                        "\",\"reason\":\"" + why + "\"}"));
    info_ = infos_.back().get();
  }

  // Goes on in waves when the device turns out not to hold the rProgram. In a stream under capture it is too
  // late for that, and who asked for the rProgram gets nothing else.
  bool may_fall_back(const Error& e, dev::Stream stream) const {
    return e.code == kNotResident && options_.mode != kRProgramMode && !dev::capturing(stream);
  }

  void fall_back(const std::string& why) {
    if (used_) fence_->wait();
    recorded_.clear();
    set_mode(false, why);
    trace_.reset(new TraceBuffers(model_, false, true));
  }

  // Launches that are not cooperative, or beside others' kernels, find out whether all vEUs are there. The
  // host learns of it when it waits; where it does not, waves run in the place of the former.
  bool guarded() const { return waited_for_ && (!residency_.cooperative || residency_.tenants); }

  // Whether the guard of the latest inference gave up; then the context runs in waves from now on.
  bool gave_up() {
    const Report r = reports_[0];
    if (r.set != kAbsentReport) return false;
    reports_[0] = Report{};
    // The guard's mark would stay, and counts and tags start from zeros together.
    dev::clear(flags_.get(), flag_bytes());
    dev::clear(tagged_.get(), model_.tagged_bytes);
    const std::string why = "of the rProgram's " + std::to_string(r.expected) + " vEUs only " + std::to_string(r.seen) +
                            " were on the device at once";
    if (options_.mode == kRProgramMode) throw Error{kNotResident, why + " (" + dev::describe(device_) + ")"};
    fall_back(why);
    return true;
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

  void run_once(const void* const* in, void* const* out, bool on_host) {
    if (on_host) {
      run_staged(in, out);
    } else {
      enqueue(stream_->get(), in, out);
    }
    dev::wait_for(stream_->get());
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
    if (!dev::kHasGraphs || launches_ < 2 || options_.delays || !residency_.cooperative || guarded()) return false;
    std::vector<const void*> key(in, in + model_.input_count);
    key.insert(key.end(), out, out + model_.output_count);
    for (Recorded& r : recorded_) {
      if (r.key != key) continue;
      try {
        if (!r.graph) r.graph.reset(new dev::Graph(stream_->get(), [&] { launch_all(stream_->get(), in, out); }));
        r.graph->launch(stream);
        return true;
      } catch (const Error& e) {
        if (!may_fall_back(e, stream)) throw;
        fall_back(refused(e));
        return false;
      }
    }
    if (recorded_.size() == kRecorded) recorded_.erase(recorded_.begin());
    recorded_.push_back(Recorded{std::move(key), nullptr});
    return false;
  }

  void launch_all(dev::Stream stream, const void* const* in, void* const* out) {
    Args args = {};
    args.args = weights_->args();
    args.tagged = reinterpret_cast<uint64_t*>(tagged_.get());
    args.reports = reports_.get();
    args.patience_ns = options_.patience_ns;
    if (options_.delays) args.delays = std::max<uint64_t>(1, options_.delays + ++delayed_);  // 0 would be for never
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
    const bool held = residency_.cooperative || guarded();
    args.persistent = seg.kind == kRProgram && persistent_ && held ? 1 : 0;
    args.max_steps = seg.max_steps;
    args.guard_ns = args.persistent && guarded() ? kGuardNS : 0;
    args.cluster = args.persistent ? static_cast<uint32_t>(seg.cluster) : 0;
    args.guard_line = static_cast<uint32_t>(guard_line(seg));
    args.guard_veus = static_cast<uint32_t>(seg.veus);
    if (seg.kind == kParallel) {
      streams_->run(model_, seg, stream, options_, [&](int i, dev::Stream s) { launch(seg, i, args, s); });
      return;
    }
    if (args.persistent && launch_whole(seg, args, stream)) return;
    for (int i = first_launch(seg); i < seg.launches; ++i) launch(seg, i, args, stream);
  }

  // Launches an rProgram. False: the device refused, and args are for its waves.
  bool launch_whole(const SegmentRow& seg, Args& args, dev::Stream stream) {
    try {
      launch(seg, 0, args, stream);
      return true;
    } catch (const Error& e) {
      if (!may_fall_back(e, stream)) throw;
      fall_back(refused(e));
    }
    args.persistent = 0, args.guard_ns = 0, args.cluster = 0;
    return false;
  }

  static std::string refused(const Error& e) { return "the device refused the rProgram: " + e.text; }

  void launch(const SegmentRow& seg, int i, Args& args, dev::Stream stream) {
    const LaunchRow& row = model_.launches[seg.first_launch + i];
    args.ranges = reinterpret_cast<const StepRange*>(weights_->tables() + row.ranges);
    args.launch = static_cast<uint32_t>(i);
    args.first_veu = static_cast<uint32_t>(row.first_veu);
    args.shared = static_cast<uint32_t>(row.shared);
    args.stages = static_cast<uint32_t>(SharedLayout<Program>::stages(row.shared, row.chunks, args.persistent != 0));
    args.op_args = 0, args.op_words = 0;
    if (row.op >= 0) args.op_args = weights_->args_of(row.op), args.op_words = (model_.ops[row.op].args_bytes + 15) / 16;
    args.first_step = row.first_step, args.step_stride = row.step_stride, args.weights = row.weights;
    trace_->place(args.segment, seg.first_launch + i, args);
    const LaunchKind apart = row.overlap ? LaunchKind::kOverlapping : LaunchKind::kDependent;
    const LaunchKind whole = residency_.cooperative ? LaunchKind::kCooperative : LaunchKind::kGuarded;
    dev::launch<Program>(row, args.persistent ? whole : apart, args, stream, options_);
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

  // Blocks leave notes for the watchdog; the guard's report is a launch's only one.
  int report_count() const {
    int most = 1;
    for (int s = 0; kWatched && s < model_.segment_count; ++s) {
      const SegmentRow& seg = model_.segments[s];
      for (int i = 0; i < seg.launches; ++i) most = std::max(most, model_.launches[seg.first_launch + i].grid);
    }
    return most;
  }

  // Of those that wait, the one at the earliest step is nearest to the cause: the others wait for it, or for what it
  // would have done. Removes all notes.
  Report first_waiting() {
    Report first = {};
    for (int i = 0; i < report_count(); ++i) {
      const Report r = reports_[i];
      reports_[i] = Report{};
      if (!r.set || r.set == kAbsentReport) continue;
      if (!first.set || r.segment < first.segment || (r.segment == first.segment && r.step < first.step)) first = r;
    }
    return first;
  }

  // Adds what the watchdog saw.
  void explain(Error& e) {
    dev::after_failure(flags_.get(), flag_bytes());
    dev::after_failure(tagged_.get(), model_.tagged_bytes);
    const Report r = first_waiting();
    if (!r.set || r.op >= static_cast<uint32_t>(model_.op_count)) {
      if (kWatched && e.code == kDeviceLost) {
        e.text += "; no vEU waited longer than the watchdog allows. Another process's failure on the device ends others' work at times";
      }
      return;
    }
    e.code = kStuck;
    const OpRow& op = model_.ops[r.op];
    char on[80], text[256];
    if (r.set == kTaggedReport) {
      std::snprintf(on, sizeof on, "tagged word %u: expected tag", r.on_order);
    } else if (r.set == kNearReport) {
      std::snprintf(on, sizeof on, "word %u of its slots, filled: expected", r.on_order);
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
    reports_.reset();
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
  std::unique_ptr<Report[], DropReports> reports_;
  std::unique_ptr<OwnStream> stream_;
  std::unique_ptr<dev::Fence> fence_;
  std::unique_ptr<SideStreams> streams_;
  std::vector<DeviceBuffer> staging_;
  std::vector<void*> staged_in_, staged_out_;
  std::vector<Recorded> recorded_;
  int launches_ = 0;
  uint64_t delayed_ = 0;  // inferences with random sleeps so far
  bool persistent_ = false, used_ = false;
  Residency residency_ = {};
  bool waited_for_ = false;  // the host waits for the inference at hand
  std::vector<std::unique_ptr<std::string>> infos_;  // callers may still look at an earlier one
  std::atomic<const std::string*> info_{nullptr};
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
