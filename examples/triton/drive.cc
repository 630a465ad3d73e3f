// Loads the backend as Triton Inference Server does, and drives it with requests of random sizes in random batches.
//
//   drive BACKEND.so MODELDIR NAME=INPUT NAME=OUTPUT [INSTANCES] [ROUNDS]
//
// MODELDIR is the model's folder in a repository; the library is in its folder 1. INPUT and OUTPUT are .npy files
// with float32 samples and what the model must make of them, within 0.001. Each of INSTANCES threads (4) has an
// instance of the model, and executes ROUNDS (50) batches. Then requests that are wrong are put among right ones.
// It prints what it found; the exit status is 1 if anything is not as it must be.
#include <dlfcn.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <stdexcept>
#include <thread>

#include "server.h"

namespace {

std::atomic<int> problems{0};

void want(bool right, const std::string& text) {
  if (right) return;
  ++problems;
  std::fprintf(stderr, "wrong: %s\n", text.c_str());
}

void must(TRITONSERVER_Error* error) {
  if (!error) return;
  const std::string text = error->text;
  TRITONSERVER_ErrorDelete(error);
  throw std::runtime_error(text);
}

struct Entries {
  void* handle;
  decltype(&TRITONBACKEND_Initialize) initialize;
  decltype(&TRITONBACKEND_ModelInitialize) model_initialize;
  decltype(&TRITONBACKEND_ModelFinalize) model_finalize;
  decltype(&TRITONBACKEND_ModelInstanceInitialize) instance_initialize;
  decltype(&TRITONBACKEND_ModelInstanceFinalize) instance_finalize;
  decltype(&TRITONBACKEND_ModelInstanceExecute) execute;

  explicit Entries(const char* file) : handle(dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
    if (!handle) throw std::runtime_error(dlerror());
    find(initialize, "TRITONBACKEND_Initialize");
    find(model_initialize, "TRITONBACKEND_ModelInitialize");
    find(model_finalize, "TRITONBACKEND_ModelFinalize");
    find(instance_initialize, "TRITONBACKEND_ModelInstanceInitialize");
    find(instance_finalize, "TRITONBACKEND_ModelInstanceFinalize");
    find(execute, "TRITONBACKEND_ModelInstanceExecute");
  }

 private:
  template <typename F>
  void find(F& f, const char* name) {
    f = reinterpret_cast<F>(dlsym(handle, name));
    if (!f) throw std::runtime_error(std::string("the backend has no ") + name);
  }
};

// Samples with what the model makes of them.
struct Data {
  std::string input_name, output_name, inputs, outputs;
  std::vector<int64_t> shape;  // of one sample, without the batch
  size_t samples = 0, in_bytes = 0, out_bytes = 0;

  // The elements of the .npy file in NAME=FILE. They begin behind a header whose length is in the bytes 8 and 9.
  static std::string read(const char* argument, std::string& name) {
    const std::string text = argument;
    name = text.substr(0, text.find('='));
    if (name.size() == text.size()) throw std::runtime_error(text + ": want NAME=FILE.npy");
    std::ifstream f(text.substr(name.size() + 1), std::ios::binary);
    const std::string all{std::istreambuf_iterator<char>(f), {}};
    if (all.rfind("\x93NUMPY\x01", 0) != 0 || all.find("'<f4'") == std::string::npos)
      throw std::runtime_error(text + ": is no .npy file of float32");
    return all.substr(10 + static_cast<unsigned char>(all[8]) + 256u * static_cast<unsigned char>(all[9]));
  }

  // The shapes are those that the backend has put into the configuration.
  static std::vector<int64_t> dims(const std::string& config, const std::string& key) {
    std::vector<int64_t> list;
    size_t at = config.find("\"dims\":[", config.find(key)) + 7;
    while (config[at] != ']') {
      char* end = nullptr;
      list.push_back(std::strtoll(config.c_str() + at + 1, &end, 10));
      at = static_cast<size_t>(end - config.c_str());
    }
    return list;
  }

  void measure(const std::string& config) {
    shape = dims(config, "\"input\":");
    in_bytes = out_bytes = 4;
    for (int64_t d : shape) in_bytes *= static_cast<size_t>(d);
    for (int64_t d : dims(config, "\"output\":")) out_bytes *= static_cast<size_t>(d);
    samples = inputs.size() / in_bytes;
    if (samples == 0 || outputs.size() / out_bytes != samples)
      throw std::runtime_error("inputs and outputs differ in number");
  }

