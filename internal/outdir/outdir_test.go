package outdir

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
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

// compileInto plays a compilation of the library net: it writes files, given as path and content, into dir.
func compileInto(dir string, files ...string) error {
	o, err := Open(dir, "net")
	if err != nil {
		return err
	}
	if err := o.Begin(&Folders{}); err != nil {
		return err
	}
	defer o.Discard()
	for i := 0; i < len(files); i += 2 {
		if err := put(filepath.Join(o.Work, files[i]), files[i+1]); err != nil {
			return err
		}
	}
	_, err = o.Commit()
	return err
}

func put(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o666)
}

func mustPut(t *testing.T, path, content string) {
	t.Helper()
	if err := put(path, content); err != nil {
		t.Fatal(err)
	}
}

func TestOutDirReplacesItsOwnOnly(t *testing.T) {
	final := filepath.Join(t.TempDir(), "out")
	if err := compileInto(final, "net.plan.json", "old", "libnet.so", "old", "cudaemu/host.h", "old", "go/net.go",
		"old"); err != nil {
		t.Fatal(err)
	}
	// The user's files may begin with the library's name, and lie in its folders.
	users := []string{"net.onnx", "net.notes.txt", "libnet.old.so", "cudaemu/mine.h", "notes.txt", "network.txt"}
	for _, name := range users {
		mustPut(t, filepath.Join(final, name), "mine")
	}
	if err := compileInto(final, "net.plan.json", "new"); err != nil {
		t.Fatal(err)
	}
	assertTree(t, final, ".", "cudaemu", "cudaemu/mine.h", "libnet.old.so", "net.files.json", "net.notes.txt", "net.onnx",
		"net.plan.json", "network.txt", "notes.txt")
	for _, name := range users {
		if data, _ := os.ReadFile(filepath.Join(final, name)); string(data) != "mine" {
			t.Errorf("%s was replaced", name)
		}
	}
	if data, _ := os.ReadFile(filepath.Join(final, "net.plan.json")); string(data) != "new" {
		t.Errorf("the old file is still there")
	}
}

// Each of these would lose a file, or reach outside of the directory.
func TestOutDirRefuses(t *testing.T) {
	list := func(paths string) string { return `{"schema": "rammerc/files/v1", "files": {` + paths + `}}` }
	const hash = `["a665a45920422f9d417e4867efdc4fb8a04a1f3fff1fa07e998e86f7f7a27ae3"]` // of "123"
	for _, c := range []struct {
		what, file, content, want string
	}{
		{"a file of the library was edited", "net.cu", "edited", "net.cu: is not what the compiler has written"},
		{"a file of the user is where a new one goes", "net.h", "mine", "net.h: is not what the compiler has written"},
		{"the list was lost", "net.files.json", "", "is not a list of files"},
		{"the list is of another schema", "net.files.json", `{"schema": "x"}`, "is not a list of files"},
		{"the list names files outside", "net.files.json", list(`"../victim": ` + hash), "outside of the directory"},
		{"the list names an absolute path", "net.files.json", list(`"/etc/victim": ` + hash), "outside of the directory"},
		{"the list is long", "net.files.json", strings.Repeat(" ", maxList+1), "is no list of files"},
	} {
		root := t.TempDir()
		final := filepath.Join(root, "out")
		mustPut(t, filepath.Join(root, "victim"), "123")
		if err := compileInto(final, "net.cu", "old"); err != nil {
			t.Fatal(err)
		}
		mustPut(t, filepath.Join(final, c.file), c.content)
		err := compileInto(final, "net.cu", "new", "net.h", "new")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.what, err, c.want)
		}
		if data, _ := os.ReadFile(filepath.Join(final, c.file)); string(data) != c.content {
			t.Errorf("%s: the file was changed", c.what)
		}
		if data, _ := os.ReadFile(filepath.Join(root, "victim")); string(data) != "123" {
			t.Errorf("%s: a file outside was changed", c.what)
		}
		if left, _ := filepath.Glob(filepath.Join(root, "*", ".rammerc-*")); len(left) > 0 {
			t.Errorf("%s: left %v", c.what, left)
		}
	}
}

// A link out of the directory must not lead the compiler to files of others.
func TestOutDirFollowsNoLinkOut(t *testing.T) {
	root := t.TempDir()
	final := filepath.Join(root, "out")
	if err := compileInto(final, "cudaemu/host.h", "123"); err != nil {
		t.Fatal(err)
	}
	mustPut(t, filepath.Join(root, "mine", "host.h"), "123")
	if err := os.RemoveAll(filepath.Join(final, "cudaemu")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "mine"), filepath.Join(final, "cudaemu")); err != nil {
		t.Fatal(err)
	}
	if err := compileInto(final, "net.cu", "new"); err == nil {
		t.Error("accepted")
	}
	if data, _ := os.ReadFile(filepath.Join(root, "mine", "host.h")); string(data) != "123" {
		t.Error("the file behind the link was removed")
	}
}

