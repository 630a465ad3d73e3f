// Package examples has tests that run the examples as they stand.
package examples

import (
	"os"
	"testing"

	"github.com/rammerc/rammerc/internal/testbuild"
)

func TestMain(m *testing.M) {
	testbuild.Unoptimised()
	os.Exit(m.Run())
}