  // A request for some samples, in one buffer or in two.
  std::unique_ptr<TRITONBACKEND_Request> request(size_t first, size_t count, bool split) const {
    auto r = std::make_unique<TRITONBACKEND_Request>();
    TRITONBACKEND_Input in;
    in.name = input_name;
    in.shape = shape;
    in.shape.insert(in.shape.begin(), static_cast<int64_t>(count));
    const std::string all = inputs.substr(first * in_bytes, count * in_bytes);
    if (split) {
      in.buffers = {all.substr(0, all.size() / 2), all.substr(all.size() / 2)};
    } else {
      in.buffers = {all};
    }
    r->inputs.push_back(std::move(in));
    r->outputs = {output_name};
    return r;
  }

  void judge(const TRITONBACKEND_Request& r, size_t first, size_t count) const {
    want(r.responses == 1 && r.releases == 1,
         std::to_string(r.responses) + " responses, given back " + std::to_string(r.releases) + " times");
    want(r.error.empty(), "an answer with the error " + r.error);
    if (!r.error.empty()) return;
    const auto it = r.results.find(output_name);
    want(it != r.results.end() && r.results.size() == 1, "an answer without the output, or with others");
    if (it == r.results.end()) return;
    const TRITONBACKEND_Output& out = it->second;
    want(out.shape.at(0) == static_cast<int64_t>(count) && out.data.size() == count * out_bytes,
         "an answer of another size");
    for (size_t i = 0; i + 4 <= out.data.size(); i += 4) {
      float a, b;
      std::memcpy(&a, out.data.data() + i, 4);
      std::memcpy(&b, outputs.data() + first * out_bytes + i, 4);
      if (std::fabs(a - b) <= 1e-3f) continue;
      want(false, "sample " + std::to_string(first + i / out_bytes) + ": " + std::to_string(a) + ", want " +
                      std::to_string(b));
      return;
    }
  }
};

struct Place {
  size_t first, count;
};

void execute(const Entries& backend, TRITONBACKEND_ModelInstance& instance,
             std::vector<std::unique_ptr<TRITONBACKEND_Request>>& requests) {
  std::vector<TRITONBACKEND_Request*> list;
  for (auto& r : requests) list.push_back(r.get());
  must(backend.execute(&instance, list.data(), static_cast<uint32_t>(list.size())));
}

void drive(const Entries& backend, TRITONBACKEND_ModelInstance& instance, const Data& data, int rounds, unsigned seed) {
  std::mt19937 draw(seed);
  const auto below = [&](size_t n) { return static_cast<size_t>(draw() % n); };
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::unique_ptr<TRITONBACKEND_Request>> requests;
    std::vector<Place> places;
    const size_t most = 1 + below(16);  // the server never puts more samples than max_batch_size into a batch
    for (size_t samples = 0; samples < most;) {
      const size_t count = 1 + below(std::min<size_t>(most - samples, data.samples));
      const size_t first = below(data.samples - count + 1);
      requests.push_back(data.request(first, count, below(3) == 0));
      places.push_back({first, count});
      samples += count;
    }
    execute(backend, instance, requests);
    for (size_t i = 0; i < requests.size(); ++i) data.judge(*requests[i], places[i].first, places[i].count);
  }
}

// A request that is wrong is answered by an error that says what is, and those beside it are computed.
void mistakes(const Entries& backend, TRITONBACKEND_ModelInstance& instance, const Data& data) {
  struct Mistake {
    const char* says;
    TRITONSERVER_Error_Code code;
    void (*make)(TRITONBACKEND_Request&);
  };
  const Mistake list[] = {
      {"has no input", TRITONSERVER_ERROR_INTERNAL, [](auto& r) { r.inputs[0].name = "other"; }},
      {"want elements of TYPE_FP32", TRITONSERVER_ERROR_INVALID_ARG,
       [](auto& r) { r.inputs[0].type = TRITONSERVER_TYPE_INT32; }},
      {"shape", TRITONSERVER_ERROR_INVALID_ARG, [](auto& r) { r.inputs[0].shape.pop_back(); }},
      {"are no tensor of shape", TRITONSERVER_ERROR_INVALID_ARG, [](auto& r) { r.inputs[0].buffers[0].pop_back(); }},
      {"samples, not 17", TRITONSERVER_ERROR_INVALID_ARG,
       [](auto& r) {
         r.inputs[0].shape[0] = 17;
         r.inputs[0].buffers[0] = std::string(r.inputs[0].buffers[0].size() * 17, '\0');
       }},
      {"in the GPU's memory", TRITONSERVER_ERROR_UNSUPPORTED,
       [](auto& r) { r.inputs[0].memory = TRITONSERVER_MEMORY_GPU; }},
      {"there is no output", TRITONSERVER_ERROR_INVALID_ARG, [](auto& r) { r.outputs = {"other"}; }},
      {"wanted in the GPU's memory", TRITONSERVER_ERROR_UNSUPPORTED, [](auto& r) { r.output_in_gpu = true; }}};
  for (const Mistake& m : list) {
    std::vector<std::unique_ptr<TRITONBACKEND_Request>> requests;
    for (size_t i = 0; i < 3; ++i) requests.push_back(data.request(i, 1, false));
    m.make(*requests[1]);
    execute(backend, instance, requests);
    data.judge(*requests[0], 0, 1);
    data.judge(*requests[2], 2, 1);
    const TRITONBACKEND_Request& r = *requests[1];
    want(r.responses == 1 && r.releases == 1 && r.code == m.code && r.error.find(m.says) != std::string::npos,
         std::string("want an error with \"") + m.says + "\", got \"" + r.error + "\" of code " +
             std::to_string(r.code));
  }
}

