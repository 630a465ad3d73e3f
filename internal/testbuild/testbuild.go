// Package testbuild says how tests build libraries for the emulator.
package testbuild

import "os"

// Unoptimised has what tests of this process and its children build for the emulator not optimised, unless $CXXFLAGS
// asks for something: that takes half the time, and most programs run for less than they are compiled. A TestMain calls it.
func Unoptimised() { level("-O0") }

// Optimised has it optimised a little, for tests whose programs run for longer than they are compiled.
func Optimised() { level("-O1") }

func level(flag string) {
	if os.Getenv("CXXFLAGS") == "" {
		os.Setenv("CXXFLAGS", flag)
	}
}
