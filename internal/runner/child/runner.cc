// Runs an emitted library in a process of its own and serves one client over stdin and stdout.
//
// usage: runner LIBRARY PREFIX [key=value …]
//
// All integers are little-endian. The runner first sends a greeting, then answers each request with one
// reply: int32 status (of the C interface, or -1 for its own failures), uint64 length, that many bytes:
// the message when the status is not 0. A request is uint32 kind, uint32 a, uint32 b, then the bytes of
// all inputs:
//   0  end
//   1  run: the reply holds all outputs
//   2  bench: a warm-up runs, then b runs; the reply holds b doubles, milliseconds
//   3  repeat: a runs; the reply holds uint32 count of runs whose outputs differ from the first one's in any
//      bit; with b = 1 the first one was that of an earlier request
//   4  trace: a warm-up runs, then one more; the reply holds what that one recorded
//   5  one run; the reply holds a double, milliseconds by the host's clock
//   6  how the context runs by now, as JSON; no inputs follow
//   7  another variant of the library: its prefix follows, a bytes, instead of inputs, and the reply is a greeting.
//      Its context replaces the one before, unless none could be made
//   8  sets the extents of what follows: instead of inputs, an int64 for each dim of each input is behind the request;
//      the reply holds the inputs and outputs with these extents, as JSON
//   9  a contexts at once, each in a thread, b runs of each; the reply holds doubles, milliseconds: how long all took,
//      and
//      each run
//   10 a copies of all inputs to the device and of all outputs back, without runs; the reply holds 2a doubles
//   11 empties the states that the library keeps; no inputs follow
//   12 sets how far they have grown, an int64 behind the request; 2 to 5 leave them as far as they were
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "contexts.h"
#include "driver.h"
#include "library.h"
#include "model.h"

namespace {

using Buffers = std::vector<std::vector<char>>;

std::vector<void*> pointers(Buffers& b) {
  std::vector<void*> p;
  for (auto& x : b) p.push_back(x.data());
  return p;
}

class Session {
 public:
  Session(const char* path, const std::string& prefix, std::map<std::string, std::string> options)
      : lib_(path, prefix) {
    auto number = [&](const char* key) { return std::strtoull(options[key].c_str(), nullptr, 0); };
    on_device_ = number("on_device") != 0;
    const Clock::time_point start = Clock::now();
    const int device = static_cast<int>(number("device"));
    if (on_device_) driver_ = &driver(device > 0 ? device - 1 : 0);
    model_options& o = options_;
    o.size = sizeof o;
    weights_ = options["weights"];
    if (!weights_.empty()) o.weights_path = weights_.c_str();
    o.device = static_cast<int>(number("device"));
    o.mode = static_cast<int>(number("mode"));
    o.watchdog_ns = number("watchdog_ns");
    o.emu_seed = number("seed");
    o.emu_max_blocks = static_cast<int>(number("max_blocks"));
    o.delay_seed = number("delays");
    const int status = lib_.create(&o, &ctx_);
    if (status != 0) throw Failure{status, lib_.last_error(nullptr)};
    create_ms_ = milliseconds_since(start);
    io_ = lib_.io_info();
    for (int i = 0; i < io_->input_count; ++i) in_.emplace_back(io_->inputs[i].bytes + 1);
    for (int i = 0; i < io_->output_count; ++i) out_.emplace_back(io_->outputs[i].bytes + 1);
    if (on_device_) {
      for (int i = 0; i < io_->input_count; ++i) device_in_.push_back(driver_->alloc(io_->inputs[i].bytes));
      for (int i = 0; i < io_->output_count; ++i) device_out_.push_back(driver_->alloc(io_->outputs[i].bytes));
    }
  }
  ~Session() {
    lib_.destroy(ctx_);
    for (void* p : device_in_) driver_->free(p);
    for (void* p : device_out_) driver_->free(p);
  }

