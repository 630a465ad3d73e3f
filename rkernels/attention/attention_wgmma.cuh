// out[b][q] = softmax(scale·Q[b][q]·Kᵀ[b] + mask[b][q])·V[b] by the warp groups of tensor cores, for Q, K and V of 16
// bits. The scores are never in memory: the sums of Q·Kᵀ become weights where they are, in registers, and those are the
// left operand of the product with V.
//
// A warp group has 64 rows of queries. What comes next is brought, and products are made, while threads compute the
// weights of a stage of KT keys; and the products of one warp group run while others compute weights:
//
//   threads        begin Q·K(i) │ send for a later stage │ Q·K(i) is done: weights(i) │ begin weights(i)·V(i) │ …
//   tensor cores   weights(i-1)·V(i-1), Q·K(i) ─────────▶│ those of other groups ────▶│ weights(i)·V(i) ─────▶ …
//
// The WG warp groups of an rTask are teams, each of which attends to a tile. What they share is the rTask's Way:
//
//   kApart       nothing: each warp group is a team.
//   kShareKeys   the keys: all are one team, with a tile of 64·WG rows, and a stage is brought once for all of them.
//   kShareRows   the rows: all are one team. Each takes every WG-th stage of keys, and in the end their sums are
//                joined.
//   kPairs       the keys in pairs: two warp groups are a team with a tile of 128 rows.
//
// Where there are several teams they take the rTask's tiles in turn, and wait for nobody else. So while one team begins
// or ends a tile, others multiply.
#pragma once

#include "attention/head_blocks.cuh"
#include "attention/results.cuh"
#include "common/types.cuh"
#include "rt/device/mma.cuh"

namespace rk {

enum AttentionWay { kApart = 0, kShareKeys = 1, kShareRows = 2, kPairs = 3 };

// T is the element type of Q, K and V. DM is the head size (of Q, K and V alike) rounded up to 32, 64, 128 or 256. The
// ring of stages has ST places. With Together a tile of several teams has so many queries of each of several heads;
// otherwise each head of a tile is one by itself. Without Masked there is no mask; then scale is not negative. With
// Part the rTask has only a part of the keys, and leaves its sums for attention_sum.
template <class T, int DM, int WG, int Way, int KT, int ST, int Together, int Products, int Masked, int Part, class Epi>
struct AttentionWgmma {
  static constexpr int kThreads = 128 * WG, kRows = 64;
  static constexpr int kSharing = Way == kShareKeys ? WG : Way == kPairs ? 2 : 1;  // warp groups that share a ring
  static constexpr int kJoined = Way == kShareRows ? WG : 1;                       // and rows
  static constexpr int kTeams = WG / (kSharing * kJoined);
  static_assert(WG % kSharing == 0, "teams are whole");
  // Threads that bring a stage: all that share it, but for those that would have no part of it.
  static constexpr int kRingThreads = kSharing == 3 ? 256 : 128 * kSharing, kRuns = KT * DM / 8;
  static constexpr int kLoading = kRingThreads < kRuns ? kRingThreads : kRuns;
  using QueryBlocks = HeadBlocks<kRows, DM, 128>;
  using KeyBlocks = HeadBlocks<KT, DM, kLoading>;
  using Softmax = RunningSoftmax<1, KT / 8, DM / 8, Masked>;
  using Results = AttentionResults<kRows, DM, kJoined, 128 * kJoined, Together, kJoined == 1, 0, Part, Epi>;
  using Scores = typename Softmax::Scores;
  static constexpr int kQueries = QueryBlocks::kElements, kHalf = KeyBlocks::kElements, kStage = 2 * kHalf;
  // Shared memory of those that share a ring: their queries and the ring, in elements, and later their sums in its
  // place.
  static constexpr int kUnit = kSharing * kQueries + ST * kStage, kUnits = WG / kSharing;
  static constexpr int kAlign = 1024;
  static constexpr int kRings = static_cast<int>(sizeof(T)) * kUnits * kUnit, kSums = WG / kJoined * Results::kSums;
  static constexpr int kBody = kRings > kSums ? kRings : kSums;
  static constexpr int kShared = kAlign + kBody + WG / kJoined * Results::kStats;
  static_assert(kTeams == 1 || static_cast<int>(sizeof(T)) * kUnit >= kSharing * Results::kSums, "sums of a team fit");

