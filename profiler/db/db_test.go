package db

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"
)

var h200 = Machine{GPU: "NVIDIA H200", Clocks: "1980/3201", Driver: "580.1", NVCC: "13.0", RunTime: "r"}

func entry(m Machine, n int) Entry {
	return Entry{
		Key: Key{Machine: m, Source: "s", Args: fmt.Sprint(n)}, Instance: "gemm", Tasks: n,
		Times: Times{Cold: float64(n)},
	}
}

func open(t *testing.T, path string) *DB {
	t.Helper()
	d, err := Open(path, "")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// writerVariable makes the test binary a process that appends entries until it is killed: its value is the file, and
// the number of the first entry.
const writerVariable = "RAMMER_TEST_WRITER"

func TestMain(m *testing.M) {
	if path := os.Getenv(writerVariable); path != "" {
		first, err := strconv.Atoi(os.Getenv(writerVariable + "_FIRST"))
		for n := first; err == nil; n++ {
			if err = AppendFile(path, []Entry{entry(h200, n)}); err == nil {
				fmt.Println(n) // it is on the disk now
			}
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// What was appended is found again, by its whole key and by nothing less.
func TestFind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "folder", "measured.jsonl")
	if err := open(t, path).Append(entry(h200, 1), entry(h200, 2)); err != nil {
		t.Fatal(err)
	}
	d := open(t, path)
	if e, ok := d.Find(entry(h200, 2).Key); !ok || e.Times.Cold != 2 {
		t.Errorf("%+v, %v", e, ok)
	}
	for what, change := range map[string]func(k *Key){
		"GPU":      func(k *Key) { k.GPU = "NVIDIA H100" },
		"clocks":   func(k *Key) { k.Clocks = "1200/3201" },
		"driver":   func(k *Key) { k.Driver = "580.2" },
		"nvcc":     func(k *Key) { k.NVCC = "13.1" },
		"run time": func(k *Key) { k.RunTime = "q" },
		"source":   func(k *Key) { k.Source = "other" },
		"args":     func(k *Key) { k.Args = "other" },
	} {
		k := entry(h200, 2).Key
		if change(&k); true {
			if _, ok := d.Find(k); ok {
				t.Errorf("the figure is used for another %s", what)
			}
		}
	}
	again := entry(h200, 2)
	again.Problem = "it hangs"
	if err := d.Append(again); err != nil {
		t.Fatal(err)
	}
	if e, _ := open(t, path).Find(again.Key); e.Problem != again.Problem {
		t.Errorf("of equal keys the latest counts: %+v", e)
	}
}

// A line that is cut off is lost, and spoils no other. Lines of other versions are not used.
func TestDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "measured.jsonl")
	d := open(t, path)
	if err := d.Append(entry(h200, 1)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := bytes.Replace(text, []byte(`"v":1`), []byte(`"v":99`), 1)
	damaged := append(append(append([]byte{}, text...), other...), text[:len(text)/2]...)
	if err := os.WriteFile(path, damaged, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := d.Append(entry(h200, 3)); err != nil {
		t.Fatal(err)
	}
	entries, bad, err := ReadFile(path)
	if err != nil || bad != 1 || len(entries) != 2 || entries[1].Tasks != 3 {
		t.Errorf("%d damaged, %+v, %v", bad, entries, err)
	}
}

// A process that is killed at any moment loses at most the line that it was writing.
func TestKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "measured.jsonl")
	r := rand.New(rand.NewPCG(1, 2))
	next := 0
	for range 20 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), writerVariable+"="+path, writerVariable+"_FIRST="+strconv.Itoa(next))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// The process is killed when it has said of some entries that they are on the disk: somewhere in the next.
		lines := bufio.NewScanner(out)
		last := -1
		for range 3 + r.IntN(20) {
			if !lines.Scan() {
				t.Fatalf("the writer ended by itself: %v", lines.Err())
			}
			last = number(t, lines.Text())
		}
		time.Sleep(time.Duration(r.IntN(2000)) * time.Microsecond)
		_ = cmd.Process.Kill()
		for lines.Scan() {
			last = number(t, lines.Text())
		}
		_ = cmd.Wait()
		entries, _, err := ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		have := map[int]bool{}
		for _, e := range entries {
			have[e.Tasks] = true
		}
		for n := next; n <= last; n++ {
			if !have[n] {
				t.Fatalf("entry %d was on the disk before the process was killed, and is lost", n)
			}
		}
		next = last + 3
	}
}

// number is what a line of the writer's says.
func number(t *testing.T, line string) int {
	t.Helper()
	n, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Two that append at once, here four goroutines through files of their own, lose nothing.
func TestTwoAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "measured.jsonl")
	const writers, each = 4, 50
	var wg sync.WaitGroup
	for w := range writers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range each {
				if err := AppendFile(path, []Entry{entry(h200, w*each+i)}); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	wg.Wait()
	if entries, damaged, err := ReadFile(path); err != nil || damaged > 0 || len(Latest(entries)) != writers*each {
		t.Errorf("%d entries, %d damaged, %v", len(entries), damaged, err)
	}
}

func TestMergeAndCollect(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	if err := AppendFile(a, []Entry{entry(h200, 1), entry(h200, 1), entry(h200, 2)}); err != nil {
		t.Fatal(err)
	}
	other := h200
	other.GPU = "NVIDIA A100"
	if err := AppendFile(b, []Entry{entry(h200, 2), entry(other, 2), entry(h200, 3), entry(h200, 3)}); err != nil {
		t.Fatal(err)
	}
	if n, err := Merge(a, b); n != 2 || err != nil {
		t.Errorf("%d added, %v", n, err)
	}
	if _, err := Merge(a, filepath.Join(dir, "none")); err == nil {
		t.Error("a file that does not exist was merged")
	}
	before, after, err := Collect(a, func(e *Entry) bool { return e.GPU == h200.GPU })
	if err != nil || before != 5 || after != 3 {
		t.Errorf("%d lines became %d, %v", before, after, err)
	}
	if entries, damaged, err := ReadFile(a); err != nil || damaged > 0 || len(entries) != 3 {
		t.Errorf("%d entries, %d damaged, %v", len(entries), damaged, err)
	}
}

// What ships is readable, is small, and is of one GPU a file.
func TestShipped(t *testing.T) {
	entries, err := Shipped()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.GPU == "" || e.Problem == "" && e.Times.Cold <= 0 {
			t.Errorf("%+v", e)
		}
	}
	files, err := shipped.ReadDir("shipped")
	if err != nil {
		t.Fatal(err)
	}
	size := int64(0)
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	if size > 1<<20 {
		t.Errorf("%d bytes ship, at most a megabyte should", size)
	}
}
