// Package rt is the run time of emitted programs, as C++ sources: the device interface that rKernels are
// written against (device.cuh), the executor of rPrograms, and the host side with the C ABI.
//
// The sources are embedded; code generation copies what a program needs into its .cu file.
package rt

import "embed"

// Files holds the sources. They include each other as "rt/NAME", the emulator's as "cudaemu/NAME".
//
//go:embed *.cuh *.h
var Files embed.FS