  // Buffers have room for the largest extents.
  std::string set_dims() {
    if (!lib_.set_dims) throw Failure{-1, "the library's extents are fixed"};
    std::vector<std::vector<int64_t>>& dims = dims_;
    dims.clear();
    for (int i = 0; i < io_->input_count; ++i) {
      dims.emplace_back(static_cast<size_t>(io_->inputs[i].rank) + 1);
      read_all(dims.back().data(), sizeof(int64_t) * static_cast<size_t>(io_->inputs[i].rank));
    }
    check(lib_.set_dims(ctx_, dims_list().data()));
    io_ = lib_.ctx_io(ctx_);
    return "{" + described() + "}";
  }

  std::string greeting() const {
    std::string s = "{" + described();
    if (lib_.dims_info) s += std::string(",\"ranges\":") + lib_.dims_info();
    char times[100];
    std::snprintf(times, sizeof times, ",\"load_ms\":%.6f,\"create_ms\":%.6f", lib_.load_ms, create_ms_);
    return s + times + ",\"build\":" + lib_.build_info() + ",\"run\":" + run_info() + "}";
  }

  std::string described() const {
    std::string s = "\"inputs\":[";
    tensors(s, io_->inputs, io_->input_count);
    s += "],\"outputs\":[";
    tensors(s, io_->outputs, io_->output_count);
    return s + "]";
  }

  std::string set_states(bool seek) {
    int64_t length = 0;
    if (seek) read_all(&length, sizeof length);
    if (!lib_.state_reset) throw Failure{-1, "the library keeps no states"};
    check(seek ? lib_.state_seek(ctx_, length) : lib_.state_reset(ctx_));
    return "";
  }

  // Whether runs leave the states that grow as they are.
  void hold(bool on) { held_ = on && lib_.state_length ? lib_.state_length(ctx_) : -1; }

  std::string run_info() const { return lib_.run_info(ctx_); }

  void read_inputs() {
    for (int i = 0; i < io_->input_count; ++i) read_all(in_[i].data(), io_->inputs[i].bytes);
    if (!on_device_) return;
    for (int i = 0; i < io_->input_count; ++i) driver_->to_device(device_in_[i], in_[i].data(), io_->inputs[i].bytes);
  }

  // Fills out_.
  void run() {
    run_in_place();
    if (!on_device_) return;
    for (int i = 0; i < io_->output_count; ++i) driver_->to_host(out_[i].data(), device_out_[i], io_->outputs[i].bytes);
  }

  // The outputs. Those of a general program have the extents of this run, which stand in front of them all, and as many
  // bytes as they may take.
  std::string outputs() const {
    std::string s;
    if (lib_.ctx_io) {
      const model_io* io = lib_.ctx_io(ctx_);
      for (int i = 0; i < io->output_count; ++i) {
        const model_tensor& t = io->outputs[i];
        s.append(reinterpret_cast<const char*>(t.dims), sizeof(int64_t) * static_cast<size_t>(t.rank));
      }
    }
    for (int i = 0; i < io_->output_count; ++i) s.append(out_[i].data(), io_->outputs[i].bytes);
    return s;
  }

  // Runs n times and counts the runs whose outputs differ from the first's, or from those of the request
  // before.
  uint32_t repeat(uint32_t n, bool go_on) {
    uint32_t different = 0;
    for (uint32_t i = 0; i < n; ++i) {
      run();
      if (i == 0 && !go_on) first_ = out_;
      different += out_ != first_;
    }
    return different;
  }

  std::vector<double> bench(uint32_t warm_up, uint32_t runs) {
    for (uint32_t i = 0; i < warm_up; ++i) run_in_place();
    return on_device_ ? device_times(runs) : host_times(runs);
  }

