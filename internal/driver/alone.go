package driver

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// timesAlone is the lock that who times on a GPU of this machine holds, one process at a time: two that time at once
// measure each other. Every user has one, since nobody may lock another's file.
var timesAlone = filepath.Join(os.TempDir(), fmt.Sprintf("rammerc-times-%d.lock", os.Getuid()))

// alone waits until no other rammerc of this user times on a GPU, and keeps others from it until end is called. Where
// nothing can be locked nobody waits.
func (u *UI) alone() (end func()) {
	lock := flock.New(timesAlone)
	if got, err := lock.TryLock(); err == nil && !got {
		done := u.Waiting("another rammerc is timing on this machine")
		_ = lock.Lock()
		done()
	}
	return func() { _ = lock.Close() }
}
