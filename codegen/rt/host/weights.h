// The weights file: constants and program tables. It is read and checked once for each device, and all contexts of the
// process share what was loaded.
//
// Layout, little-endian: a WeightsHeader, the constants (weights_bytes, each aligned to kConstantAlign), the program
// tables (tables_bytes), and a trailer of 8 bytes with the XXH64 hash of everything between.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <sys/stat.h>

#include "rt/exec/executor.cuh"
#include "rt/host/hash.h"
#include "rt/host/model.h"

namespace rt {

inline void library_anchor() {}

// The folder of the shared library, or of the program, that this code is a part of.
inline std::string library_folder() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&library_anchor), &info) == 0 || info.dli_fname == nullptr) return ".";
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

class WeightsReader {
 public:
  WeightsReader(const Model& m, const std::string& path) : model_(m), path_(path) {
    // Opening a pipe would wait for whoever writes into it.
    struct stat found;
    if (stat(path.c_str(), &found) == 0 && !S_ISREG(found.st_mode)) {
      throw Error{kWeightsMissing, "weights file " + path + " is not a regular file"};
    }
    file_.reset(std::fopen(path.c_str(), "rb"));
    if (!file_) throw Error{kWeightsMissing, "weights file " + path + ": " + std::strerror(errno)};
    WeightsHeader h;
    if (std::fread(&h, 1, sizeof h, file_.get()) != sizeof h ||
        std::memcmp(h.magic, kWeightsMagic, sizeof h.magic) != 0) {
      throw Error{kWeightsMismatch, path + " is not a weights file"};
    }
    if (h.version != kWeightsVersion) {
      throw Error{kWeightsMismatch, path + " has format version " + std::to_string(h.version) + ", want " +
                                        std::to_string(kWeightsVersion)};
    }
    if (h.weights_bytes != m.weights_bytes || h.tables_bytes != m.tables_bytes) {
      throw Error{kWeightsMismatch, path + " belongs to another program than " + m.name + ": its sizes differ"};
    }
  }

  // Reads the next n bytes of the payload.
  void read(void* to, size_t n) {
    if (std::fread(to, 1, n, file_.get()) != n) throw Error{kWeightsMismatch, path_ + " is cut short"};
    hash_.add(to, n);
  }

  // Called after the whole payload has been read. Throws unless the file is undamaged, and the one that this program
  // was compiled with.
  void check() {
    uint64_t stored = 0;
    if (std::fread(&stored, 1, sizeof stored, file_.get()) != sizeof stored) {
      throw Error{kWeightsMismatch, path_ + " is cut short"};
    }
    const uint64_t found = hash_.value();
    if (found == model_.weights_hash) return;
    char text[160];
    std::snprintf(text, sizeof text, "%s: its hash is %016llx, %s wants %016llx",
                  found == stored ? " belongs to another program" : " is damaged",
                  static_cast<unsigned long long>(found), model_.name,
                  static_cast<unsigned long long>(model_.weights_hash));
    throw Error{kWeightsMismatch, path_ + text};
  }

 private:
  struct Close {
    void operator()(FILE* f) const { std::fclose(f); }
  };
  const Model& model_;
  std::string path_;
  std::unique_ptr<FILE, Close> file_;
  Hash hash_;
};

// Device memory that is released with its owner.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(size_t bytes) : at_(static_cast<char*>(dev::allocate(bytes < 256 ? 256 : bytes))) {}
  DeviceBuffer(DeviceBuffer&& o) noexcept : at_(o.at_) { o.at_ = nullptr; }
  DeviceBuffer& operator=(DeviceBuffer&& o) noexcept {
    std::swap(at_, o.at_);
    return *this;
  }
  ~DeviceBuffer() {
    if (at_) dev::release(at_);
  }
  char* get() const { return at_; }

 private:
  char* at_ = nullptr;
};

