// Counter edges: where several steps wait for the same large set of steps, each step of the set adds one to a counter,
// a word of the step array, and the others poll this word instead of many flags. Additions are releases, as stores to
// flags are. Those of several vEUs form one chain in the memory model: whoever has seen the last one has seen what all
// of them released. Publishing and polling are those of flags (edge_flag.cuh); only the value that is waited for
// differs.
#pragma once

#include "rt/device/pending.cuh"
