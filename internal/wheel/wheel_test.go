package wheel

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// RECORD lists every file with its hash and size, and the same content gives the same bytes.
func TestWheel(t *testing.T) {
	dir := t.TempDir()
	w := Wheel{Name: "some_model", Version: "0+12ab", Platform: "linux_x86_64", Summary: "s", Python: ">=3.8",
		Requires: []string{"numpy"}}
	for path, content := range map[string]string{"some_model/__init__.py": "x = 1\n", "some_model/lib.so": "\x7fELF"} {
		source := filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(source, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		w.Files = append(w.Files, File{path, source})
	}
	if w.Files[0].Path > w.Files[1].Path {
		w.Files[0], w.Files[1] = w.Files[1], w.Files[0]
	}
	var first, second bytes.Buffer
	if err := w.Write(&first); err != nil {
		t.Fatal(err)
	}
	if err := w.Write(&second); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Errorf("written again, the wheel has other bytes, %v", err)
	}
	if got := w.FileName(); got != "some_model-0+12ab-py3-none-linux_x86_64.whl" {
		t.Error(got)
	}
	z, err := zip.NewReader(bytes.NewReader(first.Bytes()), int64(first.Len()))
	if err != nil {
		t.Fatal(err)
	}
	record, err := z.Open("some_model-0+12ab.dist-info/RECORD")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(record).ReadAll()
	if err != nil || len(rows) != len(z.File) {
		t.Fatalf("RECORD has %d rows for %d files, %v", len(rows), len(z.File), err)
	}
	for i, f := range z.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.New()
		sum.Write(content)
		want := []string{f.Name, "sha256=" + digest(sum), strconv.Itoa(len(content))}
		if strings.HasSuffix(f.Name, "/RECORD") {
			want = []string{f.Name, "", ""}
		}
		if strings.Join(rows[i], ",") != strings.Join(want, ",") {
			t.Errorf("RECORD has %v, want %v", rows[i], want)
		}
	}
	w.Files = append(w.Files, File{"x", filepath.Join(dir, "none")})
	if w.Write(io.Discard) == nil {
		t.Error("a file that is not there was written")
	}
}
