// XXH64 with seed 0, computed piece by piece. It tells a damaged weights file, or another program's, from the right
// one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rt {

class Hash {
 public:
  void add(const void* data, size_t n) {
    const unsigned char* p = static_cast<const unsigned char*>(data);
    total_ += n;
    if (held_ > 0) {
      const size_t take = n < 32 - held_ ? n : 32 - held_;
      std::memcpy(block_ + held_, p, take);
      held_ += take, p += take, n -= take;
      if (held_ < 32) return;
      stripe(block_);
      held_ = 0;
    }
    for (; n >= 32; p += 32, n -= 32) stripe(p);
    std::memcpy(block_, p, n);
    held_ = n;
  }

  uint64_t value() const {
    uint64_t h = kP5;
    if (total_ >= 32) {
      h = rotate(lane_[0], 1) + rotate(lane_[1], 7) + rotate(lane_[2], 12) + rotate(lane_[3], 18);
      for (const uint64_t lane : lane_) h = (h ^ mix(0, lane)) * kP1 + kP4;
    }
    h += total_;
    size_t i = 0;
    for (; i + 8 <= held_; i += 8) h = rotate(h ^ mix(0, read<uint64_t>(block_ + i)), 27) * kP1 + kP4;
    for (; i + 4 <= held_; i += 4) h = rotate(h ^ read<uint32_t>(block_ + i) * kP1, 23) * kP2 + kP3;
    for (; i < held_; ++i) h = rotate(h ^ block_[i] * kP5, 11) * kP1;
    h = (h ^ h >> 33) * kP2;
    h = (h ^ h >> 29) * kP3;
    return h ^ h >> 32;
  }

 private:
  static constexpr uint64_t kP1 = 0x9E3779B185EBCA87, kP2 = 0xC2B2AE3D27D4EB4F, kP3 = 0x165667B19E3779F9,
                            kP4 = 0x85EBCA77C2B2AE63, kP5 = 0x27D4EB2F165667C5;
  static uint64_t rotate(uint64_t x, int r) { return x << r | x >> (64 - r); }
  static uint64_t mix(uint64_t lane, uint64_t x) { return rotate(lane + x * kP2, 31) * kP1; }
  template <class T>
  static uint64_t read(const unsigned char* p) {
    T x;
    std::memcpy(&x, p, sizeof x);
    return x;
  }
  void stripe(const unsigned char* p) {
    for (int i = 0; i < 4; ++i) lane_[i] = mix(lane_[i], read<uint64_t>(p + 8 * i));
  }

  uint64_t lane_[4] = {kP1 + kP2, kP2, 0, 0 - kP1};
  unsigned char block_[32];
  size_t held_ = 0;
  uint64_t total_ = 0;
};

}  // namespace rt
