package difftest

import (
	"testing"

	"github.com/rammerc/rammerc/internal/testbuild"
)

func TestMain(m *testing.M) { testbuild.Main(m, testbuild.Unoptimised) }
