package vdevice

import (
	"io/fs"
	"testing"

	"github.com/rammerc/rammerc/codegen/rt"
)

// The run time has the header that each kind of edge and each mode of steps names.
func TestHeadersOfEdgesAndModes(t *testing.T) {
	if len(modeRows) != StepModes {
		t.Errorf("%d modes have rows, want %d", len(modeRows), StepModes)
	}
	headers := map[string]string{}
	for k := range edgeRows {
		headers[edgeRows[k].name] = edgeRows[k].header
	}
	for m := range modeRows {
		headers[modeRows[m].name] = modeRows[m].header
	}
	if len(headers) < 9 {
		t.Errorf("only %d kinds and modes have headers", len(headers))
	}
	for name, header := range headers {
		if _, err := fs.Stat(rt.Files, header); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
