#include "server.h"

#include <cstring>

#define API extern "C" __attribute__((visibility("default")))

namespace {
TRITONSERVER_Error* fail(TRITONSERVER_Error_Code code, const std::string& text) {
  return TRITONSERVER_ErrorNew(code, text.c_str());
}
}  // namespace

API TRITONSERVER_Error* TRITONSERVER_ErrorNew(TRITONSERVER_Error_Code code, const char* msg) {
  ++objects;
  return new TRITONSERVER_Error{code, msg};
}
API void TRITONSERVER_ErrorDelete(TRITONSERVER_Error* error) {
  --objects;
  delete error;
}
API const char* TRITONSERVER_ErrorMessage(TRITONSERVER_Error* error) { return error->text.c_str(); }

API TRITONSERVER_Error* TRITONSERVER_MessageNewFromSerializedJson(TRITONSERVER_Message** message, const char* base,
                                                                  size_t byte_size) {
  ++objects;
  *message = new TRITONSERVER_Message{std::string(base, byte_size)};
  return nullptr;
}
API TRITONSERVER_Error* TRITONSERVER_MessageDelete(TRITONSERVER_Message* message) {
  --objects;
  delete message;
  return nullptr;
}
API TRITONSERVER_Error* TRITONSERVER_MessageSerializeToJson(TRITONSERVER_Message* message, const char** base,
                                                            size_t* byte_size) {
  *base = message->json.data();
  *byte_size = message->json.size();
  return nullptr;
}

API TRITONSERVER_Error* TRITONBACKEND_ApiVersion(uint32_t* major, uint32_t* minor) {
  *major = TRITONBACKEND_API_VERSION_MAJOR;
  *minor = TRITONBACKEND_API_VERSION_MINOR;
  return nullptr;
}
API TRITONSERVER_Error* TRITONBACKEND_ModelName(TRITONBACKEND_Model* model, const char** name) {
  *name = model->name.c_str();
  return nullptr;
}
API TRITONSERVER_Error* TRITONBACKEND_ModelVersion(TRITONBACKEND_Model*, uint64_t* version) {
  *version = 1;
  return nullptr;
}
API TRITONSERVER_Error* TRITONBACKEND_ModelRepository(TRITONBACKEND_Model* model,
                                                      TRITONBACKEND_ArtifactType* artifact_type,
                                                      const char** location) {
  *artifact_type = TRITONBACKEND_ARTIFACT_FILESYSTEM;
  *location = model->folder.c_str();
  return nullptr;
}
API TRITONSERVER_Error* TRITONBACKEND_ModelConfig(TRITONBACKEND_Model* model, const uint32_t,
                                                  TRITONSERVER_Message** model_config) {
  return TRITONSERVER_MessageNewFromSerializedJson(model_config, model->config.data(), model->config.size());
}
API TRITONSERVER_Error* TRITONBACKEND_ModelAutoCompleteConfig(TRITONBACKEND_Model* model, bool* auto_complete_config) {
  *auto_complete_config = model->auto_complete;
  return nullptr;
}
API TRITONSERVER_Error* TRITONBACKEND_ModelSetConfig(TRITONBACKEND_Model* model, const uint32_t,
                                                     TRITONSERVER_Message* model_config) {
  model->config = model_config->json;
  return nullptr;
}
API TRITONSERVER_Error* TRITONBACKEND_ModelState(TRITONBACKEND_Model* model, void** state) {
  *state = model->state;
  return nullptr;
}
API TRITONSERVER_Error* TRITONBACKEND_ModelSetState(TRITONBACKEND_Model* model, void* state) {
  model->state = state;
  return nullptr;
}

API TRITONSERVER_Error* TRITONBACKEND_ModelInstanceKind(TRITONBACKEND_ModelInstance* instance,
                                                        TRITONSERVER_InstanceGroupKind* kind) {
  *kind = instance->kind;
  return nullptr;
}
API TRITONSERVER_Error* TRITONBACKEND_ModelInstanceDeviceId(TRITONBACKEND_ModelInstance* instance, int32_t* device_id) {
  *device_id = instance->device;
  return nullptr;
}
API TRITONSERVER_Error* TRITONBACKEND_ModelInstanceModel(TRITONBACKEND_ModelInstance* instance,
                                                         TRITONBACKEND_Model** model) {
  *model = instance->model;
  return nullptr;
}
API TRITONSERVER_Error* TRITONBACKEND_ModelInstanceState(TRITONBACKEND_ModelInstance* instance, void** state) {
  *state = instance->state;
  return nullptr;
}
API TRITONSERVER_Error* TRITONBACKEND_ModelInstanceSetState(TRITONBACKEND_ModelInstance* instance, void* state) {
  instance->state = state;
  return nullptr;
}
API TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportStatistics(TRITONBACKEND_ModelInstance* instance,
                                                                    TRITONBACKEND_Request* request, const bool success,
                                                                    const uint64_t exec_start_ns,
                                                                    const uint64_t compute_start_ns,
                                                                    const uint64_t compute_end_ns,
                                                                    const uint64_t exec_end_ns) {
  if (request->releases) return fail(TRITONSERVER_ERROR_INTERNAL, "statistics of a request that was given back");
  const bool ordered =
      exec_start_ns <= compute_start_ns && compute_start_ns <= compute_end_ns && compute_end_ns <= exec_end_ns;
  ++(success && ordered ? instance->successes : instance->failures);
  return nullptr;
}
API TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportBatchStatistics(TRITONBACKEND_ModelInstance* instance,
                                                                         const uint64_t batch_size, const uint64_t,
                                                                         const uint64_t, const uint64_t,
                                                                         const uint64_t) {
  ++instance->batches;
  instance->samples += batch_size;
  return nullptr;
}

