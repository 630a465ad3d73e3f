package driver

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/rammerc/rammerc/internal/wheel"
)

// wheelArchs are the names that Python has for processors.
var wheelArchs = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

// writeWheel makes a Python wheel of the library in dir: a package of the library's name, with the module, the built
// library and its weights. Its version tells libraries apart by their content.
func (c *Compilation) writeWheel(dir string, r *Compiled) error {
	files := []wheel.File{
		{Path: r.Name + "/__init__.py", Source: filepath.Join(dir, "python", r.Name+".py")},
		{Path: r.Name + "/lib" + r.Name + ".so", Source: r.Library},
		{Path: r.Name + "/" + r.Name + ".weights", Source: filepath.Join(dir, r.Name+".weights")},
	}
	sum := sha256.New()
	for _, f := range files {
		if err := hashFile(sum, f.Source); err != nil {
			return err
		}
	}
	arch := wheelArchs[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	w := &wheel.Wheel{
		Name: r.Name, Version: fmt.Sprintf("0+%x", sum.Sum(nil)[:6]), Platform: runtime.GOOS + "_" + arch,
		Summary: "A model for " + c.spec.Arch + ", compiled by rammerc", Python: ">=3.8", Requires: []string{"numpy>=1.22"},
		Files: files,
	}
	out, err := os.Create(filepath.Join(dir, w.FileName()))
	if err != nil {
		return err
	}
	if err := w.Write(out); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

func hashFile(to io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(to, f)
	return err
}
