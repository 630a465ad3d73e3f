// Numbers given in environment variables: settings for tests, and for programs that do not set an option.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

#include "rt/host/model.h"

namespace rt {

// The number in the environment variable, decimal or 0x…, or the other one where the variable is not set. Throws Error
// where it holds something else.
inline uint64_t environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  if (!text || !*text) return otherwise;
  char* end = nullptr;
  const uint64_t v = std::strtoull(text, &end, 0);
  if (*end) throw Error{kBadArgument, std::string("environment variable ") + name + ": want a number, found " + text};
  return v;
}

}  // namespace rt
