// Package testbuild says how tests build libraries for the emulator.
package testbuild

import (
	"os"
	"strings"
)

// Main runs the tests of a package, which build libraries in the given way, and ends the process when it has called
// after. It is what a TestMain calls.
func Main(tests interface{ Run() int }, build func(), after ...func()) {
	build()
	code := Tests{tests}.Run()
	for _, f := range after {
		f()
	}
	os.Exit(code)
}

// Tests are the tests of a package. When they have run, what Unoptimised or Optimised made for them is deleted.
type Tests struct{ M interface{ Run() int } }

// Run runs them and returns their exit status.
func (t Tests) Run() int {
	defer removePrelude()
	return t.M.Run()
}

// Unoptimised has what tests of this process and its children build for the emulator not optimised, unless $CXXFLAGS
// asks for something: that takes half the time, and most programs run for less than they are compiled.
func Unoptimised() { level("-O0") }

// Optimised has it optimised a little, for tests whose programs run for longer than they are compiled.
func Optimised() { level("-O1") }

func level(flag string) {
	if os.Getenv("CXXFLAGS") == "" {
		os.Setenv("CXXFLAGS", strings.TrimSpace(flag+" "+prelude(flag)))
	}
}
