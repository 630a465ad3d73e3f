package outdir

import (
	"os"
	"path/filepath"

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

func replaceFile(file string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(file), ".rammerc-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // fails once the file has its name
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
