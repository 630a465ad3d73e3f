// The context of a library whose dims have ranges: its general program, and the special programs that its runs have
// asked for.
//
//   seq=1..32   seq=1..64   seq=1..128   seq=1..512        set_dims(50) takes the first program from the left that
//    special     special     special      general          takes 50; here the one of seq=1..64
//
// Programs have an arena, flags and graphs of their own and share the constants. A special program is made when
// set_dims first asks for it, and its tables are unpacked then. A context keeps as many of them as limit_specials says;
// the one that was not used for longest goes. Where the device has no memory for another one, the general program runs.
#pragma once

#include <atomic>
#include <cstring>
#include <forward_list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "rt/host/general.h"

namespace rt {

template <class Program>
class GeneralContext {
  using One = GeneralProgram<Program>;

 public:
  GeneralContext(const Model& m, const General& g, const Options& o)
      : model_(m), general_(g), options_(o), whole_(m, g, o), current_(&whole_) {
    for (int i = 0; i < g.range_count; ++i) {
      applied_.push_back(g.ranges[i].hi);
      extents_.push_back(g.ranges[i].state ? g.ranges[i].lo : g.ranges[i].hi);
    }
    g.derive(extents_.data());
    options_.device = whole_.device();
    kept_.resize(static_cast<size_t>(g.special_count));
    describe();
  }

  // Sets the extents of the inferences that follow: for each input as many as it has dims.
  void set_dims(const int64_t* const* dims) {
    whole_.check_process();
    std::lock_guard<std::mutex> hold(mutex_);
    if (!dims && model_.input_count > 0) throw Error{kBadArgument, "dims is a null pointer"};
    std::vector<int64_t> extents(extents_.size(), -1);
    for (int i = 0; i < model_.input_count; ++i) read_dims(i, dims[i], extents);
    for (size_t r = 0; r < extents.size(); ++r) {
      if (general_.ranges[r].found || general_.ranges[r].state) extents[r] = extents_[r];
    }
    general_.derive(extents.data());
    for (int i = 0; i < model_.input_count; ++i) check_sums(i, dims[i], extents);
    check_states(extents);
    extents_ = extents;
    if (extents != applied_) turn();
  }

  // Begins anew with empty states, and with zeros in those that do not grow.
  void reset_states() {
    std::lock_guard<std::mutex> hold(mutex_);
    whole_.clear_states();
    for (size_t r = 0; r < extents_.size(); ++r) {
      if (general_.ranges[r].state) extents_[r] = general_.ranges[r].lo;
    }
    general_.derive(extents_.data());
    begun_ = false;
  }

  // How far the states that grow have grown; -1 if there are none.
  int64_t state_length() const {
    size_t r = 0;
    while (r < extents_.size() && !general_.ranges[r].state) ++r;
    return r < extents_.size() ? extents_[r] : -1;
  }

  // Sets how far the states that grow have grown. More than they have is what is there.
  void seek_states(int64_t length) {
    std::lock_guard<std::mutex> hold(mutex_);
    if (length < 0 || length > capacity()) {
      throw Error{kBadArgument,
                  "a length of " + std::to_string(length) + ": the states have room for " + std::to_string(capacity())};
    }
    for (size_t r = 0; r < extents_.size(); ++r) {
      if (general_.ranges[r].state) extents_[r] = length;
    }
    general_.derive(extents_.data());
  }

  // save.h
  void save_states(void* to, size_t* bytes);
  void load_states(const void* from, size_t bytes);

  // Keeps at most so many special programs on the device.
  void limit_specials(int most) {
    whole_.check_process();
    if (most < 0) throw Error{kBadArgument, "the number of special programs is below 0"};
    std::lock_guard<std::mutex> hold(mutex_);
    most_ = general_.apart ? std::max(most, 1) : most;  // where no program is general, the one that runs next stays
    turn();
  }

  // The extent of dim d of a port at present. What the device finds is what the latest run has found, or the most that
  // it could.
  int64_t extent(const GeneralPort& port, int d, bool most = false) const {
    int64_t n = 1;
    for (int k = port.cuts[d]; k < port.cuts[d + 1]; ++k) {
      const Factor& f = port.factors[k];
      const bool largest = f.range < 0 || (most && general_.ranges[f.range].found);
      n *= largest ? f.n : applied_[static_cast<size_t>(f.range)];
    }
    return n;
  }

  const GeneralPort* outputs_of_run() const { return current_->general().outputs; }

  void run_async(dev::Stream stream, const void* const* in, void* const* out) {
    whole_.check_process();
    std::lock_guard<std::mutex> hold(mutex_);
    prepare();
    if (general_.prompt) begin_with(0);
    current_->run_async(stream, in, out, before());
    latest_ = current_;
    learn();
    describe();
  }

