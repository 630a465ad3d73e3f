package dynamic

import (
	"os"
	"testing"

	"github.com/rammerc/rammerc/internal/testbuild"
)

func TestMain(m *testing.M) {
	testbuild.Optimised()
	os.Exit(m.Run())
}
