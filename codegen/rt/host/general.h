// A general program: one whose inputs have dims with ranges, and which computes with the extents that a run has. Its
// special programs, of parts of these ranges, are general programs, too (special.h).
//
// Buffers are laid out for the largest extents, and every element lies where it does in them; elements beyond the
// extents of the run, dead ones, are computed with the others or not at all, and nobody reads them. The caller's
// tensors are dense for the extents of the run, so they are copied to and from tensors of the largest extents, unless
// that is what they are. rKernels that sum over such an axis have its extent among their Args. A program has Args of
// its own in each context, in which set_extents writes it.
//
// Extents that the device finds in a run are outputs of the model that its caller does not see: they come behind the
// others. After a run the host reads them, and then copies the tensors that have such extents. In the same way the host
// learns that an input had a value for which the program was not made. So an inference with such outputs is waited for,
// also by run_async.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "rt/host/context.h"
#include "rt/host/ranges.h"
#include "rt/host/unpack.h"

namespace rt {

// One program of a library in a context: the general one, or a special one.
template <class Program>
class GeneralProgram : public Context<Program> {
  using Base = Context<Program>;

 public:
  GeneralProgram(const Model& m, const General& g, const Options& o) : GeneralProgram(m, g, o, {{}, {}, room(g)}, {}) {}

  // A special program of `whole`, or that of the prompt, with its weights, its arena and its states.
  GeneralProgram(const Model& m, const General& g, const Options& o, const GeneralProgram& whole)
      : GeneralProgram(m, g, o, {whole.weights_of(m), whole.arena_, 0}, whole.places_of(m, g)) {}

  GeneralProgram(const Model& m, const General& g, const Options& o, const typename Base::Lent& lent,
                 const std::vector<void*>& states)
      : Base(m, named(o, g), lent), general_(g) {
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
    this->make_staging(states);
    // Indices beyond the extents of the first runs are zeros; later they are those of runs before.
    for (int i = 0; i < m.input_count; ++i) {
      dev::clear(this->staged_in_[static_cast<size_t>(i)], static_cast<size_t>(m.inputs[i].bytes));
    }
    if (g.state_count > 0) this->kept_.resize(static_cast<size_t>(m.output_count));
    for (int i = 0; i < g.state_count; ++i) {
      if (states.empty()) clear(g.states[i]);
      this->kept_[static_cast<size_t>(g.states[i].output)] = true;
      if (g.states[i].repeats) this->repeats_ = g.states[i].output;
    }
  }

  // Sets the extents of the inferences that follow, which the program must take.
  void set_extents(const std::vector<int64_t>& extents) {
    std::lock_guard<std::mutex> hold(this->mutex_);
    if (extents == extents_) return;
    extents_ = extents;
    changed_ = true;
    general_.apply(places_.data(), extents_.data());
  }

  // Copies from memory of the host or the device, which nothing writes any more.
  void read(void* to, const void* from, size_t bytes) {
    dev::DeviceScope scope(this->device_);
    dev::copy_rows_async(to, bytes, from, bytes, bytes, 1, this->stream_->get());
    dev::wait_for(this->stream_->get());
  }

  // The inference follows those of `before`, another program of the context, if there is one.
  void run_async(dev::Stream stream, const void* const* in, void* const* out, GeneralProgram* before) {
    std::lock_guard<std::mutex> hold(this->mutex_);
    dev::DeviceScope scope(this->device_);
    check(in, out);
    if (changed_ && dev::capturing(stream)) {
      throw Error{kBadArgument, "the dims have changed: run once with them before a stream is captured"};
    }
    if (tells() && dev::capturing(stream)) {
      throw Error{kBadArgument, "the host looks at what a run finds: it cannot be captured"};
    }
    if (this->repeats_ >= 0 && !this->repeats_on_device() && dev::capturing(stream)) {
      throw Error{kBadArgument, "the program runs as often as it finds: it cannot be captured"};
    }
    this->waited_for_ = false;
    this->explained([&] { put(stream, in, out, true, before); });
  }

  // The runs of a program that repeats begin behind one of this program, if there is one.
  void begin_behind(GeneralProgram* prompt) { prompt_ = prompt; }

  const General& general() const { return general_; }

  // The extents of the latest inference, with those that it has found.
  const std::vector<int64_t>& extents() const { return extents_; }

  void run(const void* const* in, void* const* out, bool on_host, GeneralProgram* before) {
    std::lock_guard<std::mutex> hold(this->mutex_);
    dev::DeviceScope scope(this->device_);
    check(in, out);
    this->waited_for_ = true;
    this->explained([&] {
      const dev::Stream s = this->stream_->get();
      for (int tries = 0; tries < 2; ++tries) {
        put(s, in, out, !on_host, before);
        dev::wait_for(s);
        if (!this->gave_up()) break;
      }
    });
  }

  // Whether an inference runs the program several times, and leaves no states behind.
  bool repeats() const { return this->repeats_ >= 0; }

  // Makes states that do not grow zeros.
  void clear_states() {
    settle();
    dev::DeviceScope scope(this->device_);
    for (int i = 0; i < general_.state_count; ++i) {
      if (!general_.states[i].grows) clear(general_.states[i]);
    }
  }

