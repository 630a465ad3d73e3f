// The main function of a shard's program. It reads requests, which are the number of a model and the bytes of its
// inputs, and answers each with a status, the number of bytes that follow, and the outputs or the text of an error.
// Every model runs twice and the second outputs count, so that a run that depends on what another left behind shows.
#include "suite.cu"

#include <cstdio>
#include <string>
#include <vector>

namespace {

using Buffers = std::vector<std::vector<char>>;

Buffers buffers(const rt::PortRow* rows, int count) {
  Buffers all;
  for (int i = 0; i < count; ++i) all.emplace_back(rows[i].bytes + 16);
  return all;
}

void run_twice(int number, const char* folder, const Buffers& in, Buffers& out) {
  const std::string weights = std::string(folder) + "/" + models[number]->weights_file;
  rt::Options options;
  options.weights_path = weights.c_str();
  rt::Context<Program> context(*models[number], options);
  std::vector<const void*> from;
  std::vector<void*> to;
  for (const auto& b : in) from.push_back(b.data());
  for (auto& b : out) to.push_back(b.data());
  for (int i = 0; i < 2; ++i) context.run(from.data(), to.data(), true);
}

void reply(uint64_t status, uint64_t bytes) {
  const uint64_t head[2] = {status, bytes};
  std::fwrite(head, sizeof head, 1, stdout);
}

}  // namespace

int main(int, char** argv) {
  uint64_t number = 0;
  while (std::fread(&number, sizeof number, 1, stdin) == 1) {
    if (number >= model_count) return 1;
    const rt::Model& m = *models[number];
    Buffers in = buffers(m.inputs, m.input_count), out = buffers(m.outputs, m.output_count);
    for (int i = 0; i < m.input_count; ++i) {
      if (std::fread(in[i].data(), 1, m.inputs[i].bytes, stdin) != m.inputs[i].bytes) return 1;
    }
    std::string error;
    if (rt::guarded([&] { run_twice(static_cast<int>(number), argv[1], in, out); },
                    [&](const std::string& text) { error = text; }) != rt::kOk) {
      reply(1, error.size());
      std::fwrite(error.data(), 1, error.size(), stdout);
    } else {
      uint64_t bytes = 0;
      for (int i = 0; i < m.output_count; ++i) bytes += m.outputs[i].bytes;
      reply(0, bytes);
      for (int i = 0; i < m.output_count; ++i) std::fwrite(out[i].data(), 1, m.outputs[i].bytes, stdout);
    }
    std::fflush(stdout);
  }
  return 0;
}
