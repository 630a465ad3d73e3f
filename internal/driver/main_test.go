package driver

import (
	"testing"

	"github.com/rammerc/rammerc/internal/testbuild"
)

// builds holds the libraries of plans that tests have timed: several of them try the plans of one model.
var builds testbuild.Cache

func TestMain(m *testing.M) { testbuild.Main(m, testbuild.Unoptimised, builds.Remove) }
