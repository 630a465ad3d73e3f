package timing

import (
	"path/filepath"
	"testing"
	"time"
)

func silent(string) (end func()) { return func() {} }

func silentBuilding(string, int) (built, end func()) { return func() {}, func() {} }

func TestOneTimesAtOnce(t *testing.T) {
	before := lockFile
	lockFile = filepath.Join(t.TempDir(), "lock")
	t.Cleanup(func() { lockFile = before })
	end := Alone(silent)
	second := make(chan struct{})
	go func() {
		defer close(second)
		Alone(silent)()
	}()
	select {
	case <-second:
		t.Error("the second does not wait for the first")
	case <-time.After(50 * time.Millisecond):
	}
	end()
	<-second
	lockFile = filepath.Join(t.TempDir(), "no", "such", "folder")
	Alone(silent)() // waits for nobody
}
