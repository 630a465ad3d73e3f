package decoders

import (
	"os"
	"testing"

	"github.com/rammerc/rammerc/internal/testbuild"
)

func TestMain(m *testing.M) {
	testbuild.Unoptimised()
	os.Exit(m.Run())
}
