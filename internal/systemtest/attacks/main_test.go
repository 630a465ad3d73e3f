// Package attacks has tests of what must not fall, whatever it is given: commands on hostile files, and libraries that are
// used as nobody should.
package attacks

import (
	"testing"

	"github.com/rammerc/rammerc/internal/testbuild"
)

func TestMain(m *testing.M) { testbuild.Main(m, testbuild.Unoptimised) }
