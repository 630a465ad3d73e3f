// Package testbuild says how tests build libraries for the emulator.
package testbuild

import "os"

// Unoptimised has what tests of this process and its children build for the emulator not optimised, unless $CXXFLAGS
// asks for something: that takes half the time, and the programs run for less than they are compiled. A TestMain calls it.
func Unoptimised() {
	if os.Getenv("CXXFLAGS") == "" {
		os.Setenv("CXXFLAGS", "-O0")
	}
}