API TRITONSERVER_Error* TRITONBACKEND_RequestInput(TRITONBACKEND_Request* request, const char* name,
                                                   TRITONBACKEND_Input** input) {
  for (TRITONBACKEND_Input& i : request->inputs) {
    if (i.name != name) continue;
    *input = &i;
    return nullptr;
  }
  return fail(TRITONSERVER_ERROR_INVALID_ARG, std::string("the request has no input ") + name);
}
API TRITONSERVER_Error* TRITONBACKEND_RequestOutputCount(TRITONBACKEND_Request* request, uint32_t* count) {
  *count = static_cast<uint32_t>(request->outputs.size());
  return nullptr;
}
API TRITONSERVER_Error* TRITONBACKEND_RequestOutputName(TRITONBACKEND_Request* request, const uint32_t index,
                                                        const char** output_name) {
  *output_name = request->outputs[index].c_str();
  return nullptr;
}
API TRITONSERVER_Error* TRITONBACKEND_RequestRelease(TRITONBACKEND_Request* request, uint32_t) {
  ++request->releases;
  // Nobody may read the request's inputs from here on.
  for (TRITONBACKEND_Input& i : request->inputs)
    for (std::string& b : i.buffers) std::memset(b.data(), 0xff, b.size());
  return nullptr;
}
API TRITONSERVER_Error* TRITONBACKEND_InputProperties(TRITONBACKEND_Input* input, const char** name,
                                                      TRITONSERVER_DataType* datatype, const int64_t** shape,
                                                      uint32_t* dims_count, uint64_t* byte_size,
                                                      uint32_t* buffer_count) {
  if (name) *name = input->name.c_str();
  if (datatype) *datatype = input->type;
  if (shape) *shape = input->shape.data();
  if (dims_count) *dims_count = static_cast<uint32_t>(input->shape.size());
  if (byte_size) {
    *byte_size = 0;
    for (const std::string& b : input->buffers) *byte_size += b.size();
  }
  if (buffer_count) *buffer_count = static_cast<uint32_t>(input->buffers.size());
  return nullptr;
}
API TRITONSERVER_Error* TRITONBACKEND_InputBuffer(TRITONBACKEND_Input* input, const uint32_t index, const void** buffer,
                                                  uint64_t* buffer_byte_size, TRITONSERVER_MemoryType* memory_type,
                                                  int64_t* memory_type_id) {
  *buffer = input->buffers[index].data();
  *buffer_byte_size = input->buffers[index].size();
  *memory_type = input->memory;
  *memory_type_id = 0;
  return nullptr;
}
API TRITONSERVER_Error* TRITONBACKEND_OutputBuffer(TRITONBACKEND_Output* output, void** buffer,
                                                   const uint64_t buffer_byte_size,
                                                   TRITONSERVER_MemoryType* memory_type, int64_t*) {
  output->data.assign(buffer_byte_size, '\0');
  *buffer = output->data.data();
  if (output->type == TRITONSERVER_TYPE_INVALID) *memory_type = TRITONSERVER_MEMORY_GPU;
  return nullptr;
}
API TRITONSERVER_Error* TRITONBACKEND_ResponseNew(TRITONBACKEND_Response** response, TRITONBACKEND_Request* request) {
  ++objects;
  *response = new TRITONBACKEND_Response{request, {}};
  return nullptr;
}
API TRITONSERVER_Error* TRITONBACKEND_ResponseDelete(TRITONBACKEND_Response* response) {
  --objects;
  delete response;
  return nullptr;
}
API TRITONSERVER_Error* TRITONBACKEND_ResponseOutput(TRITONBACKEND_Response* response, TRITONBACKEND_Output** output,
                                                     const char* name, const TRITONSERVER_DataType datatype,
                                                     const int64_t* shape, const uint32_t dims_count) {
  const TRITONSERVER_DataType type = response->request->output_in_gpu ? TRITONSERVER_TYPE_INVALID : datatype;
  *output = &(response->outputs[name] = {name, "", type, {shape, shape + dims_count}});
  return nullptr;
}
API TRITONSERVER_Error* TRITONBACKEND_ResponseSend(TRITONBACKEND_Response* response, const uint32_t,
                                                   TRITONSERVER_Error* error) {
  TRITONBACKEND_Request* request = response->request;
  ++request->responses;
  if (error) {
    request->error = error->text;
    request->code = error->code;
  } else {
    request->results = std::move(response->outputs);
  }
  --objects;
  delete response;
  return nullptr;
}
