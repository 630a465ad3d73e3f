package timing

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// lockFile is locked by the process that times on a GPU of this machine: two that time at once would measure each
// other. Every user has a file of their own, since nobody may lock another's.
var lockFile = filepath.Join(os.TempDir(), fmt.Sprintf("rammerc-times-%d.lock", os.Getuid()))

// Alone waits until no other process of this user times on a GPU of this machine, and keeps others from it until end
// is called. While it waits, waiting shows so. Where nothing can be locked it waits for nobody.
func Alone(waiting func(what string) (end func())) (end func()) {
	lock := flock.New(lockFile)
	if got, err := lock.TryLock(); err == nil && !got {
		done := waiting("another rammerc is timing on this machine")
		_ = lock.Lock()
		done()
	}
	return func() { _ = lock.Close() }
}
