package rammercu_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	rammercu "github.com/rammerc/rammerc/interop/cu"
	"gorgonia.org/cu"
)

// What cannot run is refused with a reason, before anything is launched.
func TestRefused(t *testing.T) {
	c := cases(t)[0]
	ctx := newContext(t)
	p := c.program(t, ctx)
	b := newBench(t, c, p)
	for _, x := range []struct {
		in, out []cu.DevicePtr
		want    string
	}{
		{nil, b.out, "want 1 inputs and 1 outputs, got 0 and 1"},
		{[]cu.DevicePtr{0}, b.out, "null pointer"},
		{[]cu.DevicePtr{b.in[0] + 4}, b.out, "not aligned to 16 bytes"},
		{b.in, b.in, "overlaps"},
	} {
		if err := p.Launch(cu.NoStream, x.in, x.out); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("got %v, want an error with %q", err, x.want)
		}
	}
	if _, err := rammercu.Load(ctx, t.TempDir()); err == nil || !strings.Contains(err.Error(), "0 launch lists") {
		t.Errorf("an empty folder: %v", err)
	}
	if _, err := rammercu.OpenLibrary(ctx, "model.so"); err == nil || !strings.Contains(err.Error(), "libNAME.so") {
		t.Errorf("a file of another name: %v", err)
	}
}

// Files that are damaged or another program's are found out.
func TestDamaged(t *testing.T) {
	c := cases(t)[0]
	ctx := newContext(t)
	for _, x := range []struct {
		file string
		harm func([]byte) []byte
		want string
	}{
		{".weights", func(b []byte) []byte { b[300] ^= 1; return b }, "is damaged"},
		{".weights", func(b []byte) []byte { return b[:len(b)/2] }, "is cut short"},
		{".tables", func(b []byte) []byte { return b[:16] }, "is cut short"},
		{".launches.json", func(b []byte) []byte { return b[:16] }, "JSON"},
		{".launches.json", func(b []byte) []byte { return []byte(strings.Replace(string(b), "launches/v1", "launches/v9", 1)) },
			"schema"},
		{".launches.json", func(b []byte) []byte { return []byte(strings.Replace(string(b), `_kernel0"`, `_kernel7"`, 1)) },
			"kernel7"},
	} {
		folder := filepath.Join(t.TempDir(), "cubin")
		if err := os.CopyFS(folder, os.DirFS(filepath.Join(c.folder, "cubin"))); err != nil {
			t.Fatal(err)
		}
		found, _ := filepath.Glob(filepath.Join(folder, "*"+x.file))
		data, err := os.ReadFile(found[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(found[0], x.harm(data), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := rammercu.Load(ctx, folder); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: got %v, want an error with %q", x.file, err, x.want)
		}
	}
}

// images is the row of two images of 4×3 pixels, with such a lower corner.
func images(lower string) string {
	return `{"memory":"arena","at":0,"map":128,"row_bytes":32,"columns":8,"rows":2,"box_rows":64,"element_bytes":4,` +
		`"images":{"width":4,"height":3,"line_bytes":128,"image_bytes":384,"lower_corner":` + lower +
		`,"upper_corner":[-1,-1],"stride":[1,1]}}`
}

// Tensor maps are made of the rows of the list: a matrix that the copy engine cannot read is refused.
func TestTensorMaps(t *testing.T) {
	c := cases(t)[0]
	ctx := newContext(t)
	for _, x := range []struct {
		rows string
		good bool
	}{
		{`{"memory":"arena","at":256,"map":0,"row_bytes":256,"columns":64,"rows":8,"box_rows":8,"element_bytes":4}`, true},
		{`{"memory":"arena","at":0,"map":128,"row_bytes":128,"columns":60,"rows":4,"box_rows":64,"element_bytes":2}`, true},
		{`{"memory":"arena","at":0,"map":0,"row_bytes":24,"columns":6,"rows":8,"box_rows":8,"element_bytes":4}`, false},
		{`{"memory":"constants","at":0,"map":0,"row_bytes":128,"columns":32,"rows":2,"box_rows":2,"element_bytes":4,` +
			`"plain":true}`, true},
		{`{"memory":"elsewhere","at":0,"map":0,"row_bytes":128,"columns":32,"rows":2,"box_rows":2,"element_bytes":4}`, false},
		{images(`[-1,-1]`), true},
		{images(`[-200,-1]`), false},
	} {
		folder := filepath.Join(t.TempDir(), "cubin")
		if err := os.CopyFS(folder, os.DirFS(filepath.Join(c.folder, "cubin"))); err != nil {
			t.Fatal(err)
		}
		found, _ := filepath.Glob(filepath.Join(folder, "*.launches.json"))
		data, err := os.ReadFile(found[0])
		if err != nil {
			t.Fatal(err)
		}
		list := strings.Replace(string(data), `"tensor_maps":[]`, `"tensor_maps":[`+x.rows+`]`, 1)
		if list == string(data) {
			t.Fatal("the list has tensor maps of its own")
		}
		if err := os.WriteFile(found[0], []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := rammercu.Load(ctx, folder)
		if (err == nil) != x.good {
			t.Errorf("%s: %v", x.rows, err)
		}
		if err == nil {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// A closed program says so.
func TestClosed(t *testing.T) {
	c := cases(t)[0]
	p, err := rammercu.Load(newContext(t), filepath.Join(c.folder, "cubin"))
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, c, p)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.Launch(cu.NoStream, b.in, b.out); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("got %v, want that it is closed", err)
	}
	if err := p.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
}