  std::vector<double> at_once(uint32_t contexts, uint32_t runs) {
    auto open = [this] {
      std::pair<model_ctx*, Tensors> made;
      const int status = lib_.create(&options_, &made.first);
      if (status != 0) throw Failure{status, lib_.last_error(nullptr)};
      if (!dims_.empty()) check(lib_.set_dims(made.first, dims_list().data()), made.first);
      for (int i = 0; i < io_->input_count; ++i) {
        made.second.in.push_back(on_device_ ? device_in_[i] : in_[i].data());  // all may read the same
      }
      for (const auto& x : out_)
        made.second.out.push_back(on_device_ ? driver_->alloc(x.size()) : std::malloc(x.size()));
      return made;
    };
    auto run = [this](model_ctx* c, Tensors& t) {
      check(lib_.run(c, t.in.data(), t.out.data(), on_device_ ? model_DEVICE : model_HOST), c);
    };
    auto close = [this](model_ctx* c, Tensors& t) {
      lib_.destroy(c);
      for (void* p : t.out) on_device_ ? driver_->free(p) : std::free(p);
    };
    return ::at_once(contexts, runs, open, run, close);
  }

  // The milliseconds of so many copies of all inputs to the device, and then of all outputs back.
  std::vector<double> copies(uint32_t n) {
    if (!on_device_) throw Failure{-1, "tensors are not in device memory"};
    std::vector<double> to, from;
    for (uint32_t i = 0; i < n; ++i) {
      const Clock::time_point start = Clock::now();
      for (int k = 0; k < io_->input_count; ++k) driver_->to_device(device_in_[k], in_[k].data(), io_->inputs[k].bytes);
      to.push_back(milliseconds_since(start));
      const Clock::time_point back = Clock::now();
      for (int k = 0; k < io_->output_count; ++k)
        driver_->to_host(out_[k].data(), device_out_[k], io_->outputs[k].bytes);
      from.push_back(milliseconds_since(back));
    }
    to.insert(to.end(), from.begin(), from.end());
    return to;
  }

  std::string trace(uint32_t warm_up) {
    for (uint32_t i = 0; i <= warm_up; ++i) run_in_place();
    size_t bytes = 0;
    check(lib_.trace(ctx_, nullptr, &bytes));
    std::string rows(bytes, 0);
    check(lib_.trace(ctx_, rows.data(), &bytes));
    return rows;
  }

  std::vector<double> host_times(uint32_t runs) {
    std::vector<double> ms;
    for (uint32_t i = 0; i < runs; ++i) {
      const Clock::time_point start = Clock::now();
      run_in_place();
      ms.push_back(milliseconds_since(start));
    }
    return ms;
  }

  // Reads a variant's prefix of so many bytes.
  static std::string read_prefix(uint32_t n) {
    std::string prefix(n, 0);
    read_all(prefix.data(), n);
    return prefix;
  }

  static void read_all(void* to, size_t n) {
    char* p = static_cast<char*>(to);
    while (n > 0) {
      const ssize_t k = ::read(0, p, n);
      if (k <= 0) std::exit(0);  // the client is gone
      p += k, n -= static_cast<size_t>(k);
    }
  }

 private:
  // The driver that all sessions use: they are on one device.
  static Driver& driver(int device) {
    static Driver one(device);
    return one;
  }

  void check(int status) { check(status, ctx_); }
  void check(int status, model_ctx* ctx) {
    if (status != 0) throw Failure{status, lib_.last_error(ctx)};
  }

  // The extents that set_dims has set, as the library takes them.
  std::vector<const int64_t*> dims_list() const {
    std::vector<const int64_t*> list;
    for (const std::vector<int64_t>& d : dims_) list.push_back(d.data());
    return list;
  }

  void back() {
    if (held_ >= 0) check(lib_.state_seek(ctx_, held_));
  }

  void run_in_place() {
    std::vector<void*> in = on_device_ ? device_in_ : pointers(in_), out = on_device_ ? device_out_ : pointers(out_);
    check(lib_.run(ctx_, in.data(), out.data(), on_device_ ? model_DEVICE : model_HOST));
    back();
  }

