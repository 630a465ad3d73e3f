// A general program: one whose inputs have dims with ranges, and which computes with the extents that a run has.
//
// Buffers are laid out for the largest extents, and every element lies where it does in them; elements beyond the
// extents of the run, dead ones, are computed with the others or not at all, and nobody reads them. The caller's
// tensors are dense for the extents of the run, so they are copied to and from tensors of the largest extents.
// rKernels that sum over such an axis have its extent among their Args. A context has Args of its own, in which
// set_dims writes it.
#pragma once

#include <climits>
#include <string>
#include <vector>

#include "rt/host/context.h"

namespace rt {

// A dim whose extent a run tells, within a range.
struct Range {
  const char* name;
  int64_t lo, hi;
  const int64_t* values;  // the only extents that are allowed, ascending; or null
  int value_count;
};

// A part of a dim of a tensor: the largest extent, and the number of the range that it belongs to, or -1.
struct Factor {
  int64_t n;
  int range;
};

// A tensor of the caller. Dim d is the product of the factors cuts[d] to cuts[d + 1] - 1; the last one counts fastest.
struct GeneralPort {
  const char* name;
  size_t element;  // bytes
  int rank;
  const int* cuts;
  const Factor* factors;
};

// What a general program has beside a Model.
struct General {
  int range_count;
  const Range* ranges;
  const GeneralPort *inputs, *outputs;
  // Writes extents into the Args of rOperators, by their numbers.
  void (*apply)(char* const* args, const int64_t* extents);
};

template <class Program>
class GeneralContext : public Context<Program> {
  using Base = Context<Program>;

 public:
  GeneralContext(const Model& m, const General& g, const Options& o) : Base(m, o), general_(g) {
    dev::DeviceScope scope(this->device_);
    for (int i = 0; i < g.range_count; ++i) extents_.push_back(g.ranges[i].hi);
    size_t bytes = 0;
    for (int i = 0; i < m.op_count; ++i) bytes = this->weights_->args_of(i) + m.ops[i].args_bytes;
    bytes = (bytes + 15) / 16 * 16;  // the device copies whole units
    args_.resize(bytes);
    for (int i = 0; i < m.op_count; ++i) {
      places_.push_back(args_.data() + this->weights_->args_of(i));
      std::memcpy(places_.back(), m.ops[i].args, m.ops[i].args_bytes);
    }
    on_device_ = DeviceBuffer(bytes);
    dev::upload(on_device_.get(), args_.data(), bytes);
    this->args_at_ = on_device_.get();
    this->make_staging();
    // Indices beyond the extents of the first runs are zeros; later they are those of runs before.
    for (int i = 0; i < m.input_count; ++i) {
      dev::clear(this->staged_in_[static_cast<size_t>(i)], static_cast<size_t>(m.inputs[i].bytes));
    }
  }

  // Sets the extents of the inferences that follow: for each input as many as it has dims.
  void set_dims(const int64_t* const* dims) {
    std::lock_guard<std::mutex> hold(this->mutex_);
    if (!dims && this->model_.input_count > 0) throw Error{kBadArgument, "dims is a null pointer"};
    std::vector<int64_t> extents(extents_.size(), -1);
    for (int i = 0; i < this->model_.input_count; ++i) read_dims(i, dims[i], extents);
    if (extents == extents_) return;
    dev::DeviceScope scope(this->device_);
    if (this->used_) this->fence_->wait();  // Args that are being copied stay as they are
    extents_ = extents;
    changed_ = true;
    general_.apply(places_.data(), extents_.data());
  }

  // The extent of dim d of a port at present.
  int64_t extent(const GeneralPort& port, int d) const {
    int64_t n = 1;
    for (int k = port.cuts[d]; k < port.cuts[d + 1]; ++k) n *= extent(port.factors[k]);
    return n;
  }

  void run_async(dev::Stream stream, const void* const* in, void* const* out) {
    std::lock_guard<std::mutex> hold(this->mutex_);
    dev::DeviceScope scope(this->device_);
    check(in, out);
    if (changed_ && dev::capturing(stream)) {
      throw Error{kBadArgument, "the dims have changed: run once with them before a stream is captured"};
    }
    this->waited_for_ = false;
    this->explained([&] { put(stream, in, out); });
  }

  // Host and device memory are told apart by their addresses.
  void run(const void* const* in, void* const* out, bool) {
    std::lock_guard<std::mutex> hold(this->mutex_);
    dev::DeviceScope scope(this->device_);
    check(in, out);
    this->waited_for_ = true;
    this->explained([&] {
      const dev::Stream s = this->stream_->get();
      for (int tries = 0; tries < 2; ++tries) {
        put(s, in, out);
        dev::wait_for(s);
        if (!this->gave_up()) break;
      }
    });
  }

 private:
  int64_t extent(const Factor& f) const { return f.range < 0 ? f.n : extents_[static_cast<size_t>(f.range)]; }

