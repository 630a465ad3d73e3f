// Requests as the server hands them to an instance, and failures on the way.
#pragma once

#include <chrono>

#include "model.h"

// What a call of the server's returned, as an exception.
struct Failure : std::runtime_error {
  Failure(TRITONSERVER_Error_Code code, const std::string& text) : std::runtime_error(text), code(code) {}
  TRITONSERVER_Error_Code code;
};

inline void check(TRITONSERVER_Error* error) {
  if (!error) return;
  const std::string text = TRITONSERVER_ErrorMessage(error);
  TRITONSERVER_ErrorDelete(error);
  throw Failure(TRITONSERVER_ERROR_INTERNAL, text);
}

// Where a failure can no longer be told to anybody.
inline void ignore(TRITONSERVER_Error* error) {
  if (error) TRITONSERVER_ErrorDelete(error);
}

template <typename F>
TRITONSERVER_Error* guarded(F f) {
  try {
    f();
    return nullptr;
  } catch (const Failure& e) {
    return TRITONSERVER_ErrorNew(e.code, e.what());
  } catch (const std::exception& e) {
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, e.what());
  }
}

inline uint64_t now_ns() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

inline std::string shape_text(const std::vector<int64_t>& dims) {
  std::string text = "[";
  for (int64_t d : dims) {
    if (text.size() > 1) text += " ";
    text += std::to_string(d);
  }
  return text + "]";
}

// One request of a batch: its inputs in the order of the library's, and the response to it.
struct Item {
  TRITONBACKEND_Request* request = nullptr;
  std::vector<std::vector<int64_t>> dims;
  std::vector<const char*> data;
  std::vector<std::string> gathered;  // of inputs that come in several buffers
  int64_t samples = 1;
  bool failed = false;

  // Reads the inputs; throws what is wrong with them.
  void read(const Model& model) {
    for (const rammer::Tensor& t : model.inputs) {
      TRITONBACKEND_Input* input = nullptr;
      check(TRITONBACKEND_RequestInput(request, t.name, &input));
      read_one(model, t, input);
    }
    for (size_t i = 0; i < dims.size() && model.batched; ++i) {
      if (dims[i].empty() || dims[i][0] != dims[0][0])
        throw Failure(TRITONSERVER_ERROR_INVALID_ARG, "the inputs have different numbers of samples");
    }
    if (model.batched && !dims.empty()) samples = dims[0][0];
  }

  // Whether both can be computed by one run.
  bool fits(const Item& other) const {
    for (size_t i = 0; i < dims.size(); ++i)
      if (!std::equal(dims[i].begin() + 1, dims[i].end(), other.dims[i].begin() + 1, other.dims[i].end())) return false;
    return true;
  }

 private:
  void read_one(const Model& model, const rammer::Tensor& t, TRITONBACKEND_Input* input) {
    TRITONSERVER_DataType type = TRITONSERVER_TYPE_INVALID;
    const int64_t* shape = nullptr;
    uint32_t rank = 0, buffers = 0;
    uint64_t bytes = 0;
    check(TRITONBACKEND_InputProperties(input, nullptr, &type, &shape, &rank, &bytes, &buffers));
    const std::string name = t.name;
    dims.emplace_back(shape, shape + rank);
    if (type != element_type(t.dtype).triton)
      throw Failure(TRITONSERVER_ERROR_INVALID_ARG, name + ": want elements of " + element_type(t.dtype).config);
    if (static_cast<int>(rank) != t.rank || (!model.library.set_dims && !std::equal(shape, shape + rank, t.dims)))
      throw Failure(TRITONSERVER_ERROR_INVALID_ARG,
                    name + ": shape " + shape_text(dims.back()) + ", want " + shape_text({t.dims, t.dims + t.rank}));
    int64_t elements = 1;
    for (int64_t d : dims.back()) elements *= d;
    if (static_cast<uint64_t>(elements) * element_type(t.dtype).bytes != bytes)
      throw Failure(TRITONSERVER_ERROR_INVALID_ARG,
                    name + ": " + std::to_string(bytes) + " bytes are no tensor of shape " + shape_text(dims.back()));
    gathered.emplace_back();
    const void* first = nullptr;
    for (uint32_t i = 0; i < buffers; ++i) {
      const void* buffer = nullptr;
      uint64_t size = 0;
      TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
      int64_t id = 0;
      check(TRITONBACKEND_InputBuffer(input, i, &buffer, &size, &memory, &id));
      if (memory == TRITONSERVER_MEMORY_GPU)
        throw Failure(TRITONSERVER_ERROR_UNSUPPORTED,
                      name + ": is in the GPU's memory; this backend takes host memory");
      if (i == 0) first = buffer;
      if (buffers > 1) gathered.back().append(static_cast<const char*>(buffer), size);
    }
    data.push_back(buffers > 1 ? nullptr : static_cast<const char*>(first));
  }

 public:
  const char* input(size_t i) const { return data[i] ? data[i] : gathered[i].data(); }
};
