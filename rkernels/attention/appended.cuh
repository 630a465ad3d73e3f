// Keys and values of new tokens, which attention takes beside those of the tokens before, and what it does to them.
#pragma once

#include "attention/heads.cuh"
#include "indexed/index.cuh"

namespace rk {

// The last `count` keys and values, where they do not lie behind the others. FORM is what attention_few calls Appended.
template <int FORM>
struct AppendedRows {};
template <>
struct AppendedRows<1> {
  int32_t count;
  HeadMatrix k, v;
};
template <>
struct AppendedRows<3> {
  int32_t count;
  HeadMatrix k, v;
  HeadMatrix list;                                 // of int64, a row for each key: of which batch entry it is
  int32_t entries;                                 // how many there are
  int32_t k_step, v_step, new_k_step, new_v_step;  // elements from one to the next, in all keys and values
};
template <>
struct AppendedRows<2> {
  int32_t count;
  HeadMatrix k, v;
  HeadMatrix cos, sin;  // of the rotary embedding, a row for each new key and each query, or one for all
};

// The batch entries of N keys of a tile, each `apart` from the one before, where a list says them.
template <int FORM, int N>
struct KeyEntries {
  int at[N];

  template <class Args>
  RT_DEVICE KeyEntries(const rt::Task& t, const Args& a, const HeadTile& tile, int key, int apart, int end) {
    if constexpr (FORM == 3) {
      const HeadMatrix& m = a.appended.list;
      const int64_t* list = m.template head<int64_t>(t, tile.b0, tile.b1, tile.b2);
      RT_UNROLL
      for (int u = 0; u < N; ++u) {
        const int i = key + u * apart;
        at[u] = i < end ? place_of(*ahead(list, i, static_cast<int>(m.row)), a.appended.entries) : 0;
      }
    }
  }
};

// What the rotary embedding of N neighbours of a row, from column col on, takes beside them. turn is the row's number
// among those that have factors of their own.
template <class T, int N>
struct RotaryTurn {
  Pack<T, N> other, cos, sin;
  template <class Args>
  RT_DEVICE void load(const rt::Task& t, const Args& a, const HeadTile& tile, const T* row, int turn, int col) {
    const int half = a.depth / 2;
    const auto factors = [&](const HeadMatrix& m) {
      return *reinterpret_cast<const Pack<T, N>*>(m.template head<T>(t, tile.b0, tile.b1, tile.b2) +
                                                  place(turn, m.row, col));
    };
    other = *reinterpret_cast<const Pack<T, N>*>(row + (col >= half ? col - half : col + half));
    cos = factors(a.appended.cos), sin = factors(a.appended.sin);
  }
  template <class Args>
  RT_DEVICE void apply(const Args& a, int col, Pack<T, N>& x) const {
    RT_UNROLL
    for (int i = 0; i < N; ++i) {
      const float across = float(other.v[i]) * float(sin.v[i]);
      x.v[i] = T(float(x.v[i]) * float(cos.v[i]) + (col >= a.depth / 2 ? across : -across));
    }
  }
};

// rKernels with kEarly wait for their inputs by themselves.
template <int EARLY>
struct BeginsEarly {};
template <>
struct BeginsEarly<1> {
  static constexpr bool kEarly = true;
};
template <>
struct BeginsEarly<2> : BeginsEarly<1> {};

}  // namespace rk
