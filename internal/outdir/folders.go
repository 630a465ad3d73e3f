package outdir

import (
	"os"
	"sync"
	"time"
)

// Folders makes the working folders of a command and removes those that are left when the user interrupts it. The
// zero value is ready. Its methods may be called from several goroutines.
type Folders struct {
	mu   sync.Mutex
	made map[string]bool // folders that are not removed yet
}

// Make makes a folder as os.MkdirTemp does. Either remove, which never is nil, or Abandon removes it.
func (f *Folders) Make(parent, pattern string) (dir string, remove func(), err error) {
	// The lock is taken before the folder is made, so that Abandon either sees the folder or comes before it.
	f.mu.Lock()
	defer f.mu.Unlock()
	if dir, err = os.MkdirTemp(parent, pattern); err != nil {
		return "", func() {}, err
	}
	if f.made == nil {
		f.made = map[string]bool{}
	}
	f.made[dir] = true
	return dir, func() { f.remove(dir) }, nil
}

func (f *Folders) remove(dir string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.made, dir)
	os.RemoveAll(dir)
}

// abandonTries bounds how often Abandon tries to remove one folder. With the pause between two tries it gives up
// after about a second.
const abandonTries = 100

// Abandon removes every folder that is left, as the last thing that an interrupted process does. It keeps the lock
// for good, so that a stage which still runs in another goroutine blocks when it asks for a folder.
func (f *Folders) Abandon() {
	f.mu.Lock()
	for dir := range f.made {
		// A stage or a compiler that still writes into the folder may put a file there after the others were
		// removed and before the folder itself is.
		for range abandonTries {
			if os.RemoveAll(dir) == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}
