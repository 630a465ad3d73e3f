package driver

import (
	"path/filepath"
	"testing"
	"time"
)

func TestOneTimesAtOnce(t *testing.T) {
	before := timesAlone
	timesAlone = filepath.Join(t.TempDir(), "lock")
	t.Cleanup(func() { timesAlone = before })
	var ui UI
	end := ui.alone()
	second := make(chan struct{})
	go func() {
		defer close(second)
		ui.alone()()
	}()
	select {
	case <-second:
		t.Error("the second does not wait for the first")
	case <-time.After(50 * time.Millisecond):
	}
	end()
	<-second
	timesAlone = filepath.Join(t.TempDir(), "no", "such", "folder")
	ui.alone()() // waits for nobody
}
