// Uses the C interface of any library as nobody should, in a program that is built with AddressSanitizer and
// UndefinedBehaviorSanitizer. LIBRARY is the library's name; its sources are a part of the program, so that the
// sanitizers see all of it. Each misuse has a status and a message, and the runs after it give the bytes of the first
// one.
//
//	abuse WEIGHTS OTHER [CONTEXTS]
//
// WEIGHTS is the library's weights file, OTHER that of another library.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
#define FN(what) JOIN(LIBRARY, JOIN(_, what))
#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)
#include TEXT(LIBRARY.cu)

namespace abuse {

using Context = FN(ctx);
int failures;

void fail(const std::string& what) {
  std::printf("%s\n", what.c_str());
  ++failures;
}

// expect checks a call that must fail, with the message of ctx, or of this thread if that is null.
void expect(const char* what, int status, int wanted, const Context* ctx) {
  if (status != wanted) fail(std::string(what) + ": status " + std::to_string(status));
  if (FN(last_error)(ctx)[0] == 0) fail(std::string(what) + ": no message");
}

struct Tensors {
  std::vector<std::vector<char>> inputs, outputs;
  std::vector<const void*> in;
  std::vector<void*> out;

  Tensors() {
    const FN(io)* io = FN(io_info)();
    for (int i = 0; i < io->input_count; ++i) inputs.push_back(values(io->inputs[i]));
    for (int i = 0; i < io->output_count; ++i) outputs.emplace_back(io->outputs[i].bytes + 16);
    for (auto& x : inputs) in.push_back(x.data());
    for (auto& x : outputs) out.push_back(x.data());
  }
  // Small numbers: floats around 1, integers that are 0 or 1.
  static std::vector<char> values(const FN(tensor) & t) {
    std::vector<char> bytes(t.bytes);
    for (size_t i = 0; t.dtype == 1 && i < t.bytes / 4; ++i) {
      const float x = 1.0f + static_cast<float>(i * 37 % 101) / 64;
      std::memcpy(bytes.data() + 4 * i, &x, 4);
    }
    return bytes;
  }
  int run(Context* ctx) { return FN(run)(ctx, in.data(), out.data(), FN(HOST)); }
};

FN(options) options_with(const char* weights) {
  FN(options) o{};
  o.size = sizeof o;
  o.weights_path = weights;
  return o;
}

Context* create(const char* weights) {
  const FN(options) o = options_with(weights);
  Context* ctx = nullptr;
  if (const int status = FN(create)(&o, &ctx)) {
    fail("create: status " + std::to_string(status) + ", " + FN(last_error)(nullptr));
    std::exit(1);
  }
  return ctx;
}

void same(const char* what, Context* ctx, const Tensors& want) {
  Tensors t;
  if (const int status = t.run(ctx)) return fail(std::string(what) + ": status " + std::to_string(status));
  if (t.outputs != want.outputs) fail(std::string(what) + ": other outputs");
}

void null_pointers(Context* ctx) {
  Tensors t;
  expect("no place for a context", FN(create)(nullptr, nullptr), FN(BAD_ARGUMENT), nullptr);
  expect("no context", FN(run)(nullptr, t.in.data(), t.out.data(), FN(HOST)), FN(BAD_ARGUMENT), nullptr);
  expect("no context, async", FN(run_async)(nullptr, nullptr, t.in.data(), t.out.data()), FN(BAD_ARGUMENT), nullptr);
  expect("no context, trace", FN(trace)(nullptr, nullptr, nullptr), FN(BAD_ARGUMENT), nullptr);
  expect("no inputs", FN(run)(ctx, nullptr, t.out.data(), FN(HOST)), FN(BAD_ARGUMENT), ctx);
  expect("no outputs", FN(run)(ctx, t.in.data(), nullptr, FN(HOST)), FN(BAD_ARGUMENT), ctx);
  t.out[0] = nullptr;
  expect("a null output", FN(run)(ctx, t.in.data(), t.out.data(), FN(HOST)), FN(BAD_ARGUMENT), ctx);
  if (FN(trace)(ctx, nullptr, nullptr) != FN(BAD_ARGUMENT)) fail("a trace without a size");
  FN(destroy)(nullptr);
}

void two_threads(Context* ctx, const Tensors& want) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 3; ++k) same("two threads", ctx, want);
    });
  }
  for (std::thread& t : threads) t.join();
}

void many_contexts(const char* weights, int count, const Tensors& want) {
  std::vector<Context*> all;
  for (int i = 0; i < count; ++i) all.push_back(create(weights));
  same("the first of many contexts", all.front(), want);
  same("the last of many contexts", all.back(), want);
  for (Context* ctx : all) FN(destroy)(ctx);
}

// A child of fork can use no context of its parent, and destroying one there does no harm.
void after_fork(Context* ctx) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    const int before = failures;
    Tensors t;
    expect("after fork", t.run(ctx), FN(BAD_ARGUMENT), ctx);
    FN(destroy)(ctx);
    std::fflush(stdout);
    _exit(failures - before);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) fail("the child of fork ends with " + std::to_string(status));
}

std::vector<char> read(const char* path) {
  std::vector<char> data;
  FILE* f = std::fopen(path, "rb");
  char chunk[1 << 12];
  for (size_t n; f && (n = std::fread(chunk, 1, sizeof chunk, f)) > 0;) data.insert(data.end(), chunk, chunk + n);
  if (f) std::fclose(f);
  return data;
}

void damaged_weights(const char* weights, const char* other) {
  const std::vector<char> good = read(weights);
  const std::string path = std::string(weights) + ".damaged";
  const auto refused = [&](const std::string& what, const char* file) {
    const FN(options) o = options_with(file);
    Context* ctx = nullptr;
    const int status = FN(create)(&o, &ctx);
    if ((status != FN(WEIGHTS_MISMATCH) && status != FN(WEIGHTS_MISSING)) || ctx) {
      fail(what + ": status " + std::to_string(status));
    }
  };
  const auto with = [&](const std::string& what, const std::vector<char>& data) {
    FILE* f = std::fopen(path.c_str(), "wb");
    if (!data.empty()) std::fwrite(data.data(), 1, data.size(), f);
    std::fclose(f);
    refused(what, path.c_str());
  };
  for (const size_t n :
       {size_t{0}, size_t{1}, size_t{7}, size_t{8}, size_t{31}, good.size() / 2, good.size() - 9, good.size() - 1}) {
    with("weights cut to " + std::to_string(n), std::vector<char>(good.begin(), good.begin() + static_cast<long>(n)));
  }
  for (size_t at = 0; at < good.size(); at += good.size() / 13 + 1) {
    std::vector<char> bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    with("weights with another byte at " + std::to_string(at), bad);
  }
  refused("weights of another library", other);
  refused("no weights", "/nonexistent/x.weights");
  refused("a folder", "/");
  refused("a device", "/dev/zero");
  std::remove(path.c_str());
}

}  // namespace abuse

int main(int argc, char** argv) {
  using namespace abuse;
  if (argc < 3) return 2;
  abuse::Context* const ctx = create(argv[1]);
  Tensors want;
  if (const int status = want.run(ctx)) fail("run: status " + std::to_string(status));
  null_pointers(ctx);
  same("after null pointers", ctx, want);
  two_threads(ctx, want);
  many_contexts(argv[1], argc > 3 ? std::atoi(argv[3]) : 1000, want);
  after_fork(ctx);
  same("after fork", ctx, want);
  damaged_weights(argv[1], argv[2]);
  same("at the end", ctx, want);
  FN(destroy)(ctx);
  if (failures == 0) std::printf("clean\n");
  return failures != 0;
}