  // Takes the ranges' extents from the dims of input i. Every dim of an input is a number or one range.
  void read_dims(int i, const int64_t* dims, std::vector<int64_t>& extents) const {
    const GeneralPort& port = general_.inputs[i];
    if (!dims && port.rank > 0) throw Error{kBadArgument, "the dims of input " + std::string(port.name) + " are null"};
    for (int d = 0; d < port.rank; ++d) {
      const Factor& f = port.factors[port.cuts[d]];
      const std::string what = "input " + std::string(port.name) + ", axis " + std::to_string(d) + ": the extent is " +
                               std::to_string(dims[d]);
      if (f.range < 0) {
        if (dims[d] != f.n) throw Error{kBadArgument, what + ", want " + std::to_string(f.n)};
        continue;
      }
      const Range& r = general_.ranges[f.range];
      int64_t& known = extents[static_cast<size_t>(f.range)];
      if (!allows(r, dims[d])) throw Error{kBadArgument, what + ", want " + text(r)};
      if (known >= 0 && known != dims[d]) {
        throw Error{kBadArgument, what + ", but " + r.name + " is " + std::to_string(known) + " elsewhere"};
      }
      known = dims[d];
    }
  }

  static bool allows(const Range& r, int64_t n) {
    if (n < r.lo || n > r.hi) return false;
    for (int i = 0; i < r.value_count; ++i) {
      if (r.values[i] == n) return true;
    }
    return r.value_count == 0;
  }

  static std::string text(const Range& r) {
    std::string s = std::string(r.name) + "=";
    if (r.value_count == 0) return s + std::to_string(r.lo) + ".." + std::to_string(r.hi);
    for (int i = 0; i < r.value_count; ++i) s += (i > 0 ? "," : "") + std::to_string(r.values[i]);
    return s;
  }

  // The caller's tensors are copied, so that outputs may stand where inputs stood.
  void check(const void* const* in, void* const* out) const {
    check_pointers(this->model_, false, [&](bool is_output, int i) {
      const GeneralPort& port = is_output ? general_.outputs[i] : general_.inputs[i];
      size_t bytes = port.element;
      for (int d = 0; d < port.rank; ++d) bytes *= static_cast<size_t>(extent(port, d));
      const void* const p = is_output ? (out ? out[i] : nullptr) : (in ? in[i] : nullptr);
      return Span{is_output ? "output " : "input ", port.name, p, bytes};
    });
  }

  // Puts an inference on the stream, with the copies of its tensors.
  void put(dev::Stream s, const void* const* in, void* const* out) {
    if (this->used_ && !dev::capturing(s)) this->fence_->join(s);  // what is copied to is no longer read
    if (changed_) dev::upload_async(on_device_.get(), args_.data(), args_.size(), s);
    changed_ = false;
    for (int i = 0; i < this->model_.input_count; ++i) {
      copy(general_.inputs[i], static_cast<char*>(this->staged_in_[static_cast<size_t>(i)]),
           const_cast<char*>(static_cast<const char*>(in[i])), true, s);
    }
    this->enqueue(s, this->staged_in_.data(), this->staged_out_.data());
    for (int i = 0; i < this->model_.output_count; ++i) {
      copy(general_.outputs[i], static_cast<char*>(this->staged_out_[static_cast<size_t>(i)]),
           static_cast<char*>(out[i]), false, s);
    }
    if (!dev::capturing(s)) this->fence_->set(s);
  }

  // Copies a tensor from its dense form to that of the largest extents, or back. Neighbouring factors are one as
  // long as the inner ones are as large as they can be; so what is left are rows, blocks of rows, and so on.
  void copy(const GeneralPort& port, char* wide, char* dense, bool in, dev::Stream s) const {
    struct Level {
      size_t n, wide, dense;  // how many, and the bytes from one to the next
    };
    std::vector<Level> levels;  // from the innermost
    size_t wide_step = port.element, dense_step = port.element;
    for (int k = port.cuts[port.rank] - 1; k >= 0; --k) {
      const size_t n = static_cast<size_t>(extent(port.factors[k]));
      if (!levels.empty() && levels.back().n * levels.back().wide == wide_step &&
          levels.back().n * levels.back().dense == dense_step) {
        levels.back().n *= n;
      } else {
        levels.push_back({n, wide_step, dense_step});
      }
      wide_step *= static_cast<size_t>(port.factors[k].n);
      dense_step *= n;
    }
    while (levels.size() < 2) levels.push_back({1, port.element, port.element});
    copy_levels(levels.data(), static_cast<int>(levels.size()), wide, dense, in, s);
  }

  template <class Level>
  static void copy_levels(const Level* levels, int count, char* wide, char* dense, bool in, dev::Stream s) {
    if (count == 2) {
      const size_t width = levels[0].n * levels[0].wide, rows = levels[1].n;
      const size_t wide_pitch = rows > 1 ? levels[1].wide : width, dense_pitch = rows > 1 ? levels[1].dense : width;
      if (in) {
        dev::copy_rows_async(wide, wide_pitch, dense, dense_pitch, width, rows, s);
      } else {
        dev::copy_rows_async(dense, dense_pitch, wide, wide_pitch, width, rows, s);
      }
      return;
    }
    const Level& l = levels[count - 1];
    for (size_t i = 0; i < l.n; ++i) copy_levels(levels, count - 1, wide + i * l.wide, dense + i * l.dense, in, s);
  }

  const General& general_;
  std::vector<int64_t> extents_;
  std::vector<char> args_;     // the Args of all rOperators, as the device has them
  std::vector<char*> places_;  // of each rOperator's in them
  DeviceBuffer on_device_;
  bool changed_ = false;  // args_ differs from what the device has
};

}  // namespace rt
