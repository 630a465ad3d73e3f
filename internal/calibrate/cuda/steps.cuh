// What a step of an rProgram takes beside its rTask: the executor itself, on tables made here.
#pragma once

#include "lab.cuh"
#include "backend/cuda/host.cuh"

namespace steps {

using lab::kThreads;
using lab::Lab;
using lab::Samples;

// Hardly any work, but no two instances the same.
template <int Which>
struct Little {
  struct alignas(16) Args {
    float scale;
  };
  static constexpr int kThreads = lab::kThreads;
  static constexpr int kShared = 4 * lab::kThreads;
  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    float* held = reinterpret_cast<float*>(t.smem);
    held[t.tid] = fmaf(held[t.tid], a.scale, static_cast<float>(Which + rtask));
  }
};

struct Program : rt::Needs<Little<0>, Little<1>, Little<2>, Little<3>, Little<4>, Little<5>, Little<6>, Little<7>> {
  static constexpr int kSpaces = 2;
  static constexpr int kBlocksPerSM = 1;
  // Nothing is carried, kept on chip or streamed.
  static constexpr int kMoves = 0, kImports = 0, kSlots = 0;
  static constexpr bool kHasResident = false, kPassing = false;
  static constexpr int kStageBytes = 0, kSharedBudget = 0, kSideBudget = 0;
  static constexpr int kInstances = 8;

  template <class VEU>
  RT_DEVICE static void run(VEU& veu, bool) {
    veu.run();
  }

  template <class VEU>
  RT_DEVICE static void compute(VEU& veu, int instance, const void* args, int rtask) {
    instance = rt::detail::same_in_warp(instance);
    if (instance == 0) [[unlikely]]
      return veu.template compute<Little<0>>(args, rtask);
    if (instance == 1) [[unlikely]]
      return veu.template compute<Little<1>>(args, rtask);
    if (instance == 2) [[unlikely]]
      return veu.template compute<Little<2>>(args, rtask);
    if (instance == 3) [[unlikely]]
      return veu.template compute<Little<3>>(args, rtask);
    if (instance == 4) [[unlikely]]
      return veu.template compute<Little<4>>(args, rtask);
    if (instance == 5) [[unlikely]]
      return veu.template compute<Little<5>>(args, rtask);
    if (instance == 6) [[unlikely]]
      return veu.template compute<Little<6>>(args, rtask);
    if (instance == 7) [[unlikely]]
      return veu.template compute<Little<7>>(args, rtask);
  }
};

constexpr uint32_t kSteps = 2000;

template <class T>
const T* upload(const std::vector<T>& v) {
  T* p = nullptr;
  LAB_CHECK(cudaMalloc(&p, v.size() * sizeof(T)));
  LAB_CHECK(cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice));
  return p;
}

// kSteps steps on every vEU, instances in turn. With waits, each step needs its neighbour's step before.
inline rt::ArgsOf<Program> tables(Lab& l, bool waits) {
  const uint32_t veus = static_cast<uint32_t>(l.sms());
  std::vector<rt::Step> steps;
  std::vector<rt::Wait> wait_rows;
  std::vector<rt::StepRange> ranges;
  for (uint32_t v = 0; v < veus; ++v) {
    for (uint32_t i = 0; i < kSteps; ++i) {
      rt::Step s = {};
      s.rtask = i;
      s.instance = static_cast<uint16_t>(i % Program::kInstances);
      s.args_words = sizeof(Little<0>::Args) / 16;
      s.wait_begin = static_cast<uint32_t>(wait_rows.size());
      s.wait_count = waits && i > 0 ? 1 : 0;
      s.signal = waits ? 1 : 0;
      if (s.wait_count) {
        wait_rows.push_back({(v + 1) % veus, i - 1});
        wait_rows.push_back({});  // rows are taken in pairs
      }
      steps.push_back(s);
    }
    ranges.push_back({v * kSteps, (v + 1) * kSteps});
  }
  wait_rows.resize(wait_rows.size() + 2);
  rt::ArgsOf<Program> args = {};
  args.steps = upload(steps);
  args.waits = upload(wait_rows);
  args.args = reinterpret_cast<const char*>(l.random(64));
  args.ranges = upload(ranges);
  args.persistent = 1;
  args.shared = Program::kShared;
  args.flags = l.zeroed<uint64_t>(static_cast<size_t>(veus) * rt::kFlagStride);
  args.max_steps = kSteps;
  return args;
}

template <bool Waits>
Samples program(Lab& l) {
  const auto args = tables(l, Waits);
  const size_t shared = rt::SharedLayout<Program>::bytes(Program::kShared, 0);
  return l.times(kSteps, [&] {
    l.launch(rt::vdevice_run<Program>, l.sms(), Program::kThreads, shared, cudaLaunchAttributeCooperative, 1, args);
  });
}

}  // namespace steps
