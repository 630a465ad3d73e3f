package testbuild

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/rammerc/rammerc/internal/toolchain"
)

// Cache holds the emulated libraries that tests of a process have built. Compiling takes most of their time, and several
// tests ask different things of the same program. It finds libraries by what they are made of: the sources, the library's
// name and the compiler's flags.
type Cache struct {
	mu    sync.Mutex
	dir   string // made by the first build
	items map[[sha256.Size]byte]*cachedBuild
}

// cachedBuild is a library that has been built or is being built.
type cachedBuild struct {
	once sync.Once
	path string
	err  error
}

// Build compiles NAME.cu in dir into libNAME.so beside it. Tests that ask for the same library at once wait for one compilation.
func (c *Cache) Build(cxx *toolchain.Cxx, dir, name string, flags ...string) error {
	lib := filepath.Join(dir, "lib"+name+".so")
	key, err := keyOf(dir, name, flags)
	if err != nil {
		return err
	}
	item, err := c.item(key)
	if err != nil {
		return err
	}
	item.once.Do(func() {
		if _, item.err = cxx.BuildLibrary(context.Background(), dir, name, flags...); item.err == nil {
			item.err = copyFile(lib, item.path)
		}
	})
	if item.err != nil {
		return item.err
	}
	// A process may have an earlier library of this name open; it keeps that file, which is no longer in the folder.
	if err := os.Remove(lib); err != nil && !os.IsNotExist(err) {
		return err
	}
	return copyFile(item.path, lib)
}

// item is the entry of a key; there is one from the first call on.
func (c *Cache) item(key [sha256.Size]byte) (*cachedBuild, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dir == "" {
		dir, err := os.MkdirTemp("", "rammer-built-")
		if err != nil {
			return nil, err
		}
		c.dir, c.items = dir, map[[sha256.Size]byte]*cachedBuild{}
	}
	if c.items[key] == nil {
		c.items[key] = &cachedBuild{path: filepath.Join(c.dir, fmt.Sprint(len(c.items), ".so"))}
	}
	return c.items[key], nil
}

// keyOf hashes the flags and whatever the compiler and the linker may read of dir: sources, headers, the version script.
func keyOf(dir, name string, flags []string) (key [sha256.Size]byte, err error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q\n", name, flags)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		switch filepath.Ext(path) {
		case ".cu", ".cuh", ".h", ".map":
		default:
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(dir, path)
		fmt.Fprintf(h, "%q %d\n%s", inside, len(data), data)
		return err
	})
	return [sha256.Size]byte(h.Sum(nil)), err
}

// copyFile makes a new file to with the bytes of from. A link would do on most systems, but tests may overwrite what
// they have built.
func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o777)
}

// Remove deletes all of them. A TestMain calls it when its tests have ended.
func (c *Cache) Remove() {
	if c.dir != "" {
		if err := os.RemoveAll(c.dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}
