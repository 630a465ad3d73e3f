// A backend of Triton Inference Server for libraries that rammerc has compiled. A model's folder in the server's
// repository has a library in each version's folder: libNAME.so and NAME.weights. The server gathers requests into
// batches where the configuration says so, and an instance runs them on the smallest of the library's programs that
// holds them.
#include <cstring>
#include <memory>

#include "request.h"

namespace {

#define EXPORT __attribute__((visibility("default")))

// A context of the library, which runs one batch at a time.
class Instance {
 public:
  Instance(Model& model, int device) : model_(model), library_(model.library) {
    rammer::Options options{};
    options.size = sizeof(options);
    options.device = device;
    if (library_.create(&options, &context_) != rammer::kOk)
      throw Failure(TRITONSERVER_ERROR_UNAVAILABLE, library_.last_error(nullptr));
    if (model_.batched) find_sizes();
  }
  ~Instance() { library_.destroy(context_); }
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  // Answers all requests and gives them back.
  void execute(TRITONBACKEND_ModelInstance* self, TRITONBACKEND_Request** requests, uint32_t count) {
    const uint64_t start = now_ns();
    std::vector<Item> items(count);
    for (uint32_t i = 0; i < count; ++i) {
      items[i].request = requests[i];
      attempt({&items[i]}, [&] {
        items[i].read(model_);
        if (model_.batched && (items[i].samples < 1 || items[i].samples > sizes_.back()))
          throw Failure(TRITONSERVER_ERROR_INVALID_ARG, "the library takes 1 to " + std::to_string(sizes_.back()) +
                                                            " samples, not " + std::to_string(items[i].samples));
      });
    }
    for (uint32_t i = 0; i < count;) {
      std::vector<Item*> batch;
      int64_t samples = 0;
      for (; i < count; ++i) {
        Item& item = items[i];
        if (item.failed) continue;
        const bool joins =
            batch.empty() || (model_.batched && samples + item.samples <= sizes_.back() && item.fits(*batch[0]));
        if (!joins) break;
        batch.push_back(&item);
        samples += item.samples;
      }
      if (!batch.empty()) run_batch(self, batch, samples, start);
    }
    const uint64_t end = now_ns();
    for (Item& item : items) {
      if (item.failed)
        ignore(TRITONBACKEND_ModelInstanceReportStatistics(self, item.request, false, start, start, end, end));
      ignore(TRITONBACKEND_RequestRelease(item.request, TRITONSERVER_REQUEST_RELEASE_ALL));
    }
  }

 private:
  // Tries f; what it throws answers those requests that have no answer yet.
  template <typename F>
  void attempt(const std::vector<Item*>& items, F f) {
    TRITONSERVER_Error_Code code = TRITONSERVER_ERROR_INTERNAL;
    std::string text;
    try {
      f();
      return;
    } catch (const Failure& e) {
      code = e.code;
      text = e.what();
    } catch (const std::exception& e) {
      text = e.what();
    }
    for (Item* item : items) {
      if (item->failed) continue;
      item->failed = true;
      TRITONBACKEND_Response* response = nullptr;
      TRITONSERVER_Error* failed = TRITONBACKEND_ResponseNew(&response, item->request);
      if (failed) {
        ignore(failed);
        continue;
      }
      TRITONSERVER_Error* error = TRITONSERVER_ErrorNew(code, text.c_str());
      ignore(TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, error));
      ignore(error);
    }
  }

  // The batches that the library has programs for, the smallest first.
  void find_sizes() {
    std::vector<std::vector<int64_t>> dims;
    for (const rammer::Tensor& t : model_.inputs) dims.emplace_back(t.dims, t.dims + t.rank);
    for (int64_t n = 1; n <= model_.most; ++n) {
      for (auto& d : dims) d[0] = n;
      if (set_dims(dims)) sizes_.push_back(n);
    }
    if (sizes_.empty()) throw Failure(TRITONSERVER_ERROR_INVALID_ARG, "the library takes no batch");
  }

  bool set_dims(const std::vector<std::vector<int64_t>>& dims) {
    std::vector<const int64_t*> rows;
    for (const auto& d : dims) rows.push_back(d.data());
    return library_.set_dims(context_, rows.data()) == rammer::kOk;
  }

