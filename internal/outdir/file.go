package outdir

import (
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/rammerc/rammerc/internal/diag"
)

// WriteFile writes a file that exists either whole or not at all: the bytes go into a temporary file beside it,
// which is renamed at the end. Errors are diagnostics that name the file.
func WriteFile(file string, data []byte) error {
	if err := replaceFile(file, data); err != nil {
		return &diag.Diagnostic{ID: "cannot-write", File: file, Message: diag.Reason(err).Error()}
	}
	return nil
}

// temporaryFile is how the names of temporary files begin. They are locked, so that those of dead processes can be told.
const temporaryFile = hiddenPrefix + "write-"

func replaceFile(file string, data []byte) error {
	sweep(filepath.Dir(file))
	tmp, err := os.CreateTemp(filepath.Dir(file), temporaryFile+"*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // fails once the file has its name
	lock := flock.New(tmp.Name())
	if _, err := lock.TryLock(); err != nil {
		return err
	}
	defer lock.Close()
	_, err = tmp.Write(data)
	if e := tmp.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Chmod(tmp.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(tmp.Name(), file)
	}
	return err
}
