package limits

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestReadTakesRegularFilesOnly(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("1234"), 0o666); err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o666); err != nil {
		t.Fatal(err)
	}
	sparse := filepath.Join(dir, "sparse")
	if err := os.WriteFile(sparse, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(sparse, 1<<40); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path  string
		limit int64
		want  string
	}{
		{text, 4, ""},
		{text, 3, "has 4 bytes, and at most 3 are read"},
		{fifo, 4, "is not a regular file"},
		{"/dev/zero", 4, "is not a regular file"},
		{dir, 4, "is a folder"},
		{sparse, SmallText, "at most 1048576"},
		{filepath.Join(dir, "none"), 4, "no such file"},
	} {
		type result struct {
			data []byte
			err  error
		}
		done := make(chan result, 1)
		go func() {
			data, err := Read(c.path, c.limit)
			done <- result{data, err}
		}()
		select {
		case r := <-done:
			if c.want == "" && (r.err != nil || string(r.data) != "1234") {
				t.Errorf("%s: %q, %v", c.path, r.data, r.err)
			}
			if c.want != "" && (r.err == nil || !strings.Contains(r.err.Error(), c.want)) {
				t.Errorf("%s: got %v, want %q", c.path, r.err, c.want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: waits", c.path)
		}
	}
}

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{
		"500": 500, "2K": 2048, "512M": 512 << 20, "2GiB": 2 << 30, "1.5g": 3 << 29, "1TB": 1 << 40,
		"": -1, "0": -1, "-1G": -1, "x": -1, "1X": -1, "nan": -1, "1e30": -1, "MG": -1,
	} {
		got, err := ParseBytes(text)
		if want < 0 && err == nil || want >= 0 && got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
}

func TestCheckMemory(t *testing.T) {
	defer SetMemory(Memory())
	SetMemory(1 << 20)
	if err := CheckMemory("it", 1<<20); err != nil {
		t.Error(err)
	}
	for _, n := range []int64{1<<20 + 1, -1} {
		if err := CheckMemory("it", n); err == nil || !strings.Contains(err.Error(), "more than the 1.0 MiB") {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}