  // Device events around each run, all of them queued at once.
  std::vector<double> device_times(uint32_t runs) {
    for (uint32_t i = 0; i < 2 * runs; ++i) driver_->event(i);
    for (uint32_t i = 0; i < runs; ++i) {
      driver_->record(driver_->event(2 * i));
      check(lib_.run_async(ctx_, driver_->stream, device_in_.data(), device_out_.data()));
      driver_->record(driver_->event(2 * i + 1));
      back();
    }
    driver_->sync();
    std::vector<double> ms;
    for (uint32_t i = 0; i < runs; ++i)
      ms.push_back(driver_->elapsed(driver_->event(2 * i), driver_->event(2 * i + 1)));
    return ms;
  }

  const Library lib_;
  Driver* driver_ = nullptr;
  bool on_device_ = false;
  model_options options_ = {};
  std::string weights_;
  std::vector<std::vector<int64_t>> dims_;
  double create_ms_ = 0;
  int64_t held_ = -1;  // how far states that grow are to have grown behind a run; -1: as far as they do
  model_ctx* ctx_ = nullptr;
  const model_io* io_ = nullptr;
  Buffers in_, out_, first_;
  std::vector<void*> device_in_, device_out_;
};

int reply_fd = 1;

void write_all(const void* from, size_t n) {
  const char* p = static_cast<const char*>(from);
  while (n > 0) {
    const ssize_t k = ::write(reply_fd, p, n);
    if (k <= 0) std::exit(0);
    p += k, n -= static_cast<size_t>(k);
  }
}

void reply(int32_t status, const std::string& payload) {
  const uint64_t n = payload.size();
  write_all(&status, sizeof status);
  write_all(&n, sizeof n);
  write_all(payload.data(), n);
}

std::string doubles(const std::vector<double>& v) {
  return std::string(reinterpret_cast<const char*>(v.data()), v.size() * sizeof(double));
}

std::string serve(Session& s, const uint32_t request[3]) {
  if (request[0] == 6) return s.run_info();
  if (request[0] == 8) return s.set_dims();
  if (request[0] == 11 || request[0] == 12) return s.set_states(request[0] == 12);
  s.hold(request[0] != 1);
  s.read_inputs();
  switch (request[0]) {
    case 1: s.run(); return s.outputs();
    case 2: return doubles(s.bench(request[1], request[2]));
    case 3: {
      const uint32_t different = s.repeat(request[1], request[2] != 0);
      return std::string(reinterpret_cast<const char*>(&different), sizeof different);
    }
    case 4: return s.trace(request[1]);
    case 5: return doubles(s.host_times(1));
    case 9: return doubles(s.at_once(request[1], request[2]));
    case 10: return doubles(s.copies(request[1]));
  }
  throw Failure{-1, "unknown request"};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: runner LIBRARY PREFIX [key=value …]\n");
    return 2;
  }
  // Whatever the library prints must not get between the replies.
  reply_fd = dup(1);
  dup2(2, 1);
  std::map<std::string, std::string> options;
  for (int i = 3; i < argc; ++i) {
    const std::string arg = argv[i];
    const size_t eq = arg.find('=');
    if (eq != std::string::npos) options[arg.substr(0, eq)] = arg.substr(eq + 1);
  }
  try {
    std::unique_ptr<Session> session(new Session(argv[1], argv[2], options));
    reply(0, session->greeting());
    for (;;) {
      uint32_t request[3];
      Session::read_all(request, sizeof request);
      if (request[0] == 0) return 0;
      try {
        if (request[0] == 7) {  // the weights, which variants share, stay on the device meanwhile
          session.reset(new Session(argv[1], Session::read_prefix(request[1]), options));
          reply(0, session->greeting());
          continue;
        }
        reply(0, serve(*session, request));
      } catch (const Failure& f) {
        reply(f.status ? f.status : -1, f.text);
      }
    }
  } catch (const Failure& f) {
    reply(f.status ? f.status : -1, f.text);
    return 1;
  }
}