  size_t state_bytes() const {  // as dense tensors
    size_t bytes = 0;
    for (int i = 0; i < general_.state_count; ++i) bytes += dense_bytes(general_.states[i].port);
    return bytes;
  }

  // Copies all states to the host, or from there, as dense tensors.
  void move_states(char* host, bool in) {
    settle();
    std::lock_guard<std::mutex> hold(this->mutex_);
    dev::DeviceScope scope(this->device_);
    const dev::Stream s = this->stream_->get();
    for (int i = 0; i < general_.state_count; ++i) {
      const StatePort& p = general_.states[i];
      copy(p.port, static_cast<char*>(this->staged_out_[static_cast<size_t>(p.output)]), host, in, s);
      host += dense_bytes(p.port);
    }
    dev::wait_for(s);
  }

  // Waits until no inference of the program runs.
  void settle() {
    std::lock_guard<std::mutex> hold(this->mutex_);
    dev::DeviceScope scope(this->device_);
    if (this->used_) this->fence_->wait();
  }

  // The weights of one of its special programs, whose tables are unpacked unless another context has done so.
  std::shared_ptr<Weights> weights_of(const Model& special) const {
    dev::DeviceScope scope(this->device_);
    return share_weights(special, "", this->device_, [&] {
      const char* packed = this->weights_->packed().data() + (special.packed_at - this->model_.own_tables_bytes);
      return std::make_shared<Weights>(special, *this->weights_, Unpacker(packed, special.packed_bytes).table());
    });
  }

  int device() const { return this->device_; }

 private:
  // What the arena must have room for: any of the special programs, and that of the prompt.
  static size_t room(const General& g) {
    size_t bytes = 0;
    for (int i = 0; i < g.special_count; ++i) bytes = std::max(bytes, Base::arena_bytes(*g.specials[i].model));
    if (g.prompt) bytes = std::max(bytes, Base::arena_bytes(*g.prompt->model));
    return bytes;
  }

  static Options named(Options o, const General& g) {
    o.program = g.name;
    return o;
  }

  int64_t extent(const Factor& f) const { return f.range < 0 ? f.n : extents_[static_cast<size_t>(f.range)]; }

  bool found(const Factor& f) const { return f.range >= 0 && general_.ranges[f.range].found; }

  // Whether the host has to look at outputs of the model behind those of the caller after a run: they tell extents that
  // the device finds, or that something is wrong.
  bool tells() const { return this->model_.output_count > general_.output_count + general_.state_count; }

  void clear(const StatePort& p) {
    dev::clear(this->staged_out_[static_cast<size_t>(p.output)], this->model_.outputs[p.output].bytes);
  }

  size_t dense_bytes(const GeneralPort& port) const {
    size_t bytes = port.element;
    for (int k = 0; k < port.cuts[port.rank]; ++k) bytes *= static_cast<size_t>(extent(port.factors[k]));
    return bytes;
  }

  // Whether all extents of a tensor are known to be the largest ones.
  bool whole(const GeneralPort& port) const {
    for (int k = 0; k < port.cuts[port.rank]; ++k) {
      if (extent(port.factors[k]) != port.factors[k].n || found(port.factors[k])) return false;
    }
    return true;
  }

  // The memory of a tensor of the caller, with room for all that a run could find.
  Span span(bool is_output, int i, const void* p) const {
    if (is_output && i >= general_.output_count) return Span{"output ", this->model_.outputs[i].name, nullptr, 0};
    const GeneralPort& port = is_output ? general_.outputs[i] : general_.inputs[i];
    size_t bytes = port.element;
    for (int k = 0; k < port.cuts[port.rank]; ++k) {
      const Factor& f = port.factors[k];
      bytes *= static_cast<size_t>(found(f) ? f.n : extent(f));
    }
    return Span{is_output ? "output " : "input ", port.name, p, bytes};
  }

  // Outputs may stand where inputs stood: then one of them is copied.
  void check(const void* const* in, void* const* out) const {
    check_pointers(this->model_, false, [&](bool is_output, int i) {
      if (is_output && i >= general_.output_count) return span(true, i, nullptr);
      return span(is_output, i, is_output ? (out ? out[i] : nullptr) : (in ? in[i] : nullptr));
    });
  }

  // Decides where the inference finds its tensors: those on the device that have the largest extents where they are, if
  // no output would overwrite an input there, and others where their copies stand.
  void place(const void* const* in, void* const* out, bool on_device) {
    auto in_place = [&](const GeneralPort& port, const void* p) {
      return on_device && reinterpret_cast<uintptr_t>(p) % 16 == 0 && whole(port);
    };
    used_in_.assign(this->staged_in_.begin(), this->staged_in_.end());
    used_out_.assign(this->staged_out_.begin(), this->staged_out_.end());
    for (int i = 0; i < this->model_.input_count; ++i) {
      if (in_place(general_.inputs[i], in[i])) used_in_[static_cast<size_t>(i)] = in[i];
    }
    for (int i = 0; i < general_.output_count; ++i) {
      bool apart = in_place(general_.outputs[i], out[i]);
      for (int k = 0; k < this->model_.input_count; ++k) {
        const bool used = used_in_[static_cast<size_t>(k)] == in[k];
        apart = apart && !(used && overlap(span(true, i, out[i]), span(false, k, in[k])));
      }
      if (apart) used_out_[static_cast<size_t>(i)] = out[i];
    }
  }