// A configuration that the library does not fit is refused, with a message.
void configurations(const Entries& backend, const std::string& folder) {
  const struct {
    const char *config, *says;
  } list[] = {{"{\"max_batch_size\":17,\"input\":[],\"output\":[]}", "takes 16 samples at most"}};
  for (const auto& c : list) {
    TRITONBACKEND_Model model;
    model.folder = folder;
    model.config = c.config;
    TRITONSERVER_Error* error = backend.model_initialize(&model);
    want(error && error->text.find(c.says) != std::string::npos, std::string("want an error with ") + c.says);
    if (error) TRITONSERVER_ErrorDelete(error);
  }
  TRITONBACKEND_Model model;
  model.folder = folder + "/nothing";
  TRITONSERVER_Error* error = backend.model_initialize(&model);
  want(error && error->text.find("holds no libNAME.so") != std::string::npos, "a folder without a library is taken");
  if (error) TRITONSERVER_ErrorDelete(error);
}

int run(int count, char** arguments) {
  if (count < 5)
    throw std::runtime_error("usage: drive BACKEND.so MODELDIR NAME=INPUT NAME=OUTPUT [INSTANCES] [ROUNDS]");
  const Entries backend(arguments[1]);
  Data data;
  data.inputs = Data::read(arguments[3], data.input_name);
  data.outputs = Data::read(arguments[4], data.output_name);
  const size_t instances = count > 5 ? std::strtoul(arguments[5], nullptr, 10) : 4;
  const int rounds = count > 6 ? std::atoi(arguments[6]) : 50;
  TRITONBACKEND_Backend self;
  must(backend.initialize(&self));
  configurations(backend, arguments[2]);
  TRITONBACKEND_Model model;
  model.folder = arguments[2];
  // As the server writes what config.pbtxt leaves out.
  model.config = "{\"backend\":\"rammerc\",\"max_batch_size\":0,\"input\":[],\"output\":[]}";
  must(backend.model_initialize(&model));
  std::printf("%s\n", model.config.c_str());
  data.measure(model.config);
  std::vector<TRITONBACKEND_ModelInstance> all(instances);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < instances; ++i) {
    all[i].model = &model;
    must(backend.instance_initialize(&all[i]));
  }
  for (size_t i = 0; i < instances; ++i) {
    threads.emplace_back([&, i] {
      try {
        drive(backend, all[i], data, rounds, static_cast<unsigned>(i + 1));
      } catch (const std::exception& e) {
        want(false, e.what());
      }
    });
  }
  for (std::thread& t : threads) t.join();
  uint64_t batches = 0, samples = 0;
  for (TRITONBACKEND_ModelInstance& i : all) {
    batches += i.batches;
    samples += i.samples;
    want(i.failures == 0 && i.successes > 0, "failures were reported, or nothing");
  }
  want(batches == instances * static_cast<uint64_t>(rounds), "the requests of a batch were not run together");
  mistakes(backend, all[0], data);
  want(all[0].failures == 8, std::to_string(all[0].failures) + " failures were reported, not 8");
  for (TRITONBACKEND_ModelInstance& i : all) must(backend.instance_finalize(&i));
  must(backend.model_finalize(&model));
  want(objects == 0, std::to_string(objects) + " errors, messages or responses are left");
  dlclose(backend.handle);
  std::printf("%zu instances: %llu batches of %llu samples, %d problems\n", instances,
              static_cast<unsigned long long>(batches), static_cast<unsigned long long>(samples), problems.load());
  return problems == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return run(count, arguments);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
}
