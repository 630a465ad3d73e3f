// Keys and values of new tokens, which attention takes beside those of the tokens before.
#pragma once

#include "attention/heads.cuh"

namespace rk {

// The last keys and values, where they do not lie behind the others. FORM is what attention_few calls Appended.
template <int FORM>
struct AppendedRows {};
template <>
struct AppendedRows<1> {
  int32_t past;  // how many keys lie before them, in K and V
  HeadMatrix k, v;
};
template <>
struct AppendedRows<2> {
  int32_t past;
  HeadMatrix k, v;
  HeadMatrix cos, sin;  // of the rotary embedding, a row for each new key and each query, or one for all
};

}  // namespace rk
