// Package examples has tests that run the examples as they stand.
package examples

import (
	"testing"

	"github.com/rammerc/rammerc/internal/testbuild"
)

func TestMain(m *testing.M) { testbuild.Main(m, testbuild.Unoptimised) }
