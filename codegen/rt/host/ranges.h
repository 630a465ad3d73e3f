// What a general program has beside a Model: the ranges of dims, and what its tensors have of them.
#pragma once

#include <string>

#include "rt/host/model.h"

namespace rt {

// A dim whose extent a run tells, within a range.
struct Range {
  const char* name;
  int64_t lo, hi;
  const int64_t* values;  // the only extents that are allowed, ascending; or null
  int value_count;
  bool found;    // the device finds the extent
  bool derived;  // it is a sum of others
  bool state;    // it is how far a state has grown
  int output;    // the output of the model that tells it, or -1 where no tensor of the caller has it
};

// A part of a dim of a tensor: the largest extent, and the number of the range that it belongs to, or -1.
struct Factor {
  int64_t n;
  int range;
};

// A tensor of the caller. Dim d is the product of the factors cuts[d] to cuts[d + 1] - 1; the last one counts fastest.
struct GeneralPort {
  const char* name;
  size_t element;  // bytes
  int rank;
  const int* cuts;
  const Factor* factors;
};

// An output of the model that the context keeps, and with which the next run begins. Its factors are those of the input
// that it is for; a dim that grows has as many places as there is room for.
struct StatePort {
  GeneralPort port;
  int output;
  bool grows;
  bool repeats;  // a bool: an inference runs the program again and again while it is true
};

// An output of the model that its caller does not see, one int64. A run in which it is not 0 fails with the message: an
// input has a value for which the program was not made.
struct Requirement {
  int output;
  const char* message;
};

struct Special;

// What a general program has beside a Model.
struct General {
  const char* name;  // the extents that it takes, as JSON
  int range_count;
  const Range* ranges;
  const GeneralPort* inputs;
  int output_count;  // that the caller sees
  const GeneralPort* outputs;
  // Writes extents into the Args of rOperators, by their numbers.
  void (*apply)(char* const* args, const int64_t* extents);
  void (*derive)(int64_t* extents);  // computes those that are sums of others
  int state_count;
  const StatePort* states;
  void (*advance)(int64_t* extents);  // lets states grow by a run
  const Requirement* requirements;    // the last one has no message
  int special_count;
  const Special* specials;  // the smallest first
  bool apart;               // each program takes one combination of extents alone
  // Of a program that repeats: one that comes before its first run and leaves states to it (repeat.h). It has the same
  // inputs and one more, whose length is how far the states that grow are then, and those states as outputs.
  const Special* prompt;
};

// A program for a part of the ranges of a general one, with the same ranges in the same order.
struct Special {
  const Model* model;
  const General* general;
};

inline bool allows(const Range& r, int64_t n) {
  if (n < r.lo || n > r.hi) return false;
  for (int i = 0; i < r.value_count; ++i) {
    if (r.values[i] == n) return true;
  }
  return r.value_count == 0;
}

// A range as --dim spells it.
inline std::string text(const Range& r) {
  std::string s = std::string(r.name) + "=";
  if (r.value_count == 0) return s + std::to_string(r.lo) + ".." + std::to_string(r.hi);
  for (int i = 0; i < r.value_count; ++i) s += (i > 0 ? "," : "") + std::to_string(r.values[i]);
  return s;
}

}  // namespace rt