  struct Args {
    HeadMatrix q, k, v, mask;
    rt::Operand3 out;  // see HeadPlace; parts are [split·batch][query][column], two columns wider
    HeadRows rows;
    Div joined;
    int32_t batch;             // all heads of all batch entries
    int32_t keys, split_keys;  // of all splits, of one
    int32_t depth, columns;    // of Q and K, of V
    // A query attends to keys from its own number plus `before` to its own number plus `behind`.
    int32_t before, behind;
    int32_t nan_to_zero;
    float scale;
    typename Epi::Args epi;
    int32_t run;  // tiles of an rTask
  };

  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {
    const Place at(t.tid);
    if constexpr (kTeams == 1) {
      attend_tile(t, a, HeadTile(a.rows, rtask), at);
    } else if constexpr (Together) {
      RK_UNROLL(1)
      for (int turn = 0; in_turn(at, turn) < a.run; ++turn) {
        attend_tile(t, a, in_turn(a, at, rtask, turn), at, rtask, turn);
        ring_barrier(t, at);  // the sums have been read
      }
    } else {
      const int heads = a.rows.heads;
      RK_UNROLL(1)
      for (int i = at.sharers(); i < a.run * heads; i += kTeams) {
        HeadTile tile(a.rows, rtask * a.run + i / heads);
        if (i % heads >= tile.heads) continue;
        tile.b2 += i % heads, tile.heads = 1;
        attend_tile(t, a, tile, at);
        ring_barrier(t, at);  // the sums have been read
      }
    }
  }

 private:
  // Where a thread stands: its warp group, its number there, and its first row of the tile.
  struct Place {
    int group, tid, lane, first_row, row;

    RT_DEVICE explicit Place(int all)
        : group(rt::settled(all / 128)),
          tid(all % 128),
          lane(all % 32),
          first_row(member() * kRows),
          row(first_row + tid / 32 * 16 + lane / 4) {}
    // The first of the lane's keys of fragments that begin with `key`.
    RT_DEVICE int first_of(int key) const { return key + lane % 4 * 2; }
    // The number of the warp groups that share the group's ring, among all such, and the group's number among them. No
    // number is negative, which compilers cannot know.
    RT_DEVICE int sharers() const { return static_cast<int>(static_cast<uint32_t>(group) / kSharing); }
    RT_DEVICE int member() const { return static_cast<int>(static_cast<uint32_t>(group) % kSharing); }
    // Of the threads that share a ring, the thread's number, and the first element of their shared memory.
    RT_DEVICE int of_ring() const { return member() * 128 + tid; }
    RT_DEVICE T* unit(char* memory) const { return reinterpret_cast<T*>(memory) + sharers() * kUnit; }
  };

  // The tile of an rTask that a team takes in a turn. From one to the next they have more keys, so teams change places:
  // of two, one has tiles 0, 3, 4, 7 …, the other one 1, 2, 5, 6 ….
  static RT_DEVICE int in_turn(const Place& at, int turn) {
    const int team = at.sharers();
    return turn * kTeams + (turn % 2 ? kTeams - 1 - team : team);
  }

  static RT_DEVICE HeadTile in_turn(const Args& a, const Place& at, int rtask, int turn) {
    return HeadTile(a.rows, rtask * a.run + in_turn(at, turn));
  }

  // With Together the tile is that of a turn.
  static RT_DEVICE void attend_tile(const rt::Task& t, const Args& a, const HeadTile& tile, const Place& at,
                                    int rtask = 0, int turn = 0) {
    char* memory = rt::aligned_shared<kAlign>(t.smem);
    T* unit = at.unit(memory);
    T* sq = unit + at.member() * kQueries;
    issue_queries<T, DM, Together>(t, a, tile, at.first_row, at.tid, sq);
    Stages stages(t, a, tile, at, memory);
    RK_UNROLL(1)
    for (int i = 0; i < ST - 1; ++i) stages.send(i < stages.count, i);

    const typename Softmax::Rows rows(t, a, tile, at.row, stages.end);
    const float factor = a.scale * kLog2e;
    typename Softmax::State s;
    if (stages.count > 0) attend(t, tile, at, rows, factor, sq, stages, s);
    rt::cp_async_wait<0>();
    if (Results::kRounded && stages.count == 0) ring_barrier(t, at);  // others' copies of queries are there, too
    // Threads of four warp groups have so few registers that the place and the tile are found again behind the loop
    // over its keys instead of being kept.
    const Place behind = WG == 4 ? Place(static_cast<int>(static_cast<uint32_t>(rt::settled(t.tid)) % kThreads)) : at;
    if constexpr (Together) {
      finish(t, a, in_turn(a, behind, rtask, rt::settled(turn)), behind, factor, s, memory);
    } else {
      finish(t, a, tile, behind, Masked ? 1.0f : factor, s, memory);
    }
  }

  // Of the threads that share a ring.
  static RT_DEVICE void ring_barrier(const rt::Task& t, const Place& at) {
    if constexpr (kSharing == WG) {
      t.sync();
    } else {
      rt::group_barrier(t, at.sharers() * kSharing, kSharing);
    }
  }

  // The stages of keys and values of a warp group. They go through the ring's places one after another.
  struct Stages {
    using Loader = HeadLoader<T, KT, DM, kLoading>;
    static constexpr int kStep = Way == kShareRows ? WG * KT : KT;  // keys from a stage to the group's next one

