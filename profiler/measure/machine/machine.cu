// The measuring machine: a process that carries out commands, a line each, and answers each with a line. It knows
// entries (candidates) by their numbers, and has one block of device memory, in which all operands lie.
//
//   space BYTES                          allocates the memory
//   fill AT COUNT TYPE SEED              random numbers; TYPE is f4, f8, h2, b2; z1: zeros; p1: all bits are 1
//   load AT BYTES OFFSET FILE            a part of a file
//   read AT BYTES FILE                   writes a part of the memory to a file
//   inputs N AT BYTES …                  what a launch before has left in L2
//   table BLOCKS RTASKS FIRST… RTASK…    which block computes which rTasks
//   code ENTRY                           registers, bytes of local and of shared memory
//   once ENTRY                           one launch
//   time ENTRY HOW MOST TOLERANCE        median ns of the block that takes longest, spread, repeats, MHz
//
// HOW is warm, cold, dram, memory or arithmetic. A launch that fails, fails the process: what it leaves is unknown.
#include <algorithm>
#include <string>

#include "machine/device.cuh"

namespace measure {

class Machine {
 public:
  void serve() {
    char command[32];
    while (std::scanf("%31s", command) == 1) {
      const std::string name = command;
      bool known = false;
      for (const auto& c : kCommands) {
        if (name != c.name) continue;
        (this->*c.run)();
        known = true;
      }
      if (!known) fail("no such command");
      std::fflush(stdout);
    }
  }

 private:
  struct Command {
    const char* name;
    void (Machine::*run)();
  };
  static const Command kCommands[9];

  static long long number() {
    long long n = 0;
    if (std::scanf("%lld", &n) != 1) fail("a number is missing");
    return n;
  }
  static std::string word() {
    char w[4096];
    if (std::scanf("%4095s", w) != 1) fail("a word is missing");
    return w;
  }

  void space() {
    if (memory_) device_.release(memory_);
    bytes_ = size_t(number());
    memory_ = device_.allocate(bytes_);
    std::printf("ok\n");
  }

  // The place of a command's region, which must be inside of the memory.
  char* place(size_t at, size_t bytes) {
    if (at > bytes_ || bytes > bytes_ - at) fail("a region outside of the memory");
    return memory_ + at;
  }

  void fill() {
    const size_t at = number(), count = number();
    const std::string type = word();
    uint64_t x = uint64_t(number()) * 0x9E3779B97F4A7C15u + 1;
    const size_t size = size_t(type.at(1) - '0');
    std::vector<char> data(count * size, type[0] == 'p' ? char(0xFF) : 0);
    for (size_t i = 0; i < count && type[0] != 'z' && type[0] != 'p'; ++i) {
      x ^= x << 13, x ^= x >> 7, x ^= x << 17;
      put(&data[i * size], type, double(x >> 11) / double(uint64_t{1} << 53) * 2 - 1);
    }
    device_.upload(place(at, data.size()), data.data(), data.size());
    std::printf("ok\n");
  }

  // A number from -1 to 1 in the given type. Those of 16 bits are cut off, not rounded.
  static void put(char* to, const std::string& type, double v) {
    const float f = float(v);
    uint32_t bits;
    std::memcpy(&bits, &f, 4);
    if (type == "f4") std::memcpy(to, &f, 4);
    if (type == "f8") std::memcpy(to, &v, 8);
    if (type == "b2") std::memcpy(to, reinterpret_cast<char*>(&bits) + 2, 2);
    if (type == "h2") {
      const int exponent = int(bits >> 23 & 255) - 112;
      const uint16_t h =
          uint16_t(bits >> 16 & 0x8000u) | uint16_t(exponent <= 0 ? 0 : exponent << 10 | (bits >> 13 & 1023));
      std::memcpy(to, &h, 2);
    }
  }

