// Package backend lists the back ends that emitted programs run on. A back end is a folder of C++ headers that
// defines every primitive of the interface (primitives.md): memory accesses with their order, barriers, copies,
// shuffles, and on the host's side memory, streams and launches. The run time (codegen/rt) and the rKernels are
// written against these primitives alone, so a further back end is a folder here and a row of All.
package backend

import (
	"embed"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/rammerc/rammerc/codegen/rt"
)

// Backend is one implementation of the primitives.
type Backend struct {
	// Name is the folder of the sources here. Headers include them as "backend/NAME/FILE".
	Name string
	// Beside is the folder of the headers beside an emitted program, as which the program includes them; empty
	// where they become a part of the program's own source.
	Beside string
	// First is the header in Beside that comes before everything else: what it includes of the system must not
	// stand inside a namespace.
	First string
	// Targets are the targets whose libraries are built with it, as patterns of path.Match. The sources of a
	// library can be built with any back end.
	Targets []string
}

// All has a row for each back end.
var All = []Backend{
	{Name: "cuda", Targets: []string{"sm_*"}},
	{Name: "emu", Beside: "cudaemu", First: "system.h", Targets: []string{"emu"}},
}

//go:embed cuda emu primitives.cuh host_primitives.h
var files embed.FS

// Files holds the sources of all back ends; names begin with that of the back end.
var Files fs.FS = files

// Sources are the back end's own files.
func (b Backend) Sources() fs.FS {
	sub, err := fs.Sub(files, b.Name)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return sub
}

// For is the back end that libraries for a target ("sm_90", "emu") are built with, nil for an unknown target.
func For(target string) *Backend {
	for i := range All {
		for _, pattern := range All[i].Targets {
			if ok, err := path.Match(pattern, target); err != nil {
				panic("BUG: " + err.Error())
			} else if ok {
				return &All[i]
			}
		}
	}
	return nil
}

// CopySources writes the run time and all back ends to dir, so that a program compiled with dir among its include
// folders finds them under the names that they include each other by.
func CopySources(dir string) error {
	if err := os.CopyFS(filepath.Join(dir, "rt"), rt.Files); err != nil {
		return err
	}
	return os.CopyFS(filepath.Join(dir, "backend"), files)
}
