// A stand-in for Triton Inference Server: it has the functions that the backend calls, and objects that tell a test
// what the backend did with them. Each object is counted, so that none is lost or given back twice.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "triton_api.h"

struct TRITONSERVER_Error {
  TRITONSERVER_Error_Code code;
  std::string text;
};
struct TRITONSERVER_Message {
  std::string json;
};
struct TRITONBACKEND_Backend {};
struct TRITONBACKEND_Model {
  std::string name, folder, config;
  bool auto_complete = true;
  void* state = nullptr;
};
struct TRITONBACKEND_ModelInstance {
  TRITONBACKEND_Model* model = nullptr;
  TRITONSERVER_InstanceGroupKind kind = TRITONSERVER_INSTANCEGROUPKIND_CPU;
  int device = 0;
  void* state = nullptr;
  uint64_t batches = 0, samples = 0, successes = 0, failures = 0;
};
struct TRITONBACKEND_Input {
  std::string name;
  TRITONSERVER_DataType type = TRITONSERVER_TYPE_FP32;
  std::vector<int64_t> shape;
  std::vector<std::string> buffers;
  TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
};
struct TRITONBACKEND_Output {
  std::string name, data;
  TRITONSERVER_DataType type = TRITONSERVER_TYPE_INVALID;
  std::vector<int64_t> shape;
};
struct TRITONBACKEND_Request {
  std::vector<TRITONBACKEND_Input> inputs;
  std::vector<std::string> outputs;
  bool output_in_gpu = false;
  // What came of it.
  std::map<std::string, TRITONBACKEND_Output> results;
  std::string error;
  TRITONSERVER_Error_Code code = TRITONSERVER_ERROR_UNKNOWN;
  int responses = 0, releases = 0;
};
struct TRITONBACKEND_Response {
  TRITONBACKEND_Request* request = nullptr;
  std::map<std::string, TRITONBACKEND_Output> outputs;
};

// How many errors, messages and responses there are at the moment: 0 when all calls are done.
inline std::atomic<long> objects{0};
