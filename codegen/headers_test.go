package codegen

import (
	"io/fs"
	"testing"

	"github.com/rammerc/rammerc/codegen/rt"
	"github.com/rammerc/rammerc/vdevice"
)

// The run time has the header that each kind of edge and each mode of steps names.
func TestHeadersOfEdgesAndModes(t *testing.T) {
	headers := vdevice.Headers()
	if len(headers) < 9 {
		t.Errorf("only %d kinds and modes have headers", len(headers))
	}
	for name, header := range headers {
		if _, err := fs.Stat(rt.Files, header); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
