// Keys and values of new tokens, which attention takes beside those of the tokens before.
#pragma once

#include "attention/heads.cuh"

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

}  // namespace rk