  void load() {
    const size_t at = number(), bytes = number();
    const long long offset = number();
    const std::string path = word();
    std::vector<char> data(bytes);
    FILE* f = std::fopen(path.c_str(), "rb");
    if (!f || std::fseek(f, long(offset), SEEK_SET) != 0 || std::fread(data.data(), 1, bytes, f) != bytes) {
      fail("a file cannot be read");
    }
    std::fclose(f);
    device_.upload(place(at, bytes), data.data(), bytes);
    std::printf("ok\n");
  }

  void read() {
    const size_t at = number(), bytes = number();
    const std::string path = word();
    std::vector<char> data(bytes);
    device_.download(data.data(), place(at, bytes), bytes);
    FILE* f = std::fopen(path.c_str(), "wb");
    if (!f || std::fwrite(data.data(), 1, bytes, f) != bytes || std::fclose(f) != 0) fail("a file cannot be written");
    std::printf("ok\n");
  }

  void inputs() {
    inputs_.resize(size_t(number()));
    for (Region& r : inputs_) {
      r.at = size_t(number()), r.bytes = size_t(number());
      place(r.at, r.bytes);
    }
    std::printf("ok\n");
  }

  void table() {
    blocks_ = int(number());
    std::vector<int> all(size_t(blocks_) + 1 + size_t(number()));
    for (int& x : all) x = int(number());
    if (table_) device_.release(table_);
    table_ = reinterpret_cast<int*>(device_.allocate(all.size() * sizeof(int)));
    device_.upload(table_, all.data(), all.size() * sizeof(int));
    std::printf("ok\n");
  }

  const Entry& entry() {
    const long long n = number();
    if (n < 0 || n >= entry_count) fail("no such entry");
    return entries[n];
  }

  void code() {
    const Code c = entry().code();
    std::printf("ok %d %d %d\n", c.registers, c.local, c.shared);
  }

  // Releases a table in device memory, and makes another one of the rows at `from`, if there are any.
  template <class Row>
  Row* replace(Row* old, const Row* from, size_t rows) {
    if (old) device_.release(old);
    if (!from) return nullptr;
    Row* to = reinterpret_cast<Row*>(device_.allocate(sizeof(Row) * rows));
    device_.upload(to, from, sizeof(Row) * rows);
    return to;
  }

  // Makes the launch's description, with room for the cycles of so many launches.
  Job job(const Entry& e, int launches) {
    Job j{};
    for (char*& b : j.bases.at) b = memory_;
    if (e.matrix_count > 0) j.bases.at[kMapSpace] = tensor_maps(e);
    weights_ = replace(weights_, e.weights, size_t(e.rtasks));
    moves_ = replace(moves_, e.moves, size_t(e.rtasks) * size_t(e.imports + e.exports));
    const size_t need = sizeof(uint64_t) * size_t(launches) * size_t(blocks_);
    if (need > cycles_bytes_) {
      if (cycles_) device_.release(cycles_);
      cycles_ = reinterpret_cast<uint64_t*>(device_.allocate(need)), cycles_bytes_ = need;
    }
    j.weights = weights_, j.moves = moves_, j.imports = e.imports, j.exports = e.exports;
    j.first = table_, j.rtasks = table_ + blocks_ + 1, j.cycles = cycles_;
    return j;
  }

  // Makes the tensor maps of a candidate's matrices, and says in the candidate's arguments where they are.
  char* tensor_maps(const Entry& e) {
    if (e.matrix_count > kMostMaps) fail("a candidate has more tensor maps than there is room for");
    if (!maps_) maps_ = device_.allocate(kMostMaps * rt::kTensorMapBytes);
    for (int i = 0; i < e.matrix_count; ++i) {
      rt::TiledMatrix& m = *e.matrices[i];
      alignas(64) char map[rt::kTensorMapBytes] = {};
      if (!Device::encode(m, memory_ + (m.at & rt::kRefOffsetMask), map)) fail("the driver makes no tensor map");
      device_.upload(maps_ + i * rt::kTensorMapBytes, map, sizeof map);
      m.map = RT_REF(kMapSpace, i * rt::kTensorMapBytes);
    }
    return maps_;
  }

