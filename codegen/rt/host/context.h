// A context: one independent instance of the program on a device, with its arena, its step array and its tagged words.
// The functions of the C interface call it, and add nothing but the translation of exceptions into statuses.
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
#include "rt/host/fork.h"
#include "rt/host/model.h"
#include "rt/host/pointers.h"
#include "rt/host/preset.h"

#include "rt/host/backend.h"
#include "rt/host/streams.h"
#include "rt/trace/trace.h"
#include "rt/host/weights.h"

namespace rt {

template <class Program>
class Context {
  static_assert(dev::Launches<Program, ArgsOf<Program>>);

 public:
  // Weights that others have loaded, else they come from the weights file; and an arena that no other uses at the same
  // time, else the context makes one of at least so many bytes.
  struct Lent {
    std::shared_ptr<Weights> weights;
    std::shared_ptr<DeviceBuffer> arena;
    size_t arena_bytes = 0;
  };

  Context(const Model& m, const Options& o, const Lent& lent = {})
      : model_(m), options_(o), device_(o.device < 0 ? dev::current_device() : o.device), scope_(device_) {
    if (options_.patience_ns == 0) options_.patience_ns = 10'000'000'000;
    choose_mode();
    weights_ = lent.weights ? lent.weights : load_weights();
    args_at_ = weights_->args();
    arena_ = lent.arena ? lent.arena : std::make_shared<DeviceBuffer>(std::max(arena_bytes(m), lent.arena_bytes));
    make_tensor_maps();
    flags_ = DeviceBuffer(flag_bytes());
    dev::clear(flags_.get(), flag_bytes());
    // Tag 0 is no launch's, so words that were never written are not taken for any.
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

  // Puts one inference on the stream and returns. The pointers are to device memory.
  void run_async(dev::Stream stream, const void* const* in, void* const* out) {
    check_process();
    std::lock_guard<std::mutex> hold(mutex_);
    dev::DeviceScope scope(device_);
    check(in, out, true);
    waited_for_ = false;
    explained([&] { enqueue(stream, in, out); });
  }

  // Runs one inference and waits for it. The pointers are to host or to device memory.
  void run(const void* const* in, void* const* out, bool on_host) {
    check_process();
    std::lock_guard<std::mutex> hold(mutex_);
    dev::DeviceScope scope(device_);
    check(in, out, !on_host);
    waited_for_ = true;
    explained([&] {
      run_once(in, out, on_host);
      if (gave_up()) run_once(in, out, on_host);
    });
  }

  // Copies what the latest inference recorded (trace/trace.h), at most *bytes, and sets *bytes to its size. With a null
  // pointer it only does the latter.
  void trace(void* to, size_t* bytes) {
    check_process();
    std::lock_guard<std::mutex> hold(mutex_);
    dev::DeviceScope scope(device_);
    const size_t size = trace_->size();
    if (to && *bytes < size) throw Error{kBadArgument, "the trace takes " + std::to_string(size) + " bytes"};
    *bytes = size;
    if (!to) return;
    fence_->wait();
    trace_->read(static_cast<char*>(to));
  }

  // Whether the context belongs to the parent of this process, which alone may use and destroy it.
  bool inherited() const { return forks() != forks_; }

  // Another thread of the parent may have held the mutex, so this comes before it is taken.
  void check_process() const {
    if (inherited()) {
      throw Error{kBadArgument, "the context was made before fork; only the process that made it can use it"};
    }
  }

  // How the context runs, as JSON.
  const char* info() const { return info_.load()->c_str(); }

  void set_error(const std::string& text) {
    std::lock_guard<std::mutex> hold(error_mutex_);
    error_ = text;
  }
  // The message of the latest call that failed. It stays valid until the next call with this context that fails.
  const char* error() const { return error_.c_str(); }

 protected:
  using Args = ArgsOf<Program>;

  // The pointers of an inference, and its CUDA graph, which is made when these pointers come for the second time.
  struct Recorded {
    std::vector<const void*> key;
    std::unique_ptr<dev::Graph> graph;
    int failures = 0;  // attempts to record it
    int skip = 0;      // so many inferences are launched row by row before the next attempt
  };
  static constexpr size_t kRecorded = 8;
#if defined(RT_DEBUG)
  static constexpr bool kWatched = true;
#else
  static constexpr bool kWatched = false;
#endif
  // How long the blocks of a guarded launch wait for each other. Blocks that find room come within microseconds, but
  // behind another process's kernel they may have to wait.
  static constexpr uint64_t kGuardNS = 200'000'000;

  struct DropReports {
    void operator()(Report* r) const { dev::drop_reports(r); }
  };

  // Makes the device current while the constructor runs. As the first member, it does so before the others are made.
  class EarlyScope {
   public:
    explicit EarlyScope(int device) : scope_(new dev::DeviceScope(device)) {}
    void reset() { scope_.reset(); }

   private:
    std::unique_ptr<dev::DeviceScope> scope_;
  };

  std::shared_ptr<Weights> load_weights() const {
    const char* given = options_.weights_path;
    const std::string path = given ? given : library_folder() + "/" + model_.weights_file;
    return share_weights(model_, path, device_, [&] { return std::make_shared<Weights>(model_, path); });
  }

  // The bytes of all segments' step arrays, which stand one behind the other.
  size_t flag_bytes() const {
    int lines = 0;
    for (int i = 0; i < model_.segment_count; ++i) {
      const SegmentRow& seg = model_.segments[i];
      if (seg.kind == kRProgram) lines += guard_line(seg) + 1;
    }
    return sizeof(uint64_t) * kFlagStride * static_cast<size_t>(lines);
  }

  // What the arena of a program takes, with the tensor maps behind it.
  static size_t arena_bytes(const Model& m) {
    size_t bytes = static_cast<size_t>(m.arena_bytes);
    for (const TiledMatrix* x = m.tensor_maps; x < m.tensor_maps + m.tensor_map_count; ++x) {
      if (x->map >> kSpaceShift == kArenaSpace) bytes = std::max(bytes, static_cast<size_t>(x->map) + kTensorMapBytes);
    }
    return bytes;
  }

  void make_tensor_maps() {
    for (int i = 0; i < model_.tensor_map_count; ++i) {
      const TiledMatrix& m = model_.tensor_maps[i];
      if (m.map >> kSpaceShift != kArenaSpace) continue;  // launch_all makes it
      alignas(64) char map[kTensorMapBytes] = {};
      char* base = m.at >> kSpaceShift == kArenaSpace ? arena_->get() : weights_->constants();
      dev::make_tensor_map(m, base + (m.at & kRefOffsetMask), map);
      dev::upload(arena_->get() + m.map, map, sizeof map);
    }
  }

  // For tests: makes flags, counters and words what so many inferences leave behind (preset.h).
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

  // The line of a step array that is the guard's.
  static int guard_line(const SegmentRow& seg) { return seg.veus + seg.counters; }

  // The first launch of a segment that does not run as an rProgram: the row of an rProgram's persistent launch stands
  // before its waves.
  static int first_launch(const SegmentRow& seg) { return seg.kind == kRProgram ? 1 : 0; }

  // context_mode.h
  std::string kinds() const;
  void choose_mode();
  void set_mode(bool persistent, const std::string& why);
  bool may_fall_back(const Error& e, dev::Stream stream) const;
  void fall_back(const std::string& why);
  bool guarded() const;
  bool gave_up();

  void check(const void* const* in, void* const* out, bool in_place) const {
    check_pointers(model_, in_place, [&](bool is_output, int i) {
      const PortRow& port = is_output ? model_.outputs[i] : model_.inputs[i];
      const void* const p = is_output ? (out ? out[i] : nullptr) : (in ? in[i] : nullptr);
      return Span{is_output ? "output " : "input ", port.name, p, static_cast<size_t>(port.bytes)};
    });
  }

  // Device memory for inputs and outputs of callers whose tensors are in host memory.
  // Outputs that have a place already stand there.
  void make_staging(std::vector<void*> outputs = {}) {
    if (!staging_.empty()) return;
    auto add = [this](const PortRow& p) { return staging_.emplace_back(static_cast<size_t>(p.bytes)).get(); };
    for (int i = 0; i < model_.input_count; ++i) staged_in_.push_back(add(model_.inputs[i]));
    outputs.resize(static_cast<size_t>(model_.output_count));
    for (size_t i = 0; i < outputs.size(); ++i) staged_out_.push_back(outputs[i] ? outputs[i] : add(model_.outputs[i]));
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
    for (int i = 0; i < model_.output_count; ++i) {
      dev::download_async(out[i], staged_out_[i], model_.outputs[i].bytes, s);
    }
  }

  // Whether the device repeats the program in one launch. A tracing build has room for the rows of one run.
  bool repeats_on_device() const {
    const SegmentRow& seg = model_.segments[0];
    return repeats_ >= 0 && persistent_ && model_.segment_count == 1 && seg.kind == kRProgram && seg.cluster <= 1 &&
           !kTraced;
  }

  // context_launch.h
  void enqueue(dev::Stream stream, const void* const* in, void* const* out);
  bool launch_graph(dev::Stream stream, const void* const* in, void* const* out);
  bool record(Recorded& r, const void* const* in, void* const* out);
  void launch_all(dev::Stream stream, const void* const* in, void* const* out);
  void make_caller_maps(Args& args);
  void launch_segment(const SegmentRow& seg, Args& args, dev::Stream stream);
  bool launch_whole(const SegmentRow& seg, Args& args, dev::Stream stream);

  static std::string refused(const Error& e) { return "the device refused the rProgram: " + e.text; }

  void launch_row(const SegmentRow& seg, int i, Args& args, dev::Stream stream);

  // branches.h
  bool branches(const SegmentRow& seg) const;
  template <class Make>
  void with_branches(Make make);
  void launch_branches(const SegmentRow& seg, int first, int last, int next, size_t depth, Args& args,
                       dev::Stream stream);

  template <class Body>
  void explained(Body body) {
    try {
      body();
    } catch (Error& e) {
      explain(e);
      throw;
    }
  }

  // context_report.h
  int report_count() const;
  Report first_waiting();
  void explain(Error& e);

  void release() {
    recorded_.clear();
    loop_.reset();
    fence_.reset();
    streams_.reset();
    inside_.clear();
    recording_.reset();
    stream_.reset();
    reports_.reset();
    trace_.reset();
    staging_.clear();
    arena_.reset();
    flags_ = DeviceBuffer();
    tagged_ = DeviceBuffer();
    weights_.reset();
  }

  const Model& model_;
  Options options_;
  const int forks_ = forks();
  int device_;
  EarlyScope scope_;
  std::shared_ptr<Weights> weights_;
  char* args_at_ = nullptr;              // the Args of all rOperators, in device memory
  std::shared_ptr<DeviceBuffer> arena_;  // that of all programs of a library
  DeviceBuffer flags_, tagged_;
  std::unique_ptr<TraceBuffers> trace_;
  std::unique_ptr<Report[], DropReports> reports_;
  // Inferences that the host waits for run on stream_, behind what the caller has put on the legacy default stream.
  // Graphs are recorded on a stream that is not ordered with that one, because work of any thread there would end the
  // recording.
  std::unique_ptr<OwnStream> stream_, recording_;
  std::vector<std::unique_ptr<OwnStream>> inside_;  // on which branches are recorded, by how many they are inside of
  std::unique_ptr<dev::Fence> fence_;
  std::unique_ptr<SideStreams> streams_;
  std::vector<DeviceBuffer> staging_;
  std::vector<void*> staged_in_, staged_out_;
  std::vector<bool> kept_;  // outputs that are states, which the next inference begins with; empty if there are none
  // Of a program that repeats (exec/repeat.cuh): the output that says whether it does, or -1, and what differs between
  // runs.
  int repeats_ = -1;
  DeviceBuffer patches_;
  uint32_t patch_count_ = 0;
  std::unique_ptr<dev::Loop> loop_;  // launches of other plans, with the pointers that they are for
  std::vector<const void*> loop_key_;
  bool loop_failed_ = false;
  bool overlaps_ = true;  // launches may begin before those before them have ended
  // Of branches: the launches are being recorded with conditional nodes; the driver takes none; the latest thing on the
  // stream is no launch, which the next one could overlap with.
  bool branching_ = false, branches_failed_ = false, behind_branch_ = false;
  std::vector<Recorded> recorded_;
  int launches_ = 0;
  uint64_t delayed_ = 0;  // inferences with random sleeps so far
  bool persistent_ = false, used_ = false;
  Residency residency_ = {};
  bool waited_for_ = false;                          // the host waits for the inference that is being launched
  std::vector<std::unique_ptr<std::string>> infos_;  // callers may still look at an earlier one
  std::atomic<const std::string*> info_{nullptr};
  std::mutex mutex_, error_mutex_;
  std::string error_;
};

// Runs body and turns what it throws into a status. say(text) keeps the message.
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
    // There is no memory for the message: the status alone is returned.
  }
  return failure.code;
}

}  // namespace rt

#include "rt/host/branches.h"
#include "rt/host/context_launch.h"
#include "rt/host/context_mode.h"
#include "rt/host/context_report.h"
