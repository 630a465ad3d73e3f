package dump

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func text(s string) func() ([]byte, error) { return func() ([]byte, error) { return []byte(s), nil } }

func read(t *testing.T, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	d, err := Create(dir)
	must(t, err)
	must(t, d.Write("import", "", "rir", text("one")))
	must(t, d.Write("graphopt", "fold-constants", "rir", text("one")))
	must(t, d.Write("graphopt", "cse", "rir", text("two")))
	must(t, d.Write("schedule", "wavefront", "rprog", text("two")))
	must(t, d.WriteNamed("repro.sh", []byte("#!/bin/sh\n")))
	want := "rammerc dump 1\n000_import.rir\n001_graphopt_fold-constants.rir (unchanged)\n002_graphopt_cse.rir\n003_schedule_wavefront.rprog\n"
	if got := read(t, dir, "index.txt"); got != want {
		t.Errorf("index is\n%s", got)
	}
	if got := read(t, dir, "001_graphopt_fold-constants.rir"); got != "(unchanged) since 000_import.rir\n" {
		t.Errorf("unchanged file says %q", got)
	}
	if got := read(t, dir, "002_graphopt_cse.rir"); got != "two" {
		t.Errorf("%q", got)
	}
	if info, err := os.Stat(filepath.Join(dir, "repro.sh")); err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("repro.sh cannot be executed: %v", err)
	}
}

// Another dump into the same directory replaces the numbered files and nothing else.
func TestCreateAgain(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"mine.txt", "000_mine.txt"} {
		must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o666))
	}
	d, err := Create(dir)
	must(t, err)
	must(t, d.Write("a", "b", "rir", text("x")))
	_, err = Create(dir)
	must(t, err)
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	must(t, err)
	for i := range left {
		left[i] = filepath.Base(left[i])
	}
	if got := strings.Join(left, " "); got != "000_mine.txt index.txt mine.txt" {
		t.Errorf("left are %s", got)
	}
}

func TestNamesStayInside(t *testing.T) {
	dir := t.TempDir()
	d, err := Create(filepath.Join(dir, "in"))
	must(t, err)
	must(t, d.Write("../../x", "/etc/é\x00", "../r", text("x")))
	must(t, d.WriteNamed("../up", []byte("x")))
	must(t, d.Write("s", strings.Repeat("n", 10_000), "rir", text("x")))
	if names, _ := filepath.Glob(filepath.Join(dir, "*")); len(names) != 1 {
		t.Errorf("written outside: %v", names)
	}
	if names, _ := filepath.Glob(filepath.Join(dir, "in", "*")); len(names) != 4 {
		t.Errorf("files are %v", names)
	}
}

// Without a dump nothing is printed, so it costs nothing.
func TestNil(t *testing.T) {
	var d *Dir
	must(t, d.Write("a", "b", "c", func() ([]byte, error) {
		t.Error("content was asked for")
		return nil, nil
	}))
	must(t, d.WriteNamed("x", nil))
	must(t, d.Constant("sha256:00112233", func() []byte {
		t.Error("elements were asked for")
		return nil
	}))
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	d, err := Create(dir)
	must(t, err)
	must(t, d.Write("import", "", "rir", text("one")))
	must(t, d.Write("graphopt", "a", "rir", text("one")))
	must(t, d.Write("graphopt", "b", "rir", text("two")))
	for file, want := range map[string]string{
		"000_import.rir": "one from 000_import.rir", "001_graphopt_a.rir": "one from 000_import.rir",
		"002_graphopt_b.rir": "two from 002_graphopt_b.rir",
	} {
		text, from, err := Read(filepath.Join(dir, file))
		if got := string(text) + " from " + filepath.Base(from); err != nil || got != want {
			t.Errorf("%s: got %s, %v; want %s", file, got, err, want)
		}
	}
	for content, want := range map[string]string{
		"(unchanged) since ../secret\n":          "no file of a dump",
		"(unchanged) since 001_graphopt_a.rir\n": "stands for another file itself",
		"(unchanged) since 007_gone.rir\n":       "no such file",
	} {
		file := filepath.Join(dir, "x.rir")
		must(t, os.WriteFile(file, []byte(content), 0o666))
		if _, _, err := Read(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", content, err, want)
		}
	}
}

// Elements are written once under their hash, found beside any text of the dump, and removed with it.
func TestConstants(t *testing.T) {
	dir := t.TempDir()
	d, err := Create(dir)
	must(t, err)
	const hash = "sha256:00112233445566778899aabbccddeeff"
	for _, elements := range []string{"first", "second"} {
		must(t, d.Constant(hash, func() []byte { return []byte(elements) }))
	}
	if got, err := Constant(filepath.Join(dir, "000_import.rir"), hash); err != nil || string(got) != "first" {
		t.Errorf("got %q, %v", got, err)
	}
	must(t, os.WriteFile(filepath.Join(dir, "constants", "mine.bin"), nil, 0o666))
	_, err = Create(dir)
	must(t, err)
	if left, _ := filepath.Glob(filepath.Join(dir, "constants", "*")); len(left) != 1 ||
		filepath.Base(left[0]) != "mine.bin" {
		t.Errorf("left are %v", left)
	}
	for hash, want := range map[string]string{hash: "there is no file", "sha256:../../etc": "is no hash",
		"md5:00": "is no hash"} {
		if _, err := Constant(filepath.Join(dir, "000_import.rir"), hash); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", hash, err, want)
		}
	}
}