  // Puts a copy of the Args to the device on the stream. The copy reads a duplicate, so that the host may go on to
  // other extents without waiting for it; there are a few duplicates, which take turns.
  void upload_args(dev::Stream s) {
    Duplicate& d = duplicates_[next_duplicate_++ % kDuplicates];
    if (d.read) {
      d.read->wait();
    } else {
      d.read.reset(new dev::Fence);
    }
    d.args = args_;
    dev::upload_async(on_device_.get(), d.args.data(), d.args.size(), s);
    d.read->set(s);
  }

  // Puts an inference on the stream, with the copies of its tensors.
  void put(dev::Stream s, const void* const* in, void* const* out, bool on_device, GeneralProgram* before) {
    const bool captured = dev::capturing(s);
    if (before && before->used_ && !captured) before->fence_->join(s);
    if (this->used_ && !captured) this->fence_->join(s);  // what is copied to is no longer read
    if (changed_) upload_args(s);
    changed_ = false;
    place(in, out, on_device);
    for (size_t i = 0; i < used_in_.size(); ++i) {
      if (used_in_[i] == in[i]) continue;
      copy(general_.inputs[i], static_cast<char*>(this->staged_in_[i]),
           const_cast<char*>(static_cast<const char*>(in[i])), true, s);
    }
    if (this->repeats_ < 0) {
      this->enqueue(s, used_in_.data(), used_out_.data());
    } else {
      repeat(s);
    }
    if (tells()) read_hidden(s);
    bool copied = false;
    for (size_t i = 0; i < static_cast<size_t>(general_.output_count); ++i) {
      if (used_out_[i] == out[i]) continue;
      copy(general_.outputs[i], static_cast<char*>(used_out_[i]), static_cast<char*>(out[i]), false, s);
      copied = true;
    }
    if (copied && !captured) this->fence_->set(s);
  }

  // repeat.h
  void repeat(dev::Stream s);
  bool launch_loop(dev::Stream s);
  void grow();
  void find_patches(dev::Stream s);
  void follow(dev::Stream s, const std::vector<const void*>& in);
  std::vector<void*> places_of(const Model& m, const General& g) const;

  // Waits for the inference, takes the extents that it has found, and throws if something is wrong. After an inference
  // that failed they may be anything.
  void read_hidden(dev::Stream s) {
    std::vector<int64_t> told(extents_.size()), broken;
    for (const Requirement* r = general_.requirements; r->message; ++r) broken.push_back(0);
    for (size_t i = 0; i < broken.size(); ++i) {
      const int output = general_.requirements[i].output;
      dev::download_async(&broken[i], used_out_[static_cast<size_t>(output)], sizeof broken[i], s);
    }
    for (size_t r = 0; r < told.size(); ++r) {
      const int output = general_.ranges[r].output;
      if (output >= 0) dev::download_async(&told[r], used_out_[static_cast<size_t>(output)], sizeof told[r], s);
    }
    dev::wait_for(s);
    for (size_t i = 0; i < broken.size(); ++i) {
      if (broken[i] != 0) throw Error{kBadArgument, general_.requirements[i].message};
    }
    for (size_t r = 0; r < told.size(); ++r) {
      const Range& range = general_.ranges[r];
      if (range.output >= 0) extents_[r] = std::max<int64_t>(0, std::min(told[r], range.hi));
    }
  }

  // Copies a tensor from its dense form to that of the largest extents, or back. Neighbouring factors are one as
  // long as the inner ones are as large as they can be; so what is left are rows, blocks of rows, and so on.
  void copy(const GeneralPort& port, char* wide, char* dense, bool in, dev::Stream s) const {
    for (int k = 0; k < port.cuts[port.rank]; ++k) {
      if (extent(port.factors[k]) == 0) return;
    }
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

  // What the device copies Args from, and when it has done so.
  struct Duplicate {
    std::vector<char> args;
    std::unique_ptr<dev::Fence> read;
  };
  static constexpr unsigned kDuplicates = 4;

  const General& general_;
  std::vector<int64_t> extents_;
  std::vector<char> args_;     // the Args of all rOperators, as the device has them
  std::vector<char*> places_;  // of each rOperator's in them
  DeviceBuffer on_device_;
  bool changed_ = false;  // args_ differs from what the device has
  Duplicate duplicates_[kDuplicates];
  unsigned next_duplicate_ = 0;
  GeneralProgram* prompt_ = nullptr;  // comes before the first run of a program that repeats
  std::vector<int64_t> patched_;      // the extents that the patches of a program that repeats are for
  std::vector<const void*> used_in_;  // where the inference finds its tensors
  std::vector<void*> used_out_;
};

}  // namespace rt

#include "rt/host/repeat.h"
