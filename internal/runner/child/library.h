// An emitted library that was loaded at run time.
#pragma once

#include <dlfcn.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <type_traits>

#include "driver.h"
#include "model.h"

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// The functions of the C interface, whatever their prefix.
struct Library {
  decltype(&model_create) create;
  decltype(&model_run) run;
  decltype(&model_run_async) run_async;
  decltype(&model_destroy) destroy;
  decltype(&model_last_error) last_error;
  decltype(&model_io_info) io_info;
  decltype(&model_build_info) build_info;
  decltype(&model_run_info) run_info;
  decltype(&model_trace) trace;
  // Only libraries that keep states have these.
  decltype(&model_state_reset) state_reset = nullptr;
  decltype(&model_state_length) state_length = nullptr;
  decltype(&model_state_seek) state_seek = nullptr;
  // Only libraries of general programs have these.
  decltype(&model_set_dims) set_dims = nullptr;
  decltype(&model_ctx_io) ctx_io = nullptr;
  decltype(&model_dims_info) dims_info = nullptr;

  double load_ms;  // how long it took to load

  Library(const char* path, const std::string& prefix) {
    const Clock::time_point start = Clock::now();
    void* lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);  // the same handle each time
    if (!lib) throw Failure{-1, dlerror()};
    auto find = [&](auto& to, const char* name) {
      void* f = dlsym(lib, (prefix + name).c_str());
      if (!f) throw Failure{-1, std::string(path) + " has no function " + prefix + name};
      to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(f);
    };
    find(create, "_create"), find(run, "_run"), find(run_async, "_run_async"), find(destroy, "_destroy");
    find(last_error, "_last_error"), find(io_info, "_io_info");
    find(build_info, "_build_info"), find(run_info, "_run_info"), find(trace, "_trace");
    if (dlsym(lib, (prefix + "_state_reset").c_str())) {
      find(state_reset, "_state_reset"), find(state_length, "_state_length"), find(state_seek, "_state_seek");
    }
    if (dlsym(lib, (prefix + "_set_dims").c_str())) {
      find(set_dims, "_set_dims"), find(ctx_io, "_ctx_io"), find(dims_info, "_dims_info");
    }
    load_ms = milliseconds_since(start);
  }
};

// What a client is told of a library's tensors, as JSON.
inline void quote(std::string& s, const char* text) {
  s += '"';
  for (; *text; ++text) {
    const unsigned char c = static_cast<unsigned char>(*text);
    char escaped[8];
    if (c < ' ' || c == '"' || c == '\\') {
      std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
      s += escaped;
    } else {
      s += *text;
    }
  }
  s += '"';
}

inline void tensors(std::string& s, const model_tensor* t, int count) {
  for (int i = 0; i < count; ++i) {
    s += i ? ",{\"name\":" : "{\"name\":";
    quote(s, t[i].name);
    s += ",\"dtype\":" + std::to_string(t[i].dtype) + ",\"bytes\":" + std::to_string(t[i].bytes) + ",\"dims\":[";
    for (int d = 0; d < t[i].rank; ++d) s += (d ? "," : "") + std::to_string(t[i].dims[d]);
    s += "]}";
  }
}

}  // namespace
