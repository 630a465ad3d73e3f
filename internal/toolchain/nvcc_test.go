package toolchain

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The same source gives the same bytes in any folder, without that of TMPDIR, and with line tables, too; a name in an
// unnamed namespace is what nvcc derives from the path. Nothing stays beside the library.
func TestBuildsInFoldersAreAlike(t *testing.T) {
	nvcc, err := FindNVCC("")
	if err != nil {
		t.Skip(err)
	}
	const source = "namespace {\n__global__ void k(int* p) { *p = 1; }\n}\n" +
		"extern \"C\" void f(int* p) { k<<<1, 1>>>(p); }\n"
	var first []byte
	for _, name := range []string{"one", "another one"} {
		dir := filepath.Join(t.TempDir(), name)
		for file, text := range map[string]string{"x.cu": source, "x.map": "{ global: f; local: *; };\n"} {
			if err := os.MkdirAll(dir, 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("TMPDIR", filepath.Join(dir, "there is no such folder"))
		b, err := nvcc.BuildLibrary(t.Context(), dir, "x", []string{"sm_90"}, LineInfo)
		if err != nil {
			t.Fatal(err)
		}
		if len(b.Kernels) != 1 || len(b.Spans) == 0 {
			t.Errorf("%d kernels, %d spans of lines", len(b.Kernels), len(b.Spans))
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 4 {
			t.Errorf("the folder holds %v, %v; want the sources and two libraries", entries, err)
		}
		library, err := os.ReadFile(filepath.Join(dir, "libx.so"))
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = library
		} else if !bytes.Equal(library, first) {
			t.Error("two folders give different libraries")
		}
	}
}