    int first, end, count;  // the first key, the end of all keys, and how many stages there are

    // All keys are those of this split that some row of the tile attends to.
    RT_DEVICE Stages(const rt::Task& t, const Args& a, const HeadTile& tile, const Place& at, char* memory)
        : first(most(tile.split * a.split_keys, tile.q0 + a.before) + (Way == kShareRows ? at.group * KT : 0)),
          end(least(least((tile.split + 1) * a.split_keys, a.keys), tile.q0 + tile.queries + a.behind)),
          count(end > first ? ceil_div(end - first, kStep) : 0),
          memory_(memory),
          operands_(at.unit(memory) + kSharing * kQueries),
          place_(rt::settled(at.sharers() * kUnit + kSharing * kQueries + Loader::place(at.of_ring()))),
          loads_(kLoading == 128 * kSharing || at.of_ring() < kLoading),
          unsent_(count),
          k_(a.k.template head<T>(t, tile.b0, tile.b1, tile.b2) + first * a.k.row, a.k.row, end - first, a.depth,
             at.of_ring()),
          v_(a.v.template head<T>(t, tile.b0, tile.b1, tile.b2) + first * a.v.row, a.v.row, end - first, a.columns,
             at.of_ring()) {}

    // Begins to bring the next stage, if there is one, to a place of the ring: free() is that of the stage before the
    // one that was taken last. Tiles of several heads have no registers for counting what is sent; the others are
    // faster if they count.
    RT_DEVICE void send(bool there, int to) {
      if constexpr (!Together) there = unsent_ > 0, to = to_;
      if (there && loads_) {
        T* const stage = reinterpret_cast<T*>(memory_) + to * kStage;
        k_.template issue<kStep>(stage, place_);
        v_.template issue<kStep>(stage + kHalf, place_);
      }
      --unsent_;
      rt::cp_async_commit();
      to_ = following(to_);
    }
    RT_DEVICE int free() const { return taken_ < 3 ? taken_ + ST - 3 : taken_ - 3; }
    // Waits for the next stage; `Behind` later ones may still be on their way. All threads that share the ring have
    // ended then with the stage before the one that they took last, so that send() has a place.
    template <int Behind>
    RT_DEVICE rt::OperandPlace take(const rt::Task& t, const Place& at) {
      rt::cp_async_wait<Behind>();
      rt::operands_written();
      ring_barrier(t, at);
      const rt::OperandPlace stage = operands_ + taken_ * kBytes;
      taken_ = following(taken_);
      return stage;
    }

   private:
    static constexpr int kBytes = static_cast<int>(sizeof(T)) * kStage;
    static RT_DEVICE int following(int place) { return place + 1 == ST ? 0 : place + 1; }

    char* memory_;
    rt::OperandPlace operands_;  // the ring
    int place_;                  // where the thread's first run of the ring's first place is, in elements of memory_
    bool loads_;
    int unsent_, to_ = 0, taken_ = 0;
    Loader k_, v_;
  };

  // Adds all stages, of which there is one at least, to s.
  static RT_DEVICE void attend(const rt::Task& t, const HeadTile& tile, const Place& at,
                               const typename Softmax::Rows& rows, float factor, const T* sq, Stages& stages,
                               typename Softmax::State& s) {
    constexpr int kValues = static_cast<int>(sizeof(T)) * kHalf;  // bytes from the keys of a stage to its values
    const rt::OperandPlace queries = sq;
    Scores x;
    Weights w;
    int key = stages.first;
    rt::OperandPlace stage = stages.template take<ST - 2>(t, at);
    begin_scores(rt::operand_in_warp(queries), rt::operand_in_warp(stage), x);
    Mask mask(rows, at.first_of(key));
    rt::multiplied(flat(x));
    RK_UNROLL(1)
    for (;;) {
      // The product of the stage before with V may still run.
      mask.add(factor, x);
      Softmax::hide(rows, tile, key, at.first_of(key), x);
      typename Softmax::Factors keep;
      Softmax::weigh(t, Masked ? 1.0f : factor, x, s, keep);
      rt::multiplied(flat(s.out));
      Softmax::rescale(keep, s.out);
      narrow(x, w);
      key += Stages::kStep;
      if (key >= rows.end) break;
      const rt::OperandPlace values = stage + kValues;
      stage = stages.template take<ST - 3>(t, at);
      begin_scores(rt::operand_in_warp(queries), rt::operand_in_warp(stage), x);
      begin_sums(rt::operand_in_warp(values), w, s.out);
      stages.send(key + (ST - 2) * Stages::kStep < rows.end, stages.free());
      mask = Mask(rows, at.first_of(key));
      rt::multiplied_but<1>(flat(x));
    }
    begin_sums(rt::operand_in_warp(stage + kValues), w, s.out);
    rt::multiplied(flat(s.out));
  }

