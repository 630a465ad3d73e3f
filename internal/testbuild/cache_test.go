package testbuild

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"testing"
)

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
