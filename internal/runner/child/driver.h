// The CUDA driver as the runner uses it.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

// A failure that the client is told of.
struct Failure {
  int status;
  std::string text;
};

// The CUDA driver, found at run time so that this program builds without CUDA. Null where there is none.
class Driver {
 public:
  explicit Driver(int device) {
    void* lib = dlopen("libcuda.so.1", RTLD_NOW);
    if (!lib) throw Failure{-1, "no CUDA driver on this machine"};
    auto find = [&](auto& to, const char* name) {
      to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(dlsym(lib, name));
      if (!to) throw Failure{-1, std::string("the CUDA driver has no ") + name};
    };
    int (*init)(unsigned) = nullptr;
    int (*retain)(void**, int) = nullptr;
    int (*set_current)(void*) = nullptr;
    find(init, "cuInit"), find(retain, "cuDevicePrimaryCtxRetain"), find(set_current, "cuCtxSetCurrent");
    find(alloc_, "cuMemAlloc_v2"), find(free_, "cuMemFree_v2");
    find(to_device_, "cuMemcpyHtoD_v2"), find(to_host_, "cuMemcpyDtoH_v2");
    find(make_stream_, "cuStreamCreate"), find(sync_, "cuStreamSynchronize"), find(make_event_, "cuEventCreate");
    find(record_, "cuEventRecord"), find(elapsed_, "cuEventElapsedTime"), find(event_sync_, "cuEventSynchronize");
    void* context = nullptr;
    check(init(0), "cuInit");
    check(retain(&context, device), "cuDevicePrimaryCtxRetain");
    check(set_current(context), "cuCtxSetCurrent");
    check(make_stream_(&stream, 1), "cuStreamCreate");  // 1: not ordered with the default stream
  }

  char* alloc(size_t n) {
    unsigned long long p = 0;
    check(alloc_(&p, n < 256 ? 256 : n), "cuMemAlloc");
    return reinterpret_cast<char*>(p);
  }
  void free(void* p) { free_(reinterpret_cast<unsigned long long>(p)); }
  void to_device(void* to, const void* from, size_t n) {
    if (n > 0) check(to_device_(reinterpret_cast<unsigned long long>(to), from, n), "cuMemcpyHtoD");
  }
  void to_host(void* to, const void* from, size_t n) {
    if (n > 0) check(to_host_(to, reinterpret_cast<unsigned long long>(from), n), "cuMemcpyDtoH");
  }
  // The nth event that times are taken with.
  void* event(size_t n) {
    if (n < events_.size()) return events_[n];
    void* e = nullptr;
    check(make_event_(&e, 0), "cuEventCreate");
    events_.push_back(e);
    return e;
  }
  void record(void* e) { check(record_(e, stream), "cuEventRecord"); }
  float elapsed(void* from, void* to) {
    float ms = 0;
    check(event_sync_(to), "cuEventSynchronize");
    check(elapsed_(&ms, from, to), "cuEventElapsedTime");
    return ms;
  }
  void sync() { check(sync_(stream), "cuStreamSynchronize"); }

  void* stream = nullptr;

 private:
  static void check(int code, const char* what) {
    if (code != 0) throw Failure{-1, std::string(what) + ": CUDA driver error " + std::to_string(code)};
  }
  std::vector<void*> events_;
  int (*alloc_)(unsigned long long*, size_t);
  int (*free_)(unsigned long long);
  int (*to_device_)(unsigned long long, const void*, size_t);
  int (*to_host_)(void*, unsigned long long, size_t);
  int (*make_stream_)(void**, unsigned);
  int (*sync_)(void*);
  int (*make_event_)(void**, unsigned);
  int (*record_)(void*, void*);
  int (*elapsed_)(float*, void*, void*);
  int (*event_sync_)(void*);
};

}  // namespace