  void run_batch(TRITONBACKEND_ModelInstance* self, const std::vector<Item*>& batch, int64_t samples, uint64_t start) {
    attempt(batch, [&] {
      const int64_t size = model_.batched ? *std::lower_bound(sizes_.begin(), sizes_.end(), samples) : 1;
      std::vector<std::vector<int64_t>> dims = batch[0]->dims;
      if (model_.batched)
        for (auto& d : dims) d[0] = size;
      if (library_.set_dims && !set_dims(dims))
        throw Failure(TRITONSERVER_ERROR_INVALID_ARG, library_.last_error(context_));
      std::vector<const void*> in;
      for (size_t i = 0; i < dims.size(); ++i) in.push_back(join(batch, i, size));
      std::vector<std::vector<char>> room;
      std::vector<void*> out;
      const rammer::Io* io = current_io();
      for (int i = 0; i < io->output_count; ++i) {
        room.emplace_back(io->outputs[i].bytes);
        out.push_back(room.back().data());
      }
      const uint64_t compute = now_ns();
      if (library_.run(context_, in.data(), out.data(), rammer::kHost) != rammer::kOk)
        throw Failure(TRITONSERVER_ERROR_INTERNAL, library_.last_error(context_));
      const uint64_t computed = now_ns();
      int64_t first = 0;
      for (Item* item : batch) {
        attempt({item}, [&] { respond(*item, out, first, size); });
        first += item->samples;
      }
      const uint64_t end = now_ns();
      for (Item* item : batch)
        if (!item->failed)
          ignore(TRITONBACKEND_ModelInstanceReportStatistics(self, item->request, true, start, compute, computed, end));
      ignore(TRITONBACKEND_ModelInstanceReportBatchStatistics(self, static_cast<uint64_t>(samples), start, compute,
                                                              computed, end));
    });
  }

  // Tensors with their extents of the next or latest inference.
  const rammer::Io* current_io() const { return library_.set_dims ? library_.ctx_io(context_) : library_.io_info(); }

  // Input i of all requests, one behind the other. The places behind the last sample repeat it.
  const void* join(const std::vector<Item*>& batch, size_t i, int64_t size) {
    if (batch.size() == 1 && (!model_.batched || batch[0]->samples == size)) return batch[0]->input(i);
    if (joined_.size() <= i) joined_.resize(i + 1);
    const size_t sample = sample_bytes(batch[0]->dims[i], element_type(model_.inputs[i].dtype).bytes);
    std::vector<char>& to = joined_[i];
    to.resize(sample * static_cast<size_t>(size));
    size_t at = 0;
    for (const Item* item : batch) {
      std::memcpy(to.data() + at, item->input(i), sample * static_cast<size_t>(item->samples));
      at += sample * static_cast<size_t>(item->samples);
    }
    for (; at < to.size(); at += sample) std::memcpy(to.data() + at, to.data() + at - sample, sample);
    return to.data();
  }

  static size_t sample_bytes(const std::vector<int64_t>& dims, size_t element) {
    for (size_t d = 1; d < dims.size(); ++d) element *= static_cast<size_t>(dims[d]);
    return element;
  }

  // Sends a request's share of the outputs, those alone that it asks for.
  void respond(Item& item, const std::vector<void*>& out, int64_t first, int64_t size) {
    TRITONBACKEND_Response* response = nullptr;
    check(TRITONBACKEND_ResponseNew(&response, item.request));
    try {
      uint32_t wanted = 0;
      check(TRITONBACKEND_RequestOutputCount(item.request, &wanted));
      for (uint32_t k = 0; k < wanted; ++k) {
        const char* name = nullptr;
        check(TRITONBACKEND_RequestOutputName(item.request, k, &name));
        copy_output(response, name, item, out, first, size);
      }
    } catch (...) {
      ignore(TRITONBACKEND_ResponseDelete(response));
      throw;
    }
    // From here on the response is the server's, whatever comes.
    ignore(TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, nullptr));
  }

  void copy_output(TRITONBACKEND_Response* response, const std::string& name, const Item& item,
                   const std::vector<void*>& out, int64_t first, int64_t size) {
    const rammer::Io* io = current_io();
    int i = 0;
    while (i < io->output_count && name != io->outputs[i].name) ++i;
    if (i == io->output_count) throw Failure(TRITONSERVER_ERROR_INVALID_ARG, "there is no output " + name);
    const rammer::Tensor& t = io->outputs[i];
    std::vector<int64_t> dims(t.dims, t.dims + t.rank);
    size_t bytes = element_type(t.dtype).bytes;
    if (model_.batched) dims[0] = item.samples;
    for (int64_t d : dims) bytes *= static_cast<size_t>(d);
    const size_t from = model_.batched ? t.bytes / static_cast<size_t>(size) * static_cast<size_t>(first) : 0;
    TRITONBACKEND_Output* output = nullptr;
    check(TRITONBACKEND_ResponseOutput(response, &output, t.name, element_type(t.dtype).triton, dims.data(),
                                       static_cast<uint32_t>(dims.size())));
    void* buffer = nullptr;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    int64_t id = 0;
    check(TRITONBACKEND_OutputBuffer(output, &buffer, bytes, &memory, &id));
    if (memory == TRITONSERVER_MEMORY_GPU)
      throw Failure(TRITONSERVER_ERROR_UNSUPPORTED,
                    name + ": is wanted in the GPU's memory; this backend writes to the host's");
    std::memcpy(buffer, static_cast<const char*>(out[static_cast<size_t>(i)]) + from, bytes);
  }

  Model& model_;
  rammer::Library& library_;
  void* context_ = nullptr;
  std::vector<int64_t> sizes_;
  std::vector<std::vector<char>> joined_;
};

