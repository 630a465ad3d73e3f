// NonMaxSuppression in two steps. Each rTask of NMSSelect has one class of one batch: it takes the box with the best
// score, removes those that overlap it too much, and so on, until nothing or enough is taken. NMSJoin puts the lists
// of all classes one behind the other.
//
// A box that is left has a key, by which boxes are compared: larger where the score is, and 0 where the box is taken or
// removed. Among equal scores the first box is the best; NaN is below everything.
#pragma once

#include "common/math.cuh"
#include "indexed/count.cuh"

namespace rk {

struct NMSSelect : Count {
  struct Args {
    rt::Ref boxes, scores;  // [batch][boxes][4], [batch][class][boxes]
    int32_t n;              // boxes of a batch, in the run
    int32_t stride, limit;  // boxes that there may be in a batch, and that may be taken of a class
    int32_t centered;
    int32_t ones;  // all bits are 1, which compilers do not know
    Div classes;
    rt::Ref most, overlap, least;  // numbers; which are there says `has`
    int32_t has;                   // bits: 1 overlap, 2 least
    rt::Ref keys, taken, counts;   // [list][boxes], [list][limit], [list]: a list for each class of each batch
  };
  static constexpr int kShared = kThreads / 32 * 8;

  struct Box {
    float y0, x0, y1, x1;
  };

  RT_DEVICE static float lesser(float a, float b) { return fn::Min<float>(a, b); }
  RT_DEVICE static float greater(float a, float b) { return fn::Max<float>(a, b); }

  RT_DEVICE static Box box(const float* v, bool centered) {
    if (centered) return {v[1] - v[3] / 2, v[0] - v[2] / 2, v[1] + v[3] / 2, v[0] + v[2] / 2};
    return {lesser(v[0], v[2]), lesser(v[1], v[3]), greater(v[0], v[2]), greater(v[1], v[3])};
  }

  // A product that is rounded by itself. Compilers make a product and a sum one operation with one rounding, unless
  // something that they must carry out stands between.
  RT_DEVICE static float product(float a, float b, int32_t ones) {
    return __builtin_bit_cast(float, __builtin_bit_cast(int32_t, a* b) & ones);
  }

  RT_DEVICE static bool overlaps(const Box& a, const Box& b, float limit, int32_t ones) {
    const float h = lesser(a.y1, b.y1) - greater(a.y0, b.y0), w = lesser(a.x1, b.x1) - greater(a.x0, b.x0);
    if (!(h > 0) || !(w > 0)) return false;
    const float common = product(w, h, ones);
    const float area_a = product(a.y1 - a.y0, a.x1 - a.x0, ones), area_b = product(b.y1 - b.y0, b.x1 - b.x0, ones);
    const float both = area_a + area_b - common;
    return area_a > 0 && area_b > 0 && both > 0 && common > 0 && common / both > limit;
  }

  // Larger for better scores, and never 0: that of minus infinity is 0x007fffff.
  RT_DEVICE static uint32_t key(float score) {
    if (!(score == score)) return 1;
    const uint32_t bits = __builtin_bit_cast(uint32_t, score == 0 ? 0.0f : score);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
  }

  // The largest v of all threads.
  RT_DEVICE static uint64_t best(const rt::Task& t, uint64_t v) {
    uint64_t* warps = reinterpret_cast<uint64_t*>(t.smem);
    RT_UNROLL
    for (int d = 16; d > 0; d /= 2) {
      const uint64_t other = rt::shfl(t, v, (t.tid % 32) ^ d);
      if (other > v) v = other;
    }
    if (t.tid % 32 == 0) warps[t.tid / 32] = v;
    t.sync();
    uint64_t most = 0;
    for (int w = 0; w < kThreads / 32; ++w) most = warps[w] > most ? warps[w] : most;
    t.sync();
    return most;
  }

  // A box with its key, as one number: the first of equal ones is the largest.
  RT_DEVICE static uint64_t ranked(uint32_t key, int i) { return uint64_t(key) << 32 | (0xffffffffu - uint32_t(i)); }

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int list) {
    const int batch = a.classes.quotient(list);
    const float* boxes = t.ptr<const float>(a.boxes) + int64_t(batch) * a.stride * 4;
    const float* scores = t.ptr<const float>(a.scores) + int64_t(list) * a.stride;
    uint32_t* keys = t.ptr<uint32_t>(a.keys) + int64_t(list) * a.stride;
    int32_t* taken = t.ptr<int32_t>(a.taken) + int64_t(list) * a.limit;
    const float overlap = a.has & 1 ? *t.ptr<const float>(a.overlap) : 0.0f;
    const float infinity = __builtin_bit_cast(float, 0x7f800000u);
    const float least = a.has & 2 ? *t.ptr<const float>(a.least) : -infinity;
    const int64_t wanted = *t.ptr<const int64_t>(a.most);
    const int most = wanted < a.limit ? int(wanted) : a.limit;
    uint64_t mine = 0;
    RK_NO_UNROLL
    for (int i = t.tid; i < a.n; i += kThreads) {
      keys[i] = scores[i] > least || least == -infinity ? key(scores[i]) : 0;
      const uint64_t r = keys[i] ? ranked(keys[i], i) : 0;
      if (r > mine) mine = r;
    }
    int count = 0;
    RK_NO_UNROLL
    for (; count < most; ++count) {
      const uint64_t next = best(t, mine);
      if (next == 0) break;
      const int k = int(0xffffffffu - uint32_t(next));
      if (t.tid == 0) taken[count] = k;
      const Box chosen = box(boxes + int64_t(k) * 4, a.centered != 0);
      mine = 0;
      RK_NO_UNROLL
      for (int i = t.tid; i < a.n; i += kThreads) {
        if (keys[i] == 0) continue;
        if (i == k || overlaps(box(boxes + int64_t(i) * 4, a.centered != 0), chosen, overlap, a.ones)) {
          keys[i] = 0;
        } else if (const uint64_t r = ranked(keys[i], i); r > mine) {
          mine = r;
        }
      }
    }
    if (t.tid == 0) t.ptr<int32_t>(a.counts)[list] = count;
  }
};

}  // namespace rk
