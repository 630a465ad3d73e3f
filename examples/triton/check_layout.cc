// Compares the structs of library.h with those in the header of a library. LIBRARY_HEADER names that of one which was
// compiled with --name model.
#include LIBRARY_HEADER

#include "library.h"

#define SAME(ours, theirs, member) \
  static_assert(offsetof(ours, member) == offsetof(theirs, member) && sizeof(ours::member) == sizeof(theirs::member))

SAME(rammer::Options, model_options, size);
SAME(rammer::Options, model_options, weights_path);
SAME(rammer::Options, model_options, device);
SAME(rammer::Options, model_options, mode);
SAME(rammer::Options, model_options, watchdog_ns);
SAME(rammer::Options, model_options, emu_seed);
SAME(rammer::Options, model_options, emu_max_blocks);
SAME(rammer::Options, model_options, delay_seed);
SAME(rammer::Tensor, model_tensor, name);
SAME(rammer::Tensor, model_tensor, dtype);
SAME(rammer::Tensor, model_tensor, rank);
SAME(rammer::Tensor, model_tensor, dims);
SAME(rammer::Tensor, model_tensor, bytes);
SAME(rammer::Io, model_io, input_count);
SAME(rammer::Io, model_io, inputs);
SAME(rammer::Io, model_io, output_count);
SAME(rammer::Io, model_io, outputs);
static_assert(sizeof(rammer::Options) == sizeof(model_options) && sizeof(rammer::Tensor) == sizeof(model_tensor));
static_assert(int{rammer::kOk} == model_OK && int{rammer::kBadArgument} == model_BAD_ARGUMENT);
static_assert(int{rammer::kDeviceLost} == model_DEVICE_LOST && int{rammer::kHost} == model_HOST);
