// Serves a compiled model over HTTP, as the service in Go does (see
// ../README.md).
//
//   service [--port 8080] [--workers 1] [--queue 256] [--delay-ms 1]
//   [--drain-ms 1000] [--threads 64]
//
// --threads is how many requests are answered at a time: each waits in a thread
// of its own. --drain-ms is how long it goes on after SIGTERM, until whoever
// sends requests has seen that /readyz says 503.
#include <httplib.h>
#include <signal.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>

#include "batcher.h"
#include "metrics.h"

namespace {

std::map<std::string, double> flags(int argc, char** argv) {
  std::map<std::string, double> f = {{"port", 8080},  {"workers", 1},     {"queue", 256},
                                     {"delay-ms", 1}, {"drain-ms", 1000}, {"threads", 64}};
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = std::string(argv[i]).substr(0, 2) == "--" ? argv[i] + 2 : argv[i];
    if (!f.count(name)) throw std::runtime_error("there is no flag " + std::string(argv[i]));
    f[name] = std::atof(argv[i + 1]);
  }
  return f;
}

std::string described(const model_tensor* t, int count) {
  std::string s = "[";
  for (int i = 0; i < count; ++i) {
    s += std::string(i ? ",{\"name\":\"" : "{\"name\":\"") + t[i].name + "\",\"dtype\":" + std::to_string(t[i].dtype) +
         ",\"dims\":[";
    for (int d = 0; d < t[i].rank; ++d) s += (d ? "," : "") + std::to_string(t[i].dims[d]);
    s += "]}";
  }
  return s + "]";
}

void infer(Batcher& batcher, const httplib::Request& req, httplib::Response& res) {
  if (req.body.size() != batcher.sample_bytes()) {
    res.status = 400;
    res.set_content(
        "the body must hold the inputs of one sample; GET "
        "/v1/model describes them\n",
        "text/plain");
    return;
  }
  try {
    res.set_content(batcher.infer(req.body), "application/octet-stream");
    res.status = 200;
  } catch (const Full& e) {
    res.status = 503;
    res.set_header("Retry-After", "1");
    res.set_content(std::string(e.what()) + "\n", "text/plain");
  } catch (const std::exception& e) {
    res.status = 500;
    res.set_content(std::string(e.what()) + "\n", "text/plain");
  }
}

void routes(httplib::Server& server, Batcher& batcher, Metrics& metrics, std::atomic<bool>& stopping) {
  server.Get("/healthz", [](const auto&, auto& res) { res.set_content("ok\n", "text/plain"); });
  server.Get("/readyz", [&stopping](const auto&, auto& res) {
    res.status = stopping ? 503 : 200;
    res.set_content(stopping ? "stopping\n" : "ok\n", "text/plain");
  });
  server.Get("/v1/model", [](const auto&, auto& res) {
    const model_io* io = model_io_info();
    res.set_content("{\"inputs\":" + described(io->inputs, io->input_count) +
                        ",\"outputs\":" + described(io->outputs, io->output_count) + "}\n",
                    "application/json");
  });
  server.Get("/metrics", [&](const auto&, auto& res) {
    res.set_content(metrics.text(batcher.waiting()), "text/plain; version=0.0.4");
  });
  server.Post("/v1/infer", [&](const auto& req, auto& res) {
    const auto start = std::chrono::steady_clock::now();
    infer(batcher, req, res);
    metrics.request(res.status, std::chrono::steady_clock::now() - start);
  });
}

}  // namespace

int main(int argc, char** argv) try {
  std::map<std::string, double> f = flags(argc, argv);
  sigset_t stop;  // taken by one thread; all others inherit that they do not
  sigemptyset(&stop);
  sigaddset(&stop, SIGTERM);
  sigaddset(&stop, SIGINT);
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);

  Metrics metrics;
  Batcher batcher(static_cast<int>(f["workers"]), static_cast<size_t>(f["queue"]), Batcher::Milliseconds(f["delay-ms"]),
                  metrics);
  std::atomic<bool> stopping{false};
  httplib::Server server;
  const size_t threads = static_cast<size_t>(f["threads"]);
  server.new_task_queue = [threads] { return new httplib::ThreadPool(threads); };
  server.set_payload_max_length(batcher.sample_bytes() + 1);
  server.set_tcp_nodelay(true);
  server.set_socket_options(
      [](socket_t s) {  // a new process may listen while connections of one that was killed linger
        const int yes = 1;
        setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
      });
  routes(server, batcher, metrics, stopping);
  std::thread waiter([&] {
    int signal = 0;
    sigwait(&stop, &signal);
    stopping = true;
    std::this_thread::sleep_for(Batcher::Milliseconds(f["drain-ms"]));
    server.stop();  // takes no more connections; requests that have come are
                    // answered
  });
  std::fprintf(stderr, "listening on 127.0.0.1:%d\n", static_cast<int>(f["port"]));
  const bool ok = server.listen("127.0.0.1", static_cast<int>(f["port"]));
  if (!stopping) {
    std::fprintf(stderr, "cannot listen on port %d\n", static_cast<int>(f["port"]));
    std::_Exit(1);
  }
  waiter.join();
  std::fprintf(stderr, "stopped\n");
  return ok ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
