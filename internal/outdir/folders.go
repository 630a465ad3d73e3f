package outdir

import (
	"os"
	"sync"
	"time"

	"github.com/rammerc/rammerc/internal/diag"
)

// Folders makes the working folders of a command and removes those that are left when the user interrupts it. The
// zero value is ready. Its methods may be called from several goroutines.
type Folders struct {
	mu    sync.Mutex
	made  map[*working]bool // folders that are not removed yet
	swept map[string]bool   // parents where the folders of dead processes have been removed
}

// Process has the folders of packages that know no command, such as that in which the program is built that
// loads libraries.
var Process = &Folders{}

// abandonProcess keeps a second Abandon from waiting for the lock that the first one keeps.
var abandonProcess sync.Once

// Make makes a folder in parent, or in the system's folder for temporary files if parent is "". The pattern is that of
// os.MkdirTemp, and begins with "rammerc-" or ".rammerc-". Either remove, which never is nil, or Abandon removes the
// folder; if the process is killed, a later one does that makes a folder in the same parent.
func (f *Folders) Make(parent, pattern string) (dir string, remove func(), err error) {
	// The lock is taken before the folder is made, so that Abandon either sees the folder or comes before it.
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.made == nil {
		f.made = map[*working]bool{}
	}
	if parent == "" {
		parent = os.TempDir()
	}
	f.sweepOnce(parent)
	w, err := makeWorking(parent, pattern)
	if err != nil && parent == os.TempDir() {
		err = &diag.Diagnostic{ID: "cannot-write", File: parent, Message: diag.Reason(err).Error(),
			Help: "TMPDIR names the folder for temporary files"}
	}
	if err != nil {
		return "", func() {}, err
	}
	f.made[w] = true
	return w.files(), func() { f.remove(w) }, nil
}

// Sweep removes what killed processes have left in parent.
func (f *Folders) Sweep(parent string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sweepOnce(parent)
}

// sweepOnce is Sweep with the lock held.
func (f *Folders) sweepOnce(parent string) {
	if f.swept == nil {
		f.swept = map[string]bool{}
	}
	if !f.swept[parent] {
		sweep(parent)
		f.swept[parent] = true
	}
}

func (f *Folders) remove(w *working) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.made, w)
	w.remove()
}

// abandonTries bounds how often Abandon tries to remove one folder. With the pause between two tries it gives up
// after about a second.
const abandonTries = 100

// Abandon removes every folder that is left, those of Process as well, as the last thing that an interrupted process
// does. It keeps the lock for good, so that a stage which still runs in another goroutine blocks when it asks for a
// folder.
func (f *Folders) Abandon() {
	if f != Process {
		abandonProcess.Do(Process.abandon)
	}
	f.abandon()
}

func (f *Folders) abandon() {
	f.mu.Lock()
	for w := range f.made {
		// A stage or a compiler that still writes into the folder may put a file there after the others were
		// removed and before the folder itself is.
		for range abandonTries {
			if w.remove() == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}
