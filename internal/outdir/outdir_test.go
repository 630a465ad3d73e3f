package outdir

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

func TestOutDirLeavesNothing(t *testing.T) {
	root := t.TempDir()
	o, err := Open(filepath.Join(root, "a", "b", "out"), "net")
	if err != nil {
		t.Fatal(err)
	}
	folders := &Folders{}
	if err := o.Begin(folders); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(o.Work, "net.cu"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	o.Discard()
	assertTree(t, root, ".")

	// The same when the user interrupts, except that the parents stay.
	if err := o.Begin(folders); err != nil {
		t.Fatal(err)
	}
	folders.Abandon()
	assertTree(t, root, ".", "a", "a/b")
}

// An interrupt may come while a folder is being made, and while something still writes into one.
func TestAbandonIsFinal(t *testing.T) {
	root := t.TempDir()
	folders := &Folders{}
	first, _, err := folders.Make(root, "first-*")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Add(1)
	go func() { // writes as long as there is a folder to write into
		running.Done()
		for i := 0; os.WriteFile(filepath.Join(first, strconv.Itoa(i)), nil, 0o666) == nil; i++ {
		}
	}()
	made := make(chan int, 1000)
	running.Add(1)
	go func() { // makes folders until Abandon stops it for good
		running.Done()
		for i := range cap(made) {
			if _, _, err := folders.Make(root, "next-*"); err != nil {
				t.Error(err)
			}
			made <- i
		}
	}()
	running.Wait()
	for range 3 {
		<-made
	}
	folders.Abandon()
	assertTree(t, root, ".")
}

func TestOutDirReplacesItsOwnOnly(t *testing.T) {
	root := t.TempDir()
	final := filepath.Join(root, "out")
	for _, name := range []string{"net.plan.json", "net.cu", "libnet.so", "cudaemu/host.h", "notes.txt",
		"network.txt"} {
		path := filepath.Join(final, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("old"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	o, err := Open(final, "net")
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Begin(&Folders{}); err != nil {
		t.Fatal(err)
	}
	defer o.Discard()
	if err := os.WriteFile(filepath.Join(o.Work, "net.plan.json"), []byte("new"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Commit(); err != nil {
		t.Fatal(err)
	}
	assertTree(t, final, ".", "net.plan.json", "network.txt", "notes.txt")
	if data, _ := os.ReadFile(filepath.Join(final, "net.plan.json")); string(data) != "new" {
		t.Errorf("the old file is still there")
	}
}

func assertTree(t *testing.T, root string, want ...string) {
	t.Helper()
	var got []string
	err := fs.WalkDir(os.DirFS(root), ".", func(p string, _ fs.DirEntry, err error) error {
		got = append(got, p)
		return err
	})
	if err != nil || strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("got %v (%v), want %v", got, err, want)
	}
}
