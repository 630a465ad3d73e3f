package codegen

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/rammerc/rammerc/internal/toolchain"
)

// builds holds the emulated libraries that tests of this process have built. Compiling takes most of the tests' time,
// and several tests ask different things of the same program.
var builds buildCache

// buildCache finds libraries by what they are made of: the sources, the library's name and the compiler's flags.
type buildCache struct {
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

// TestMain removes the libraries once all tests have ended.
func TestMain(m *testing.M) {
	code := m.Run()
	if builds.dir != "" {
		if err := os.RemoveAll(builds.dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	os.Exit(code)
}

// buildEmulated compiles NAME.cu in dir for the emulator into libNAME.so beside it, by default without optimisation,
// because the programs of these tests run for less time than optimising takes. Tests without a C++ compiler are skipped.
func buildEmulated(t testing.TB, dir, name string, flags ...string) string {
	t.Helper()
	cxx, err := toolchain.FindCxx("")
	if toolchain.IsMissing(err) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	lib := filepath.Join(dir, "lib"+name+".so")
	if err := builds.build(cxx, dir, name, lib, append([]string{"-O0"}, flags...)); err != nil {
		t.Fatal(err)
	}
	return lib
}

// build puts the library of dir's sources at lib. Tests that ask for the same library at once wait for one compilation.
func (c *buildCache) build(cxx *toolchain.Cxx, dir, name, lib string, flags []string) error {
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
func (c *buildCache) item(key [sha256.Size]byte) (*cachedBuild, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dir == "" {
		dir, err := os.MkdirTemp("", "rammer-codegen-")
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

// A changed source, another flag or another name is another library; the weights are not part of it.
func TestBuildCacheKey(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	key := func(name string, flags ...string) [sha256.Size]byte {
		t.Helper()
		k, err := keyOf(dir, name, flags)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	write("a.cu", "one")
	write("inside/b.h", "two")
	write("a.weights", "three")
	was := key("a", "-O0")
	for what, now := range map[string][sha256.Size]byte{"another name": key("b", "-O0"),
		"another flag": key("a", "-O1")} {
		if now == was {
			t.Errorf("%s gives the same key", what)
		}
	}
	write("a.weights", "four")
	if key("a", "-O0") != was {
		t.Error("other weights give another key")
	}
	write("inside/b.h", "five")
	if key("a", "-O0") == was {
		t.Error("a changed header gives the same key")
	}
}
