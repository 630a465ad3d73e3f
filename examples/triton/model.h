// A model as the backend sees it: the library, and what a request of Triton must look like.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "library.h"
#include "triton_api.h"

// An element type of ONNX, as Triton has it.
struct ElementType {
  TRITONSERVER_DataType triton;
  const char* config;  // in a model's configuration
  size_t bytes;
};

inline const ElementType& element_type(int onnx) {
  static const std::map<int, ElementType> types = {
      {1, {TRITONSERVER_TYPE_FP32, "TYPE_FP32", 4}},      {2, {TRITONSERVER_TYPE_UINT8, "TYPE_UINT8", 1}},
      {3, {TRITONSERVER_TYPE_INT8, "TYPE_INT8", 1}},      {4, {TRITONSERVER_TYPE_UINT16, "TYPE_UINT16", 2}},
      {5, {TRITONSERVER_TYPE_INT16, "TYPE_INT16", 2}},    {6, {TRITONSERVER_TYPE_INT32, "TYPE_INT32", 4}},
      {7, {TRITONSERVER_TYPE_INT64, "TYPE_INT64", 8}},    {9, {TRITONSERVER_TYPE_BOOL, "TYPE_BOOL", 1}},
      {10, {TRITONSERVER_TYPE_FP16, "TYPE_FP16", 2}},     {11, {TRITONSERVER_TYPE_FP64, "TYPE_FP64", 8}},
      {12, {TRITONSERVER_TYPE_UINT32, "TYPE_UINT32", 4}}, {13, {TRITONSERVER_TYPE_UINT64, "TYPE_UINT64", 8}},
      {16, {TRITONSERVER_TYPE_BF16, "TYPE_BF16", 2}}};
  const auto it = types.find(onnx);
  if (it == types.end()) throw std::runtime_error("Triton has no element type for ONNX's " + std::to_string(onnx));
  return it->second;
}

class Model {
 public:
  Model(const std::filesystem::path& folder) : library(folder) {
    if (library.has_states)
      throw std::runtime_error("the library keeps states between runs; an instance would mix those of all clients");
    const rammer::Io* io = library.io_info();  // of the largest extents
    inputs.assign(io->inputs, io->inputs + io->input_count);
    outputs.assign(io->outputs, io->outputs + io->output_count);
    for (const auto* side : {&inputs, &outputs})
      for (const rammer::Tensor& t : *side) element_type(t.dtype);
    if (!library.set_dims) return;
    const std::string info = library.dims_info();
    input_dims = rammer::symbolic_dims(info, "inputs", io->input_count);
    output_dims = rammer::symbolic_dims(info, "outputs", io->output_count);
    find_batch();
  }

  // The configuration with what the library tells in the places that the user has left empty.
  std::string completed(std::string config) const {
    // Where the user gives inputs, max_batch_size says whether their dims begin with the batch: then 0 stays.
    if (most > 0 && config.find("\"input\":[]") != std::string::npos)
      fill(config, "\"max_batch_size\":0", "\"max_batch_size\":" + std::to_string(most));
    const bool batched = max_batch_size(config) > 0;
    fill(config, "\"input\":[]", "\"input\":" + described(inputs, input_dims, batched));
    fill(config, "\"output\":[]", "\"output\":" + described(outputs, output_dims, batched));
    return config;
  }

  static int64_t max_batch_size(const std::string& config) {
    const std::string key = "\"max_batch_size\":";
    const size_t at = config.find(key);
    return at == std::string::npos ? 0 : std::strtoll(config.c_str() + at + key.size(), nullptr, 10);
  }

  // Takes the number of samples that the server puts in a batch from the model's configuration.
  void configure(const std::string& config) {
    batched = max_batch_size(config) > 0;
    if (batched && most == 0)
      throw std::runtime_error(
          "max_batch_size must be 0: the first dims of the library's inputs and outputs are no batch; "
          "compile it with --dim batch=1,4,16");
    if (batched && max_batch_size(config) > most)
      throw std::runtime_error("max_batch_size is " + std::to_string(max_batch_size(config)) +
                               ", and the library takes " + std::to_string(most) + " samples at most");
  }

  rammer::Library library;
  std::vector<rammer::Tensor> inputs, outputs;
  std::vector<std::vector<std::string>> input_dims, output_dims;  // empty unless the library has set_dims
  int64_t most = 0;  // the largest batch; 0 if the first dim of all inputs and outputs is not the same symbol
  bool batched = false;

 private:
  void find_batch() {
    std::string symbol;
    for (const auto* side : {&input_dims, &output_dims}) {
      for (const auto& dims : *side) {
        if (dims.empty() || rammer::is_number(dims[0]) || (!symbol.empty() && dims[0] != symbol)) return;
        symbol = dims[0];
      }
    }
    if (!inputs.empty()) most = inputs[0].dims[0];
  }

  static void fill(std::string& config, const std::string& from, const std::string& to) {
    const size_t at = config.find(from);
    if (at != std::string::npos) config.replace(at, from.size(), to);
  }

  static std::string described(const std::vector<rammer::Tensor>& tensors,
                               const std::vector<std::vector<std::string>>& symbolic, bool batched) {
    std::string text = "[";
    for (size_t i = 0; i < tensors.size(); ++i) {
      const rammer::Tensor& t = tensors[i];
      if (i > 0) text += ",";
      text.append("{\"name\":\"").append(t.name).append("\",\"data_type\":\"");
      text.append(element_type(t.dtype).config).append("\",\"dims\":[");
      for (int d = batched ? 1 : 0; d < t.rank; ++d) {
        const bool fixed = symbolic.empty() || rammer::is_number(symbolic[i][static_cast<size_t>(d)]);
        if (text.back() != '[') text += ",";
        text += std::to_string(fixed ? t.dims[d] : -1);
      }
      text += "]}";
    }
    return text + "]";
  }
};
