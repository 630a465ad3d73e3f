// Packed program tables (codegen/packing.go):
//
//   words    uint32             how many words of 32 bits the table has
//   period   uint32             all words but the first `period` ones are differences to the word so many words before
//   tokens   until the end      how many bytes follow, these bytes; how many bytes to copy, from how far back
//
// where numbers have seven bits in each byte, the low ones first, and the eighth bit says that more follow.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "rt/host/model.h"

namespace rt {

class Unpacker {
 public:
  Unpacker(const char* at, size_t n) : at_(reinterpret_cast<const uint8_t*>(at)), end_(at_ + n) {}

  // The table. Throws if what is packed is damaged, which the hash of the weights file should have shown.
  std::vector<char> table() {
    const uint32_t words = word(), period = word();
    std::vector<char> out;
    out.reserve(size_t{4} * words);
    while (at_ < end_) {
      const size_t plain = number();
      if (plain > static_cast<size_t>(end_ - at_)) damaged();
      out.insert(out.end(), at_, at_ + plain);
      at_ += plain;
      const size_t copied = number(), back = number();
      if (copied > 0 && (back == 0 || back > out.size())) damaged();
      for (size_t i = 0; i < copied; ++i) out.push_back(out[out.size() - back]);  // a copy may reach into itself
    }
    if (out.size() != size_t{4} * words) damaged();
    sum(out, period);
    return out;
  }

 private:
  [[noreturn]] static void damaged() { throw Error{kWeightsMismatch, "packed program tables are damaged"}; }

  uint32_t word() {
    uint32_t w = 0;
    if (end_ - at_ < static_cast<ptrdiff_t>(sizeof w)) damaged();
    std::memcpy(&w, at_, sizeof w);
    at_ += sizeof w;
    return w;
  }

  size_t number() {
    size_t n = 0;
    for (int shift = 0; at_ < end_ && shift < 35; shift += 7) {
      const uint8_t byte = *at_++;
      n |= size_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return n;
    }
    damaged();
  }

  // Turns differences into words.
  static void sum(std::vector<char>& table, uint32_t period) {
    const size_t step = size_t{4} * period;
    for (size_t i = step; i < table.size(); i += 4) {
      uint32_t word = 0, before = 0;
      std::memcpy(&word, table.data() + i, sizeof word);
      std::memcpy(&before, table.data() + i - step, sizeof before);
      word += before;
      std::memcpy(table.data() + i, &word, sizeof word);
    }
  }

  const uint8_t *at_, *end_;
};

}  // namespace rt