func TestOutDirFillsAnEmptyOne(t *testing.T) {
	final := t.TempDir()
	if err := compileInto(final, "net.cu", "new"); err != nil {
		t.Fatal(err)
	}
	assertTree(t, final, ".", "net.cu", "net.files.json")
}

// A folder with files of which no list tells is the user's.
func TestOutDirRefusesOthersFolders(t *testing.T) {
	final := t.TempDir()
	mustPut(t, filepath.Join(final, "net.plan.json"), "mine")
	if _, err := Open(final, "net"); err == nil || !strings.Contains(err.Error(), "not this library's") {
		t.Errorf("got %v", err)
	}
}

// However far a compilation came before it was killed, the next one may go on.
func TestOutDirAfterKill(t *testing.T) {
	final := filepath.Join(t.TempDir(), "out")
	if err := compileInto(final, "net.cu", "old", "net.map", "old"); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(final)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	old, err := readList(root, "net.files.json")
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	mustPut(t, filepath.Join(work, "net.cu"), "new")
	mustPut(t, filepath.Join(work, "net.h"), "new")
	files, err := listOf(work)
	if err != nil {
		t.Fatal(err)
	}
	if err := old.with(files).write(final, "net.files.json"); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"", "net.cu", "net.h"} { // what was moved before the kill
		if file != "" {
			mustPut(t, filepath.Join(final, file), "new")
		}
		if _, err := Open(final, "net"); err != nil {
			t.Errorf("killed behind %q: %v", file, err)
		}
	}
	if err := compileInto(final, "net.cu", "newer"); err != nil {
		t.Fatal(err)
	}
	assertTree(t, final, ".", "net.cu", "net.files.json")
}

// Compilations into one directory wait for each other, whether it exists or not: all succeed, and what is left is the
// whole work of one.
func TestOutDirManyAtOnce(t *testing.T) {
	for _, exists := range []bool{true, false} {
		final := t.TempDir()
		if !exists {
			final = filepath.Join(final, "out")
		} else {
			if err := compileInto(final, "net.a", "old", "net.b", "old"); err != nil {
				t.Fatal(err)
			}
		}
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				if err := compileInto(final, "net.a", strconv.Itoa(i), "net.b", strconv.Itoa(i)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		assertTree(t, final, ".", "net.a", "net.b", "net.files.json")
		a, _ := os.ReadFile(filepath.Join(final, "net.a"))
		b, _ := os.ReadFile(filepath.Join(final, "net.b"))
		if string(a) == "old" || string(a) != string(b) {
			t.Errorf("the directory has files of two compilations: %q and %q", a, b)
		}
	}
}

// Folders of processes that were killed go away when the next one works there; those of living ones, and what is the
// user's, stay.
func TestSweep(t *testing.T) {
	root := t.TempDir()
	dead := filepath.Join(root, ".rammerc-123")
	mustPut(t, filepath.Join(dead, markerName), markerText)
	mustPut(t, filepath.Join(dead, filesName, "net.cu"), "half")
	stillbornOne := filepath.Join(root, "rammerc-plans-5")
	mustPut(t, filepath.Join(stillbornOne, markerName), "")
	temporary := filepath.Join(root, temporaryFile+"77")
	mustPut(t, temporary, "half")
	old := time.Now().Add(-2 * stillborn)
	for _, path := range []string{stillbornOne, temporary} {
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	users := []string{"rammerc-7/notes.txt", "rammerc-notes/working", ".rammerc-8/working", ".rammerc-write-9"}
	for _, name := range users {
		mustPut(t, filepath.Join(root, name), "mine")
	}
	var living Folders
	dir, remove, err := living.Make(root, ".rammerc-*")
	if err != nil {
		t.Fatal(err)
	}
	var other Folders
	_, removeOther, err := other.Make(root, "rammerc-")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error("the folder of a living process was removed")
	}
	removeOther()
	remove()
	assertTree(t, root, ".", ".rammerc-8", ".rammerc-8/working", ".rammerc-write-9", "rammerc-7", "rammerc-7/notes.txt",
		"rammerc-notes", "rammerc-notes/working")
}

// TestSweepBeside: a compilation that was killed before there was a library directory has left its folder beside it. The
// next one into the directory, which exists by then, removes it.
func TestSweepBeside(t *testing.T) {
	root := t.TempDir()
	left := filepath.Join(root, ".rammerc-3")
	for range 2 {
		mustPut(t, filepath.Join(left, markerName), markerText)
		if err := compileInto(filepath.Join(root, "out"), "net.cu", "x"); err != nil {
			t.Fatal(err)
		}
		assertTree(t, root, ".", "out", "out/net.cu", "out/net.files.json")
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
