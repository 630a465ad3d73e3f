// A library that rammerc has compiled, loaded at run time: NAME is known only then, so its functions are looked up.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace rammer {

// These are laid out as NAME_options, NAME_tensor and NAME_io are in the header of each library; check_layout.cc
// compares them with one.
struct Options {
  size_t size;
  const char* weights_path;
  int device;  // CUDA device + 1; 0: the current one
  int mode;
  uint64_t watchdog_ns;
  uint64_t emu_seed;
  int emu_max_blocks;
  uint64_t delay_seed;
};
struct Tensor {
  const char* name;
  int dtype;  // ONNX TensorProto.DataType
  int rank;
  const int64_t* dims;
  size_t bytes;
};
struct Io {
  int input_count;
  const Tensor* inputs;
  int output_count;
  const Tensor* outputs;
};
enum { kOk = 0, kBadArgument = 1, kDeviceLost = 10 };
enum { kHost = 0 };

class Library {
 public:
  // folder holds one libNAME.so, with NAME.weights beside it.
  explicit Library(const std::filesystem::path& folder) {
    const std::filesystem::path file = only_library(folder);
    const std::string stem = file.stem().string();
    prefix_ = stem.substr(3) + "_";
    handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle_) throw std::runtime_error(dlerror());
    find(create, "create");
    find(run, "run");
    find(destroy, "destroy");
    find(last_error, "last_error");
    find(io_info, "io_info");
    has_states = dlsym(handle_, (prefix_ + "state_reset").c_str()) != nullptr;
    if (dlsym(handle_, (prefix_ + "set_dims").c_str()) == nullptr) return;
    find(set_dims, "set_dims");
    find(ctx_io, "ctx_io");
    find(dims_info, "dims_info");
  }
  ~Library() {
    if (handle_) dlclose(handle_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  int (*create)(const Options*, void** ctx) = nullptr;
  int (*run)(void* ctx, const void* const in[], void* const out[], int memory) = nullptr;
  void (*destroy)(void* ctx) = nullptr;
  const char* (*last_error)(const void* ctx) = nullptr;
  const Io* (*io_info)() = nullptr;
  // Only libraries whose inputs have dims with ranges, or several extents, have these.
  int (*set_dims)(void* ctx, const int64_t* const dims[]) = nullptr;
  const Io* (*ctx_io)(const void* ctx) = nullptr;
  const char* (*dims_info)() = nullptr;
  bool has_states = false;

 private:
  static std::filesystem::path only_library(const std::filesystem::path& folder) {
    std::filesystem::path found;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      const std::string name = entry.path().filename().string();
      if (name.rfind("lib", 0) != 0 || entry.path().extension() != ".so") continue;
      if (!found.empty()) throw std::runtime_error(folder.string() + ": holds several libraries");
      found = entry.path();
    }
    if (found.empty()) throw std::runtime_error(folder.string() + ": holds no libNAME.so");
    return found;
  }
  template <typename F>
  void find(F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(handle_, (prefix_ + name).c_str()));
    if (!function) throw std::runtime_error("the library has no function " + prefix_ + name);
  }
  void* handle_ = nullptr;
  std::string prefix_;
};

// The dims of inputs or outputs in terms of symbols, in the JSON that NAME_dims_info returns, as texts: "batch", "3",
// "2*seq+1". side is "inputs" or "outputs".
inline std::vector<std::vector<std::string>> symbolic_dims(const std::string& json, const std::string& side,
                                                           int count) {
  std::vector<std::vector<std::string>> all;
  size_t at = json.find("\"" + side + "\":[");
  for (int i = 0; i < count; ++i) {
    at = json.find("\"dims\":[", at);
    if (at == std::string::npos) throw std::runtime_error("the library does not tell its dims: " + json);
    at += 8;
    const size_t end = json.find(']', at);
    std::vector<std::string> dims;
    while (at < end && json[at] == '"') {
      const size_t close = json.find('"', at + 1);
      dims.push_back(json.substr(at + 1, close - at - 1));
      at = close + (json[close + 1] == ',' ? 2 : 1);
    }
    all.push_back(std::move(dims));
  }
  return all;
}

inline bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace rammer
