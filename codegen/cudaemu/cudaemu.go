// Package cudaemu is the emulator's run time, as C++ sources: with it any C++20 compiler builds emitted
// programs for the CPU. One OS thread is a thread block, one fibre a CUDA thread.
package cudaemu

import "embed"

// Files holds the sources. They include each other as "cudaemu/NAME".
//
//go:embed *.h
var Files embed.FS