// Constants, tables and arguments of a program on one device. The special programs of a general one have its constants.
class Weights {
 public:
  Weights(const Model& m, const std::string& path) : constants_(std::make_shared<DeviceBuffer>(m.weights_bytes)) {
    WeightsReader in(m, path);
    std::vector<char> chunk(size_t{8} << 20);
    for (uint64_t done = 0; done < m.weights_bytes;) {
      const size_t n =
          static_cast<size_t>(m.weights_bytes - done < chunk.size() ? m.weights_bytes - done : chunk.size());
      in.read(chunk.data(), n);
      dev::upload(constants() + done, chunk.data(), n);
      done += n;
    }
    std::vector<char> tables(static_cast<size_t>(m.tables_bytes));
    in.read(tables.data(), tables.size());
    in.check();
    const auto own = static_cast<std::ptrdiff_t>(m.own_tables_bytes);
    packed_.assign(tables.begin() + own, tables.end());
    tables.resize(m.own_tables_bytes);
    place(m, tables);
  }
  // Those of a special program with the given tables.
  Weights(const Model& m, const Weights& general, std::vector<char> tables) : constants_(general.constants_) {
    place(m, tables);
  }
  char* constants() const { return constants_->get(); }
  char* tables() const { return tables_.get(); }
  char* args() const { return args_.get(); }
  // The offset of an rOperator's Args in args().
  uint32_t args_of(int op) const { return offsets_[static_cast<size_t>(op)]; }
  // The tables of the file that stand behind the program's own: the packed ones of special programs.
  const std::vector<char>& packed() const { return packed_; }

 private:
  void place(const Model& m, std::vector<char>& tables) {
    place_args(m, tables);
    tables_ = DeviceBuffer(tables.size());
    dev::upload(tables_.get(), tables.data(), tables.size());
  }

  // Packs the Args of all rOperators one behind the other, and writes into each step's row where its own are. They are
  // in the source, not in the weights file, because only the compiler knows their layout.
  void place_args(const Model& m, std::vector<char>& tables) {
    std::vector<char> packed;
    for (int i = 0; i < m.op_count; ++i) {
      const OpRow& row = m.ops[i];
      offsets_.push_back(static_cast<uint32_t>(packed.size()));
      packed.resize(packed.size() + (row.args_bytes + 15) / 16 * 16);
      std::memcpy(packed.data() + offsets_.back(), row.args, row.args_bytes);
    }
    for (int i = 0; i < m.segment_count; ++i) {
      const SegmentRow& seg = m.segments[i];
      for (uint64_t k = 0; k < seg.step_count; ++k) {
        Step s;
        char* at = tables.data() + seg.steps + k * sizeof(Step);
        std::memcpy(&s, at, sizeof s);
        s.args = offsets_[s.op];
        s.args_words = static_cast<uint16_t>((m.ops[s.op].args_bytes + 15) / 16);
        std::memcpy(at, &s, sizeof s);
      }
    }
    args_ = DeviceBuffer(packed.size());
    dev::upload(args_.get(), packed.data(), packed.size());
  }

  std::shared_ptr<DeviceBuffer> constants_;
  std::vector<char> packed_;
  DeviceBuffer tables_, args_;
  std::vector<uint32_t> offsets_;  // of the rOperators' Args
};

// Throws unless the file at path is the program's.
inline void check_weights(const Model& m, const std::string& path) {
  WeightsReader in(m, path);
  std::vector<char> chunk(size_t{1} << 20);
  for (uint64_t left = m.weights_bytes + m.tables_bytes; left > 0;) {
    const size_t n = static_cast<size_t>(left < chunk.size() ? left : chunk.size());
    in.read(chunk.data(), n);
    left -= n;
  }
  in.check();
}

// The weights of a model on a device. The first context loads them by make, and the last one releases them. A context
// that names another file shares them, too, if that file holds the same.
template <class Make>
std::shared_ptr<Weights> share_weights(const Model& m, const std::string& path, int device, Make make) {
  struct Entry {
    std::weak_ptr<Weights> weights;
    std::string path;
  };
  static std::mutex mutex;
  static std::map<std::pair<const Model*, int>, Entry> loaded;
  std::lock_guard<std::mutex> hold(mutex);
  Entry& e = loaded[{&m, device}];
  if (std::shared_ptr<Weights> w = e.weights.lock()) {
    if (path != e.path) check_weights(m, path);
    return w;
  }
  const std::shared_ptr<Weights> w = make();
  e = Entry{w, path};
  return w;
}

}  // namespace rt
