package commands

import (
	"os"
	"testing"
)

// TestMain has what tests build for the emulator not optimised: that takes half the time, and the programs run for less
// than they are compiled.
func TestMain(m *testing.M) {
	if os.Getenv("CXXFLAGS") == "" {
		os.Setenv("CXXFLAGS", "-O0")
	}
	os.Exit(m.Run())
}