  static RT_DEVICE void finish(const rt::Task& t, const Args& a, const HeadTile& tile, const Place& at, float factor,
                               typename Softmax::State& s, char* memory) {
    const typename Results::Place of_rows{kJoined > 1 ? t.tid : at.tid, kJoined > 1 ? at.group : 0,
                                          at.row - at.first_row, at.lane % 4};
    char* own = memory;
    float* stats = reinterpret_cast<float*>(memory + kBody);
    if constexpr (kJoined == 1) {
      constexpr int kOwn = Results::kRounded ? static_cast<int>(sizeof(T)) * kQueries : Results::kSums;
      own = reinterpret_cast<char*>(at.unit(memory)) + at.member() * kOwn;
      stats += at.group * (Results::kStats / 4);
    }
    Results::template finish<1>(t, a, tile, at.first_row, of_rows, factor, s, reinterpret_cast<float*>(own), stats,
                                [&] {
                                  if constexpr (Results::kRounded) {
                                    // Barriers of the warp groups' own numbers may be those of the ring.
                                    rt::group_barrier(t, WG + at.group);
                                  } else if constexpr (kJoined > 1) {
                                    t.sync();
                                  } else {
                                    ring_barrier(t, at);
                                  }
                                });
  }

  // The elements of a lane as matrix instructions take them, in one list.
  template <int N>
  static RT_DEVICE auto flat(float (&x)[1][N][4]) -> float (&)[4 * N] {
    return reinterpret_cast<float(&)[4 * N]>(x);
  }

  // The mask of a lane's scores, if there is one. It is on its way while scores are computed.
  template <int M, class = void>
  struct MaskOf {
    RT_DEVICE MaskOf(const typename Softmax::Rows&, int) {}
    RT_DEVICE void add(float, Scores&) const {}
  };
  template <class Any>
  struct MaskOf<1, Any> {
    Scores of;
    RT_DEVICE MaskOf(const typename Softmax::Rows& rows, int key) { Softmax::load_mask(rows, key, of); }
    // Scales the scores, and adds the mask.
    RT_DEVICE void add(float factor, Scores& x) const {
      RT_UNROLL
      for (int j = 0; j < KT / 8; ++j) {
        RT_UNROLL
        for (int e = 0; e < 4; ++e) x[0][j][e] = x[0][j][e] * factor + of[0][j][e];
      }
    }
  };
  using Mask = MaskOf<Masked>;

  // Begins x = Q·Kᵀ.
  static RT_DEVICE void begin_scores(rt::OperandPlace queries, rt::OperandPlace keys, Scores& x) {
    constexpr int kSize = static_cast<int>(sizeof(T));
    rt::multiply_begin();
    RT_UNROLL
    for (int d = 0; d < DM; d += 16) {
      const rt::OperandPlace q = queries + kSize * (d / 64 * QueryBlocks::kBlock + d % 64);
      const rt::OperandPlace k = keys + kSize * (d / 64 * KeyBlocks::kBlock + d % 64);
      if constexpr (std::is_same_v<T, half>) {
        rt::multiply_f16_columns<KT>(flat(x), q, k, d > 0);
      } else {
        rt::multiply_bf16_columns<KT>(flat(x), q, k, d > 0);
      }
    }
    rt::multiply_end();
  }

  // Weights as a left operand: numbers of T. They need no exchange between lanes: what the first product leaves a lane
  // of two neighbouring fragments is a fragment of the second one.
  using Weights = uint32_t[KT / 16][4];
  static RT_DEVICE void narrow(const Scores& p, Weights& w) {
    RT_UNROLL
    for (int j = 0; j < KT / 16; ++j) {
      RT_UNROLL
      for (int e = 0; e < 4; ++e) {
        const float* two = p[0][2 * j + e / 2] + e % 2 * 2;
        w[j][e] = narrow_pair<T>(two[0], two[1]);
      }
    }
  }

  // Begins out += weights · V.
  static RT_DEVICE void begin_sums(rt::OperandPlace values, const Weights& w, typename Softmax::Sums& out) {
    constexpr int kSize = static_cast<int>(sizeof(T));
    rt::multiply_begin();
    RT_UNROLL
    for (int j = 0; j < KT / 16; ++j) {
      const rt::OperandPlace v = values + kSize * (j * 16 * KeyBlocks::kColumns);
      constexpr int kPitch = kSize * KeyBlocks::kBlock;
      if constexpr (std::is_same_v<T, half>) {
        rt::multiply_f16_depths<DM>(flat(out), w[j], v, kPitch, true);
      } else {
        rt::multiply_bf16_depths<DM>(flat(out), w[j], v, kPitch, true);
      }
    }
    rt::multiply_end();
  }
};

}  // namespace rk
