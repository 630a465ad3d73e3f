// The checks of the pointers that a caller gives for inputs and outputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "rt/host/environment.h"
#include "rt/host/model.h"

namespace rt {

// The memory of a tensor of the caller.
struct Span {
  const char* side;  // "input ", "output "
  const char* name;
  const void* first;
  size_t bytes;
};

// Throws unless a tensor with elements has a pointer, aligned to 16 bytes where kernels use it in place, since they
// load vectors.
inline void check_pointer(const Span& s, bool in_place) {
  if (!s.first && s.bytes > 0) throw Error{kBadArgument, std::string(s.side) + s.name + " is a null pointer"};
  if (in_place && reinterpret_cast<uintptr_t>(s.first) % 16 != 0) {
    throw Error{kBadArgument, std::string(s.side) + s.name + " is not aligned to 16 bytes"};
  }
}

inline bool overlap(const Span& a, const Span& b) {
  const auto at = [](const Span& s) { return reinterpret_cast<uintptr_t>(s.first); };
  return a.bytes > 0 && b.bytes > 0 && at(a) < at(b) + b.bytes && at(b) < at(a) + a.bytes;
}

// Throws if an output shares memory with another output or, where kernels use tensors in place, with an input: an rTask
// could overwrite what another one still reads. span(is_output, i) is the memory of a port.
template <class SpanOf>
void check_pointers(const Model& m, bool in_place, SpanOf span) {
  for (int i = 0; i < m.input_count; ++i) check_pointer(span(false, i), in_place);
  for (int i = 0; i < m.output_count; ++i) {
    const Span out = span(true, i);
    check_pointer(out, in_place);
    const auto refuse = [&out](const Span& other) {
      if (overlap(out, other)) {
        throw Error{kBadArgument, std::string(out.side) + out.name + " overlaps " + other.side + other.name};
      }
    };
    for (int k = 0; in_place && k < m.input_count; ++k) refuse(span(false, k));
    for (int k = 0; k < i; ++k) refuse(span(true, k));
  }
}

}  // namespace rt