  // Host and device memory are told apart by their addresses, but tensors on the host are never used in place.
  void run(const void* const* in, void* const* out, bool on_host) {
    whole_.check_process();
    std::lock_guard<std::mutex> hold(mutex_);
    prepare();
    if (general_.prompt) begin(in, on_host);
    current_->run(in, out, on_host, before());
    latest_ = current_;
    learn();
    describe();
  }

  void trace(void* to, size_t* bytes) {
    whole_.check_process();
    std::lock_guard<std::mutex> hold(mutex_);
    current_->trace(to, bytes);
  }

  bool inherited() const { return whole_.inherited(); }

  // How the context runs at present, as JSON.
  const char* info() const { return info_; }

  void set_error(const std::string& text) { whole_.set_error(text); }
  const char* error() const { return whole_.error(); }

 private:
  // A special program on the device.
  struct Kept {
    std::unique_ptr<One> program;
    uint64_t turn = 0;  // when it was chosen last
  };

  // Makes the program that is to run take the extents, which the run before may have changed: states have grown.
  void prepare() {
    if (extents_ == applied_) return;
    check_states(extents_);
    for (int i = 0; i < model_.input_count; ++i) {
      const GeneralPort& port = general_.inputs[i];
      for (int k = 0; k < port.cuts[port.rank]; ++k) {
        const int r = port.factors[k].range;
        if (r >= 0 && extents_[static_cast<size_t>(r)] != applied_[static_cast<size_t>(r)]) {
          throw Error{kBadArgument, "the extents of input " + std::string(port.name) +
                                        " follow from how far the state has grown: set_dims comes first"};
        }
      }
    }
    turn();
  }

  // prompt.h
  void begin(const void* const* in, bool on_host);
  void begin_with(int64_t tokens);
  One* prompt_program();

  // Checks that there is room in the states, and that they have the extents with which they began.
  void check_states(const std::vector<int64_t>& extents) const {
    for (size_t r = 0; r < extents.size(); ++r) {
      const Range& range = general_.ranges[r];
      if (range.state && extents[r] > range.hi) {
        throw Error{kBadArgument, "the state is full: " + std::string(range.name) + " is " +
                                      std::to_string(extents[r]) + ", want " + text(range) + "; reset it"};
      }
    }
    for (int i = 0; begun_ && i < general_.state_count; ++i) {
      const GeneralPort& port = general_.states[i].port;
      for (int k = 0; k < port.cuts[port.rank]; ++k) {
        const int at = port.factors[k].range;
        if (at < 0 || general_.ranges[at].state) continue;
        const size_t r = static_cast<size_t>(at);
        if (extents[r] == first_[r]) continue;
        throw Error{kBadArgument, std::string(general_.ranges[at].name) + " is " + std::to_string(extents[r]) +
                                      ", but the state began with " + std::to_string(first_[r]) + "; reset it first"};
      }
    }
  }

  // What a state that grows has room for.
  int64_t capacity() const {
    int64_t most = 0;
    for (int i = 0; i < general_.state_count; ++i) {
      const GeneralPort& port = general_.states[i].port;
      for (int k = 0; k < port.cuts[port.rank]; ++k) {
        const Factor& f = port.factors[k];
        if (f.range >= 0 && general_.ranges[f.range].state) most = f.n - 1;  // the last place stays empty
      }
    }
    return most;
  }

  static constexpr const char* kStateMagic = "rtstate1";
  size_t header_bytes() const { return 8 + 8 * extents_.size(); }

  // Takes the extents that the latest inference has found, and lets states grow.
  void learn() {
    for (size_t r = 0; r < extents_.size(); ++r) {
      if (general_.ranges[r].found) applied_[r] = extents_[r] = latest_->extents()[r];
    }
    if (general_.state_count == 0 || whole_.repeats()) return;
    if (!begun_) first_ = extents_;
    begun_ = true;
    general_.advance(extents_.data());
    general_.derive(extents_.data());
  }

  // The program that ran last, if it is another than the one that runs next.
  One* before() const { return latest_ == current_ ? nullptr : latest_; }

  // Makes the program for the present extents the current one.
  void turn() {
    One* next = &whole_;
    for (size_t i = 0; i < kept_.size() && next == &whole_; ++i) {
      if (takes(*general_.specials[i].general)) next = special(i);
    }
    if (next == nullptr && general_.apart) {
      current_ = &whole_, applied_ = whole_.extents();  // which takes no other ones
      throw Error{kOutOfMemory, "there is no memory for the program of these dims"};
    }
    if (next == nullptr) next = &whole_;
    next->set_extents(extents_);
    applied_ = extents_;
    current_ = next;
    make_room(most_);
    describe();
  }

