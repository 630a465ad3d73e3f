// Package rows has the cases of attention, and of rKernels that normalise rows.
package rows

import (
	"testing"

	"github.com/rammerc/rammerc/internal/golden"
)

func TestMain(m *testing.M) { golden.Main(m) }