  void launch(const Entry& e, const Job& j) {
    char error[256] = "";
    if (!e.launch(e.args, j, blocks_, device_.stream(), error)) fail(error);
  }

  void once() {
    const Entry& e = entry();
    launch(e, job(e, 1));
    device_.wait();
    std::printf("ok\n");
  }

  // What comes before each launch that is timed.
  void prepare(const std::string& how) {
    if (how == "cold" || how == "dram") device_.evict_code();
    if (how == "dram") device_.evict_data(memory_, inputs_);
    if (how == "memory" || how == "arithmetic") {
      device_.wait();
      device_.neighbours(how == "memory", kNeighbourTime);
    }
  }

  // Repeats in batches until the median does not change by more than the tolerance, and the clock has not changed.
  void time() {
    const Entry& e = entry();
    const std::string how = word();
    const int most = int(number());
    double tolerance = 0;
    if (std::scanf("%lf", &tolerance) != 1) fail("a tolerance is missing");
    const Job j = job(e, kBatch);
    launch(e, j);
    double rate = 0;
    std::vector<double> all;
    for (int attempt = 0; attempt < 3; ++attempt) {
      const double before = device_.rate();
      all = repeat(e, j, how, most, tolerance);
      rate = device_.rate();
      if (rate < 1.01 * before && before < 1.01 * rate) break;
    }
    std::sort(all.begin(), all.end());
    const double median = all[all.size() / 2];
    const double spread = (all[all.size() * 3 / 4] - all[all.size() / 4]) / (2 * median);
    std::printf("ok %.1f %.4f %d %.0f\n", median / rate, spread, int(all.size()), 1000 * rate);
  }

  std::vector<double> repeat(const Entry& e, Job j, const std::string& how, int most, double tolerance) {
    std::vector<double> all;
    std::vector<uint64_t> cycles(size_t(kBatch) * size_t(blocks_));
    for (double before = 0; int(all.size()) < most;) {
      for (int i = 0; i < kBatch; ++i) {
        prepare(how);
        j.cycles = cycles_ + size_t(i) * size_t(blocks_);
        launch(e, j);
      }
      device_.wait();
      device_.download(cycles.data(), cycles_, cycles.size() * sizeof cycles[0]);
      for (int i = 0; i < kBatch; ++i) {
        const auto first = cycles.begin() + i * blocks_;
        all.push_back(double(*std::max_element(first, first + blocks_)));
      }
      std::vector<double> sorted = all;
      std::nth_element(sorted.begin(), sorted.begin() + long(sorted.size() / 2), sorted.end());
      const double median = sorted[sorted.size() / 2];
      if (before > 0 && median <= (1 + tolerance) * before && before <= (1 + tolerance) * median) break;
      before = median;
    }
    return all;
  }

  static constexpr int kBatch = 8;
  static constexpr uint64_t kNeighbourTime = 60000;
  Device device_;
  char* memory_ = nullptr;
  size_t bytes_ = 0, cycles_bytes_ = 0;
  std::vector<Region> inputs_;
  int* table_ = nullptr;
  int blocks_ = 0;
  Block* weights_ = nullptr;
  rt::Move* moves_ = nullptr;
  uint64_t* cycles_ = nullptr;
  char* maps_ = nullptr;  // the tensor maps of the candidate that runs
};

const Machine::Command Machine::kCommands[9] = {
    {"space", &Machine::space}, {"fill", &Machine::fill},     {"load", &Machine::load},
    {"read", &Machine::read},   {"inputs", &Machine::inputs}, {"table", &Machine::table},
    {"code", &Machine::code},   {"once", &Machine::once},     {"time", &Machine::time},
};

}  // namespace measure

int main() {
  measure::Machine().serve();
  return 0;
}
