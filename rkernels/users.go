package rkernels

import (
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/internal/diag"
)

// usersFolder is where the user's rKernels are among the sources.
const usersFolder = "users"

// WithUsers adds the converted kernels of a folder to those of c.
func (c *Catalogue) WithUsers(dir string) (*Catalogue, error) {
	fault := func(message string) error {
		return &diag.Diagnostic{ID: "bad-kernel-manifest", File: dir, Message: message}
	}
	list, err := Load(os.DirFS(dir))
	if err != nil {
		return nil, fault(err.Error())
	}
	for _, k := range list {
		if k.Custom == nil {
			return nil, fault(k.Name + " is no converted kernel")
		}
		if problems := k.Custom.Check(); len(problems) > 0 {
			return nil, fault(k.Name + ": " + problems[0])
		}
		if _, err := c.Find(k.Name); err == nil {
			return nil, fault("rammerc has an rKernel " + k.Name + " itself; the specification can give another name")
		}
		k.Source, k.folder = usersFolder+"/"+k.Source, dir
	}
	return &Catalogue{kernels: sorted(slices.Concat(c.kernels, list)), fusing: c.fusing}, nil
}

// Users lists the kernels that users have brought.
func (c *Catalogue) Users() []*Kernel {
	return slices.DeleteFunc(slices.Clone(c.kernels), func(k *Kernel) bool { return k.folder == "" })
}

// Sources are the sources of k, and of all that it may include: those of rammerc's rKernels are in builtIn.
func (k *Kernel) Sources(builtIn fs.FS) fs.FS {
	if _, already := builtIn.(sources); already || k.folder == "" { // a program has kernels of one folder
		return builtIn
	}
	return sources{os.DirFS(k.folder), builtIn}
}

type sources struct{ users, builtIn fs.FS }

func (s sources) Open(name string) (fs.File, error) {
	if rest, ok := strings.CutPrefix(name, usersFolder+"/"); ok {
		return s.users.Open(rest)
	}
	return s.builtIn.Open(name)
}
