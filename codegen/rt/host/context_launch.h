// How an inference is launched. The first one with certain pointers is launched row by row; the second is recorded as a
// CUDA graph, and from then on one graph launch is an inference.
#pragma once

#include "rt/host/context.h"

namespace rt {

template <class Program>
void Context<Program>::enqueue(dev::Stream stream, const void* const* in, void* const* out) {
  // A stream that the caller captures records the launches themselves, and needs no order to inferences before.
  const bool captured = dev::capturing(stream);
  if (!captured && used_) fence_->join(stream);
  if (captured || !launch_graph(stream, in, out)) launch_all(stream, in, out);
  if (captured) return;
  used_ = true;
  fence_->set(stream);
}

// Launches the inference as a CUDA graph, if it takes several launches and the same pointers have come before. False:
// it has not.
template <class Program>
bool Context<Program>::launch_graph(dev::Stream stream, const void* const* in, void* const* out) {
  // Each inference draws random sleeps of its own, so none is replayed.
  if (!dev::kHasGraphs || launches_ < 2 || options_.delays || !residency_.cooperative || guarded()) return false;
  std::vector<const void*> key(in, in + model_.input_count);
  key.insert(key.end(), out, out + model_.output_count);
  for (Recorded& r : recorded_) {
    if (r.key != key) continue;
    if (!r.graph && !record(r, in, out)) return false;
    try {
      r.graph->launch(stream);
      return true;
    } catch (const Error& e) {
      if (!may_fall_back(e, stream)) throw;
      fall_back(refused(e));
      return false;
    }
  }
  if (recorded_.size() == kRecorded) recorded_.erase(recorded_.begin());
  recorded_.emplace_back();
  recorded_.back().key = std::move(key);
  return false;
}

// Records the graph of an inference. False: recording failed, which is no failure of the inference. It is tried again
// after one, three, seven and so on inferences with the same pointers.
template <class Program>
bool Context<Program>::record(Recorded& r, const void* const* in, void* const* out) {
  if (r.skip > 0) {
    --r.skip;
    return false;
  }
  try {
    if (!recording_) recording_.reset(new OwnStream(dev::make_side_stream()));
    const dev::Stream s = recording_->get();
    with_branches([&] { r.graph.reset(new dev::Graph(s, [&] { launch_all(s, in, out); })); });
    return true;
  } catch (const Error&) {
    r.failures = std::min(r.failures + 1, 10);
    r.skip = (1 << r.failures) - 1;
    return false;
  }
}

template <class Program>
void Context<Program>::launch_all(dev::Stream stream, const void* const* in, void* const* out) {
  Args args = {};
  args.args = args_at_;
  args.tagged = reinterpret_cast<uint64_t*>(tagged_.get());
  args.reports = reports_.get();
  args.patience_ns = options_.patience_ns;
  if (options_.delays) args.delays = std::max<uint64_t>(1, options_.delays + ++delayed_);  // 0 would be for never
  args.bases[kArenaSpace] = arena_->get();
  args.bases[kWeightsSpace] = weights_->constants();
  for (int i = 0; i < model_.input_count; ++i) {
    args.bases[kFirstPortSpace + i] = static_cast<char*>(const_cast<void*>(in[i]));
  }
  for (int i = 0; i < model_.output_count; ++i) {
    args.bases[kFirstPortSpace + model_.input_count + i] = static_cast<char*>(out[i]);
    if (kept_.empty() || !kept_[static_cast<size_t>(i)]) dev::poison(out[i], model_.outputs[i].bytes);
  }
  dev::poison(arena_->get(), model_.arena_bytes);
  make_caller_maps(args);
  for (int i = 0; i < model_.segment_count; i += model_.segments[i].repeated) {
    for (int turn = 0; turn < model_.segments[i].turns; ++turn) {
      args.turn = static_cast<uint32_t>(turn);
      for (int k = i; k < i + model_.segments[i].repeated; ++k) {
        args.segment = static_cast<uint32_t>(k);
        launch_segment(model_.segments[k], args, stream);
      }
    }
  }
}

// Makes the tensor maps of matrices of the caller.
template <class Program>
void Context<Program>::make_caller_maps([[maybe_unused]] Args& args) {
  if constexpr (Program::kCallerMaps > 0) {
    for (int i = 0; i < model_.tensor_map_count; ++i) {
      const TiledMatrix& m = model_.tensor_maps[i];
      if (m.map >> kSpaceShift == kArenaSpace) continue;
      char* map = args.caller_maps[(m.map & kRefOffsetMask) / kTensorMapBytes].bytes;
      dev::make_tensor_map(m, args.bases[m.at >> kSpaceShift] + (m.at & kRefOffsetMask), map);
    }
  }
}

template <class Program>
void Context<Program>::launch_segment(const SegmentRow& seg, Args& args, dev::Stream stream) {
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
  const bool repeats = args.persistent && repeats_on_device();
  args.again =
      repeats ? reinterpret_cast<const uint8_t*>(args.bases[kFirstPortSpace + model_.input_count + repeats_]) : nullptr;
  args.patches = reinterpret_cast<const Patch*>(patches_.get());
  args.patch_count = patch_count_;
  if (seg.kind == kParallel) {
    streams_->run(model_, seg, stream, options_, [&](int i, dev::Stream s) { launch_row(seg, i, args, s); });
    return;
  }
  if (args.persistent && launch_whole(seg, args, stream)) return;
  if (branches(seg)) return launch_branches(seg, first_launch(seg), seg.launches, 0, 0, args, stream);
  for (int i = first_launch(seg); i < seg.launches; ++i) launch_row(seg, i, args, stream);
}

// Launches an rProgram as one persistent launch. False: the device refused it, and `args` have been changed to those of
// its waves.
template <class Program>
bool Context<Program>::launch_whole(const SegmentRow& seg, Args& args, dev::Stream stream) {
  try {
    launch_row(seg, 0, args, stream);
    return true;
  } catch (const Error& e) {
    if (!may_fall_back(e, stream)) throw;
    fall_back(refused(e));
  }
  args.persistent = 0, args.guard_ns = 0, args.cluster = 0, args.again = nullptr;
  return false;
}

template <class Program>
void Context<Program>::launch_row(const SegmentRow& seg, int i, Args& args, dev::Stream stream) {
  const LaunchRow& row = model_.launches[seg.first_launch + i];
  args.ranges = reinterpret_cast<const StepRange*>(weights_->tables() + row.ranges);
  args.launch = static_cast<uint32_t>(i);
  args.first_veu = static_cast<uint32_t>(row.first_veu);
  args.shared = static_cast<uint32_t>(row.shared);
  Program::Kernels::one(row.kernel, [&]<class Kernel>(Kernel*) {
    args.stages = static_cast<uint32_t>(SharedLayout<Kernel>::stages(row.shared, row.chunks, args.persistent != 0));
  });
  args.op_args = 0, args.op_words = 0;
  if (row.op >= 0) args.op_args = weights_->args_of(row.op), args.op_words = (model_.ops[row.op].args_bytes + 15) / 16;
  args.first_step = row.first_step, args.step_stride = row.step_stride, args.weights = row.weights;
  trace_->place(args.segment, seg.first_launch + i, args);
  const bool overlaps = row.overlap && overlaps_ && !behind_branch_;
  const LaunchKind apart = overlaps ? LaunchKind::kOverlapping : LaunchKind::kDependent;
  behind_branch_ = false;
  const LaunchKind whole = residency_.cooperative ? LaunchKind::kCooperative : LaunchKind::kGuarded;
  dev::launch<Program>(row, args.persistent ? whole : apart, args, stream, options_);
}

}  // namespace rt
