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

// WriteTensors writes tensors to a place that the user named and returns the paths of the files: one archive if the
// name ends in .npz, else NAME.npy for each tensor in the order of names, in a folder that is made when missing. Where
// two names make the same file name, the second file gets a number.
func WriteTensors(dir string, tensors Tensors) ([]string, error) {
	if filepath.Ext(dir) == ".npz" {
		if err := tensorio.WriteNPZ(dir, tensors); err != nil {
			return nil, &diag.Diagnostic{ID: "cannot-write", File: dir, Message: diag.Reason(err).Error()}
		}
		return []string{dir}, nil
	}
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
