// States that a context keeps, copied to the host and back.
#pragma once

#include "rt/host/special.h"

namespace rt {

// Copies the states to memory of the host. With a null pointer it only sets *bytes to what that takes.
template <class Program>
void GeneralContext<Program>::save_states(void* to, size_t* bytes) {
  std::lock_guard<std::mutex> hold(mutex_);
  whole_.set_extents(extents_);
  applied_ = extents_;
  const size_t size = header_bytes() + whole_.state_bytes();
  if (to && *bytes < size) throw Error{kBadArgument, "the states take " + std::to_string(size) + " bytes"};
  *bytes = size;
  if (!to) return;
  char* at = static_cast<char*>(to);
  std::memcpy(std::copy_n(kStateMagic, 8, at), extents_.data(), header_bytes() - 8);
  whole_.move_states(at + header_bytes(), false);
}

// Goes on with states that a context of this library, or of one with the same states, has saved.
template <class Program>
void GeneralContext<Program>::load_states(const void* from, size_t bytes) {
  std::lock_guard<std::mutex> hold(mutex_);
  const char* at = static_cast<const char*>(from);
  if (!from || bytes < header_bytes() || std::memcmp(at, kStateMagic, 8) != 0) {
    throw Error{kBadArgument, "these are no saved states of this library"};
  }
  std::vector<int64_t> extents(extents_.size());
  std::memcpy(extents.data(), at + 8, header_bytes() - 8);
  for (size_t r = 0; r < extents.size(); ++r) {
    const Range& range = general_.ranges[r];
    const int64_t most = range.state ? capacity() : range.hi;
    if (!range.derived && !range.found && (extents[r] < range.lo || extents[r] > most)) {
      throw Error{kBadArgument, "in the saved states " + std::string(range.name) + " is " + std::to_string(extents[r]) +
                                    ", want " + text(range)};
    }
  }
  general_.derive(extents.data());
  whole_.set_extents(extents);
  applied_ = extents_ = first_ = extents;
  if (bytes != header_bytes() + whole_.state_bytes()) {
    throw Error{kBadArgument, "the saved states have another number of bytes"};
  }
  whole_.move_states(const_cast<char*>(at) + header_bytes(), true);
  begun_ = true;
}

}  // namespace rt
