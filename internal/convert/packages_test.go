package convert

import (
	"archive/zip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// packages are wheels that have sources of kernels in them, which frameworks compile where they are used.
var packages = []string{"rwkv==0.8.32", "exllamav2==0.3.2", "gsplat==1.5.3", "nerfacc==0.5.3"}

// fetchPackages downloads the wheels and unpacks their sources into a folder. Skips where that cannot be done.
func fetchPackages(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("downloads packages")
	}
	dir := filepath.Join(t.TempDir(), "sources")
	wheels := t.TempDir()
	args := append([]string{"-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:",
		"--disable-pip-version-check", "--retries", "0", "-d", wheels}, packages...)
	if out, err := exec.Command("python3", args...).CombinedOutput(); err != nil {
		t.Skipf("the packages cannot be fetched: %v\n%s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(wheels, "*.whl"))
	if err != nil || len(files) != len(packages) {
		t.Fatal(files, err)
	}
	for _, file := range files {
		unpackSources(t, file, dir)
	}
	return dir
}

func unpackSources(t *testing.T, wheel, dir string) {
	t.Helper()
	archive, err := zip.OpenReader(wheel)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	for _, f := range archive.File {
		switch filepath.Ext(f.Name) {
		case ".cu", ".cuh", ".h":
		default:
			continue
		}
		if !filepath.IsLocal(f.Name) {
			t.Fatalf("%s has %s", wheel, f.Name)
		}
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		r.Close()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Kernels of others, which come inside packages, leave what their originals leave. The first line of a specification
// names the source in the packages.
func TestKernelsOfPackages(t *testing.T) {
	dir := fetchPackages(t)
	specs, err := filepath.Glob("testdata/packages/*.yaml")
	if err != nil || len(specs) < 10 {
		t.Fatalf("%d specifications, %v", len(specs), err)
	}
	var results []*Result
	for _, spec := range specs {
		text, err := os.ReadFile(spec)
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(text), "\n")
		if r := converted(t, filepath.Join(dir, strings.TrimPrefix(first, "# ")), spec); r != nil {
			results = append(results, r)
		}
	}
	if dir := os.Getenv("RAMMER_CONVERT_KEEP"); dir != "" {
		if err := WriteProgram(dir, "large.cu", results, true); err != nil {
			t.Fatal(err)
		}
		return
	}
	compared(t, results)
}
