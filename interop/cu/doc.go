// Package rammercu runs programs of rammerc on gorgonia.org/cu: in its contexts, on its streams and on its device memory,
// which inputs are read from and outputs written to in place. There are two ways:
//
//	Load         a cubin that `rammerc compile --emit cubin` made. Its launches go through CUDA's driver interface
//	             alone; no C++ is needed, neither at build time nor in the process.
//	OpenLibrary  a library that `rammerc compile` made, with its C++ run time, for what cubins cannot do: dims with
//	             ranges, and states.
//
// Engine is Gorgonia's engine for tensors in device memory, and Run takes tensors of either kind.
//
// cu ends the process when it is initialised where there is no driver. So a program that is linked with this package runs
// where there is a GPU, or with the driver for the CPU emulator in the folder emulated.
package rammercu
