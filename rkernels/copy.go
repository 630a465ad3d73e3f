package rkernels

import (
	"io/fs"
	"os"
	"path/filepath"
)

// CopyFiles writes all headers that an rKernel may include into a folder, from which its source compiles by itself:
// those of the rKernels, of the run time (rt) and of the back ends.
func CopyFiles(dir string, rt, backends fs.FS) error {
	for sub, files := range map[string]fs.FS{"rt": rt, "backend": backends, "": Files} {
		if err := copyInto(filepath.Join(dir, sub), files); err != nil {
			return err
		}
	}
	return nil
}

func copyInto(dir string, files fs.FS) error {
	return fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.FromSlash(path))
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		data, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, data, 0o644)
	})
}
