// Package rt is the run time of emitted programs, as C++ sources in folders by role:
//
//	device  what rKernels are written against
//	exec    the executor: it walks the steps of a vEU on the device
//	host    the context behind the C interface: memory, weights, launches
//	schema  what the compiler and this run time share, generated from schema/describe
//	trace   what a tracing build records, and where
//
// None of them calls CUDA: that is the business of the back ends (codegen/backend).
//
// The sources are embedded; code generation copies what a program needs into its .cu file.
package rt

import "embed"

// Files holds the sources. They include each other as "rt/FOLDER/NAME", those of a back end as
// "backend/BACKEND/NAME".
//
//go:embed device exec host schema trace
var Files embed.FS
