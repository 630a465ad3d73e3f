package rkernels

import (
	"io/fs"
	"os"
	"strings"
	"sync"

	"github.com/rammerc/rammerc/internal/diag"
)

// usersFolder is where the user's rKernels are among the sources.
const usersFolder = "users"

// users are the rKernels of the folder that Use was given last. A process compiles with one such folder.
var users struct {
	sync.Mutex
	sources fs.FS
	kernels []*Kernel
}

// Use makes the converted kernels of a folder known, and returns them.
func Use(dir string) ([]*Kernel, error) {
	sources := os.DirFS(dir)
	list, err := Load(sources)
	if err != nil {
		return nil, &diag.Diagnostic{ID: "bad-kernel-manifest", File: dir, Message: err.Error()}
	}
	for _, k := range list {
		if k.Custom == nil {
			return nil, &diag.Diagnostic{ID: "bad-kernel-manifest", File: dir, Message: k.Name + " is no converted kernel"}
		}
		if problems := k.Custom.Check(); len(problems) > 0 {
			return nil, &diag.Diagnostic{ID: "bad-kernel-manifest", File: dir, Message: k.Name + ": " + problems[0]}
		}
		k.Source = usersFolder + "/" + k.Source
	}
	users.Lock()
	defer users.Unlock()
	users.sources, users.kernels = sources, list
	return list, nil
}

// User finds a kernel of the user's, nil if there is none of that name.
func User(name string) *Kernel {
	users.Lock()
	defer users.Unlock()
	for _, k := range users.kernels {
		if k.Name == name {
			return k
		}
	}
	return nil
}

// Sources are Files with the user's rKernels.
func Sources() fs.FS { return sources{} }

type sources struct{}

func (sources) Open(name string) (fs.File, error) {
	rest, ok := strings.CutPrefix(name, usersFolder+"/")
	users.Lock()
	defer users.Unlock()
	if ok && users.sources != nil {
		return users.sources.Open(rest)
	}
	return Files.Open(name)
}
