// The program of a prompt, in libraries that generate: it takes the first tokens of the prompts at once, and leaves
// their keys and values in the caches, which are those of the steps. The first step begins behind them.
//
//   prompts          a b c d e | f g h        the shorter one has 3 tokens, so the program takes 2 of each
//   first step       takes c and h, at place 2; the longer prompt goes on token by token
#pragma once

#include "rt/host/special.h"

namespace rt {

// Lets the program of the prompt take as many tokens as the prompts of all rows have, without the last one, if the
// first step may follow them. The last inputs of a library that generates are the prompts, their lengths, and the
// limit.
template <class Program>
void GeneralContext<Program>::begin(const void* const* in, bool on_host) {
  const auto numbers = [&](int from_end) {
    const size_t i = static_cast<size_t>(model_.input_count - from_end);
    std::vector<int64_t> list(static_cast<size_t>(model_.inputs[i].bytes) / sizeof(int64_t));
    if (!in || !in[i]) return std::vector<int64_t>{0};  // an error that the run tells
    const size_t bytes = list.size() * sizeof(int64_t);
    if (on_host) {
      std::memcpy(list.data(), in[i], bytes);
    } else {
      whole_.read(list.data(), in[i], bytes);
    }
    return list;
  };
  int64_t least = std::max<int64_t>(numbers(1)[0], 1) - 1;
  for (int64_t n : numbers(2)) least = std::min(least, std::max<int64_t>(n, 1));
  begin_with(least - 1);
}

// Lets the program of the prompt take so many tokens, or as many as it can.
template <class Program>
void GeneralContext<Program>::begin_with(int64_t tokens) {
  const General& g = *general_.prompt->general;
  std::vector<int64_t> extents;
  for (int i = 0; i < g.range_count; ++i) {
    const Range& range = g.ranges[i];
    size_t r = 0;
    while (r < extents_.size() && std::strcmp(general_.ranges[r].name, range.name) != 0) ++r;
    if (range.state || range.derived) {
      extents.push_back(0);
    } else if (r < extents_.size()) {
      extents.push_back(extents_[r]);
    } else {
      tokens = std::min(tokens, range.hi);
      extents.push_back(tokens);
    }
  }
  One* const prompt = tokens > 0 ? prompt_program() : nullptr;
  std::vector<int64_t> first = extents_;
  for (size_t r = 0; r < first.size(); ++r) {
    if (general_.ranges[r].state) first[r] = prompt ? tokens : general_.ranges[r].lo;
  }
  general_.derive(first.data());
  current_->set_extents(first);
  current_->begin_behind(prompt);
  if (!prompt) return;
  g.derive(extents.data());
  prompt->set_extents(extents);
}

// Null if the device has no memory for it.
template <class Program>
typename GeneralContext<Program>::One* GeneralContext<Program>::prompt_program() {
  if (prompt_) return prompt_.get();
  const Special& p = *general_.prompt;
  try {
    prompt_.reset(new One(*p.model, *p.general, options_, whole_));
  } catch (const Error& e) {
    if (e.code != kOutOfMemory) throw;
  }
  return prompt_.get();
}

}  // namespace rt
