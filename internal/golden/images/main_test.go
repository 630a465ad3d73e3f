// Package images has the cases of rKernels that work on images: convolutions, pooling, and squeeze and excite.
package images

import (
	"testing"

	"github.com/rammerc/rammerc/internal/golden"
)

func TestMain(m *testing.M) { golden.Main(m) }
