// Functions that the emulated driver does not have.
#include "refused.h"

// CUDA_ERROR_NOT_SUPPORTED
#define RAMMER_REFUSE(name) \
  extern "C" int name() { return 801; }

RAMMER_REFUSED(RAMMER_REFUSE)