  // Keeps what the current program says of itself: callers may look at it when the program has gone.
  void describe() {
    const char* said = current_->info();
    for (const std::string& known : infos_) {
      if (known == said) {
        info_ = known.c_str();
        return;
      }
    }
    infos_.emplace_front(said);
    info_ = infos_.front().c_str();
  }

  bool takes(const General& g) const {
    for (size_t i = 0; i < extents_.size(); ++i) {
      const Range& r = g.ranges[i];
      if (!r.found && !r.derived && !allows(r, extents_[i])) return false;
    }
    return true;
  }

  // Special program i; null if there is no room for it.
  One* special(size_t i) {
    if (most_ == 0) return nullptr;
    if (!kept_[i].program) {
      make_room(most_ - 1);
      const Special& s = general_.specials[i];
      try {
        kept_[i].program.reset(new One(*s.model, *s.general, options_, whole_));
      } catch (const Error& e) {
        if (e.code != kOutOfMemory) throw;
        return nullptr;
      }
    }
    kept_[i].turn = ++turns_;
    return kept_[i].program.get();
  }

  // Drops those special programs that were not used for longest, until so many are left.
  void make_room(int left) {
    for (;;) {
      int count = 0;
      Kept* oldest = nullptr;
      for (Kept& k : kept_) {
        if (!k.program) continue;
        ++count;
        if (!oldest || k.turn < oldest->turn) oldest = &k;
      }
      if (count <= left) return;
      oldest->program->settle();
      if (latest_ == oldest->program.get()) latest_ = nullptr;
      if (current_ == oldest->program.get()) current_ = &whole_;
      oldest->program.reset();
    }
  }

  // Takes the ranges' extents from the dims of input i. Every dim of an input is a number, one range, or a sum of
  // ranges that other dims tell.
  void read_dims(int i, const int64_t* dims, std::vector<int64_t>& extents) const {
    const GeneralPort& port = general_.inputs[i];
    if (!dims && port.rank > 0) throw Error{kBadArgument, "the dims of input " + std::string(port.name) + " are null"};
    for (int d = 0; d < port.rank; ++d) {
      const Factor& f = port.factors[port.cuts[d]];
      const bool fixed = f.range < 0;
      const Range* r = fixed ? nullptr : &general_.ranges[f.range];
      if (r && (r->derived || r->state)) continue;
      if (fixed ? dims[d] == f.n : allows(*r, dims[d])) {
        if (fixed) continue;
        int64_t& known = extents[static_cast<size_t>(f.range)];
        if (known < 0 || known == dims[d]) {
          known = dims[d];
          continue;
        }
        throw Error{kBadArgument,
                    where(i, d, dims[d]) + ", but " + r->name + " is " + std::to_string(known) + " elsewhere"};
      }
      throw Error{kBadArgument, where(i, d, dims[d]) + ", want " + (fixed ? std::to_string(f.n) : text(*r))};
    }
  }

  // Checks the dims of input i that are sums.
  void check_sums(int i, const int64_t* dims, const std::vector<int64_t>& extents) const {
    const GeneralPort& port = general_.inputs[i];
    for (int d = 0; d < port.rank; ++d) {
      const Factor& f = port.factors[port.cuts[d]];
      if (f.range < 0 || !(general_.ranges[f.range].derived || general_.ranges[f.range].state)) continue;
      const int64_t want = extents[static_cast<size_t>(f.range)];
      if (dims[d] == want) continue;
      throw Error{kBadArgument,
                  where(i, d, dims[d]) + ", want " + general_.ranges[f.range].name + " = " + std::to_string(want)};
    }
  }

  std::string where(int input, int axis, int64_t n) const {
    return "input " + std::string(general_.inputs[input].name) + ", axis " + std::to_string(axis) + ": the extent is " +
           std::to_string(n);
  }

  static constexpr int kMostSpecials = 16;  // unless limit_specials says otherwise

  const Model& model_;
  const General& general_;
  Options options_;
  // Of the next inference; applied_ are those that the current program has, and first_ those with which states began.
  std::vector<int64_t> extents_, applied_, first_;
  bool begun_ = false;  // states are not those of reset_states
  One whole_;
  std::unique_ptr<One> prompt_;  // of a library that generates
  std::vector<Kept> kept_;
  One *current_, *latest_ = nullptr;
  int most_ = kMostSpecials;
  std::forward_list<std::string> infos_;
  std::atomic<const char*> info_{nullptr};
  uint64_t turns_ = 0;
  std::mutex mutex_;
};

}  // namespace rt

#include "rt/host/prompt.h"
#include "rt/host/save.h"