std::string config_of(TRITONBACKEND_Model* model) {
  TRITONSERVER_Message* message = nullptr;
  check(TRITONBACKEND_ModelConfig(model, 1, &message));
  const char* text = nullptr;
  size_t bytes = 0;
  TRITONSERVER_Error* error = TRITONSERVER_MessageSerializeToJson(message, &text, &bytes);
  std::string config(error ? "" : text, error ? 0 : bytes);
  ignore(TRITONSERVER_MessageDelete(message));
  check(error);
  return config;
}

void set_config(TRITONBACKEND_Model* model, const std::string& config) {
  TRITONSERVER_Message* message = nullptr;
  check(TRITONSERVER_MessageNewFromSerializedJson(&message, config.data(), config.size()));
  TRITONSERVER_Error* error = TRITONBACKEND_ModelSetConfig(model, 1, message);
  ignore(TRITONSERVER_MessageDelete(message));
  check(error);
}

}  // namespace

extern "C" {

EXPORT TRITONSERVER_Error* TRITONBACKEND_Initialize(TRITONBACKEND_Backend*) {
  return guarded([] {
    uint32_t major = 0, minor = 0;
    check(TRITONBACKEND_ApiVersion(&major, &minor));
    // All that this backend calls has been there since 1.9, which is Triton 22.04.
    if (major != 1 || minor < 9)
      throw Failure(TRITONSERVER_ERROR_UNSUPPORTED, "the server's interface for backends is " + std::to_string(major) +
                                                        "." + std::to_string(minor) +
                                                        "; this backend needs 1.9 or later of 1");
  });
}

EXPORT TRITONSERVER_Error* TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model* self) {
  return guarded([self] {
    const char* folder = nullptr;
    TRITONBACKEND_ArtifactType type = TRITONBACKEND_ARTIFACT_FILESYSTEM;
    uint64_t version = 0;
    bool complete = false;
    check(TRITONBACKEND_ModelRepository(self, &type, &folder));
    check(TRITONBACKEND_ModelVersion(self, &version));
    check(TRITONBACKEND_ModelAutoCompleteConfig(self, &complete));
    if (type != TRITONBACKEND_ARTIFACT_FILESYSTEM)
      throw Failure(TRITONSERVER_ERROR_UNSUPPORTED, "the model is not in a file system");
    auto model = std::make_unique<Model>(std::filesystem::path(folder) / std::to_string(version));
    std::string config = config_of(self);
    if (complete) {
      config = model->completed(config);
      set_config(self, config);
    }
    model->configure(config);
    check(TRITONBACKEND_ModelSetState(self, model.get()));
    model.release();  // NOLINT: ModelFinalize deletes it
  });
}

EXPORT TRITONSERVER_Error* TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model* self) {
  return guarded([self] {
    void* model = nullptr;
    check(TRITONBACKEND_ModelState(self, &model));
    delete static_cast<Model*>(model);
  });
}

EXPORT TRITONSERVER_Error* TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance* self) {
  return guarded([self] {
    TRITONBACKEND_Model* of = nullptr;
    void* model = nullptr;
    TRITONSERVER_InstanceGroupKind kind = TRITONSERVER_INSTANCEGROUPKIND_CPU;
    int32_t device = 0;
    check(TRITONBACKEND_ModelInstanceModel(self, &of));
    check(TRITONBACKEND_ModelState(of, &model));
    check(TRITONBACKEND_ModelInstanceKind(self, &kind));
    check(TRITONBACKEND_ModelInstanceDeviceId(self, &device));
    auto instance = std::make_unique<Instance>(*static_cast<Model*>(model),
                                               kind == TRITONSERVER_INSTANCEGROUPKIND_GPU ? device + 1 : 0);
    check(TRITONBACKEND_ModelInstanceSetState(self, instance.get()));
    instance.release();  // NOLINT: ModelInstanceFinalize deletes it
  });
}

EXPORT TRITONSERVER_Error* TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance* self) {
  return guarded([self] {
    void* instance = nullptr;
    check(TRITONBACKEND_ModelInstanceState(self, &instance));
    delete static_cast<Instance*>(instance);
  });
}

EXPORT TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance* self,
                                                              TRITONBACKEND_Request** requests, const uint32_t count) {
  void* instance = nullptr;
  if (TRITONSERVER_Error* error = TRITONBACKEND_ModelInstanceState(self, &instance)) return error;
  static_cast<Instance*>(instance)->execute(self, requests, count);
  return nullptr;
}

}  // extern "C"
