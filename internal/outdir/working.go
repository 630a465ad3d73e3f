package outdir

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// A working folder is where a command builds what it moves elsewhere or removes at the end:
//
//	.rammerc-123/working   the marker: locked while the process lives, so that a later one can tell that it was killed
//	.rammerc-123/files     what the command works in
//
// A process that was killed cannot remove its folders, so whoever makes one removes those of dead processes beside it.
type working struct {
	outer  string
	marker *flock.Flock
}

const (
	// prefix is how the names of working folders and temporary files begin; those that lie in folders of the user are
	// hidden.
	prefix       = "rammerc-"
	hiddenPrefix = "." + prefix
	markerName   = "working"
	filesName    = "files"
	// markerText is written once the marker is locked. A marker with this text that can be locked is of a dead process.
	markerText = "rammerc works here\n"
	// stillborn is the age of a folder without that text from which its process is taken to be dead: it was killed
	// between making the folder and writing the text.
	stillborn = 10 * time.Minute
)

// makeWorking makes a working folder in parent. The pattern is that of os.MkdirTemp and begins with prefix or
// hiddenPrefix.
func makeWorking(parent, pattern string) (*working, error) {
	outer, err := os.MkdirTemp(parent, pattern)
	if err != nil {
		return nil, err
	}
	w := &working{outer: outer, marker: flock.New(filepath.Join(outer, markerName))}
	if _, err = w.marker.TryLock(); err == nil {
		err = os.WriteFile(w.marker.Path(), []byte(markerText), 0o600)
	}
	if err == nil {
		err = os.Mkdir(w.files(), 0o700)
	}
	if err != nil {
		w.remove()
		return nil, err
	}
	return w, nil
}

func (w *working) files() string { return filepath.Join(w.outer, filesName) }

// remove removes the folder before it gives the marker back, so that nobody else can think it abandoned.
func (w *working) remove() error {
	err := removeWorking(w.outer)
	w.marker.Close()
	return err
}

// removeWorking removes a working folder, the marker last: a compiler whose parent was killed may still put a file into
// it meanwhile, and then a later process must be able to tell what the folder is.
func removeWorking(outer string) error {
	if err := os.RemoveAll(filepath.Join(outer, filesName)); err != nil {
		return err
	}
	return os.RemoveAll(outer)
}

// sweep removes the working folders and temporary files in parent whose processes are dead. What it cannot read or
// remove is left to others.
func sweep(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		path := filepath.Join(parent, e.Name())
		switch {
		case !isWorking(e.Name()):
		case e.IsDir() && abandoned(path):
			_ = removeWorking(path)
		case e.IsDir() && ownAndOld(path):
			removeStillborn(path)
		case e.Type().IsRegular() && strings.HasPrefix(e.Name(), temporaryFile) && ownAndOld(path) && unlocked(path):
			os.Remove(path)
		}
	}
}

// workingName matches the names that this package gives to working folders and temporary files.
var workingName = regexp.MustCompile(`^\.?` + prefix + `([a-z]+-)*[0-9]+$`)

func isWorking(name string) bool { return workingName.MatchString(name) }

// removeStillborn removes a folder whose process was killed before it wrote the marker's text. A folder that holds
// anything but an empty marker stays.
func removeStillborn(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 1 {
		return
	}
	if len(entries) == 1 {
		marker := filepath.Join(dir, markerName)
		if info, err := os.Lstat(marker); err != nil || !info.Mode().IsRegular() || info.Size() > 0 || !unlocked(marker) {
			return
		}
		os.Remove(marker)
	}
	os.Remove(dir)
}

// abandoned reports whether dir is a working folder of this user whose process is dead.
func abandoned(dir string) bool {
	marker := filepath.Join(dir, markerName)
	info, err := os.Lstat(marker)
	if err != nil || !info.Mode().IsRegular() || info.Size() != int64(len(markerText)) || !own(info) {
		return false
	}
	text, err := os.ReadFile(marker)
	return err == nil && string(text) == markerText && unlocked(marker)
}

// unlocked reports whether no living process holds the lock of a file.
func unlocked(file string) bool {
	lock := flock.New(file, flock.SetFlag(os.O_RDONLY))
	defer lock.Close()
	free, err := lock.TryLock()
	return err == nil && free
}

// ownAndOld reports whether path is this user's and has not changed for so long that its process must be dead if it
// holds no lock.
func ownAndOld(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && own(info) && time.Since(info.ModTime()) > stillborn
}

func own(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Getuid()
}
