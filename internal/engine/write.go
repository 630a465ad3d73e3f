package engine

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/tensorio"
)

// WriteTensors writes NAME.npy for each tensor into dir, which is made when missing, and returns the paths in the
// order of names. Where two names make the same file name, the second file gets a number.
func WriteTensors(dir string, tensors Tensors) ([]string, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, &diag.Diagnostic{ID: "cannot-write", File: dir, Message: diag.Reason(err).Error()}
	}
	var paths []string
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		path := filepath.Join(dir, fileName(name)+".npy")
		for i := 2; slices.Contains(paths, path); i++ {
			path = filepath.Join(dir, fmt.Sprintf("%s-%d.npy", fileName(name), i))
		}
		if err := tensorio.WriteNPY(path, tensors[name]); err != nil {
			return nil, &diag.Diagnostic{ID: "cannot-write", File: path, Message: diag.Reason(err).Error()}
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// fileName replaces what cannot stand in a file's name.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || r == ':' || r < ' ' {
			return '_'
		}
		return r
	}, name)
}
