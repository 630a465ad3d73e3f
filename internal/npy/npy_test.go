package npy

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func sample(k kind) *Array {
	a := zeros(k.name, 2, 3)
	v := reflect.ValueOf(a.Data)
	for i := range v.Len() {
		switch e := v.Index(i); {
		case e.CanInt():
			e.SetInt(int64(i) - 2)
		case e.CanUint():
			e.SetUint(uint64(i) * 7)
		case e.CanFloat():
			e.SetFloat(float64(i) / 4)
		default:
			e.SetBool(i%2 == 1)
		}
	}
	return a
}

func TestRoundTrip(t *testing.T) {
	var members []Member
	for _, k := range kinds {
		a := sample(k)
		var b bytes.Buffer
		if err := Write(&b, a); err != nil {
			t.Fatal(err)
		}
		if (b.Len()-6*int(k.size))%64 != 0 {
			t.Errorf("%s: the elements start at %d, which is not aligned", k.name, b.Len()-6*int(k.size))
		}
		got, err := Parse(b.Bytes())
		if err != nil || !reflect.DeepEqual(got, a) {
			t.Errorf("%s: got %v, %v, want %v", k.name, got, err, a)
		}
		members = append(members, Member{k.name, a})
	}
	members = append(members, Member{"scalar", zeros("float32")}, Member{"empty", zeros("int64", 0, 5)})
	var b, again bytes.Buffer
	for _, w := range []*bytes.Buffer{&b, &again} {
		if err := WriteZip(w, members); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(b.Bytes(), again.Bytes()) {
		t.Error("two archives of the same arrays differ")
	}
	got, err := ParseZip(b.Bytes())
	if err != nil || !reflect.DeepEqual(got, members) {
		t.Errorf("archive: got %v, %v", got, err)
	}
}

// raw builds a file with the header dict as given.
func raw(dict string, data ...byte) []byte {
	out := append([]byte(magic), 1, 0, byte(len(dict)), byte(len(dict)>>8))
	return append(append(out, dict...), data...)
}

func TestOrders(t *testing.T) {
	big := raw("{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }", 1, 2, 3, 4)
	fortran := raw("{'shape': (2, 3), 'fortran_order': True, 'descr': '|u1'}", 0, 3, 1, 4, 2, 5)
	for _, c := range []struct {
		data []byte
		want *Array
	}{
		{big, &Array{"int16", []int64{2}, []int16{0x102, 0x304}}},
		{fortran, &Array{"uint8", []int64{2, 3}, []uint8{0, 1, 2, 3, 4, 5}}},
		{raw("{'shape': (2, 2), 'fortran_order': True, 'descr': '>U2'}", 0, 0, 0, 'a', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
			0, 0, 0, 'b', 0, 0, 0, 0xe9, 0, 0, 0, 0, 0, 0, 0, 'd'),
			&Array{"string", []int64{2, 2}, []string{"a", "bé", "", "\x00d"}}},
	} {
		if got, err := Parse(c.data); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("got %v, %v, want %v", got, err, c.want)
		}
	}
}

// TestTexts writes strings and reads them again.
func TestTexts(t *testing.T) {
	for _, want := range []*Array{
		{"string", []int64{2, 2}, []string{"", "ä€𝄞", "b", "c d"}}, {"string", []int64{}, []string{""}},
		{"string", []int64{0}, []string{}},
	} {
		var b bytes.Buffer
		if err := Write(&b, want); err != nil {
			t.Fatal(err)
		}
		if got, err := Parse(b.Bytes()); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, %v, want %v", got, err, want)
		}
	}
}

func TestMalformed(t *testing.T) {
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "does not start like"},
		{"other", []byte("PK\x03\x04xxxxxxxxxxx"), "does not start like"},
		{"version", []byte(magic + "\x09\x00\x00\x00"), "version 9.0"},
		{"header", []byte(magic + "\x01\x00\xff\x00{"), "truncated"},
		{"object", raw("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"), "not supported"},
		{"record", raw("{'descr': [('a','<f4')], 'fortran_order': False, 'shape': (1,), }"), "records"},
		{"huge", raw("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,4), }"), "too large"},
		{"short", raw("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296,), }", 1, 2), "does not fit"},
		{"long", raw("{'descr': '<U4294967296', 'fortran_order': False, 'shape': (1,), }"), "not supported"},
		{"many", raw("{'descr': '<U0', 'fortran_order': False, 'shape': (4294967296,4294967,), }"), "too many"},
		{"negative", raw("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }"), "extent"},
		{"unclosed", raw("{'descr': '<f4"), "not closed"},
		{"key", raw("{'x': 1}"), "unknown key"},
		{"missing", raw("{'descr': '<f4'}"), "wanted"},
	} {
		if _, err := Parse(c.data); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", c.name, err, c.want)
		}
	}
	if _, err := ParseZip([]byte("PK")); err == nil {
		t.Error("a broken archive was read")
	}
}

// TestNumPy exchanges arrays with NumPy itself, when it is there.
func TestNumPy(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil || exec.Command(python, "-c", "import numpy").Run() != nil {
		t.Skip("python3 with numpy is not installed")
	}
	dir := t.TempDir()
	var members []Member
	for _, k := range kinds {
		members = append(members, Member{k.name, sample(k)})
	}
	var b bytes.Buffer
	if err := WriteZip(&b, members); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.npz"), b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	script := `import numpy
a = numpy.load("a.npz")
assert all(a[k].dtype == k for k in a), {k: a[k].dtype for k in a}
numpy.savez_compressed("b.npz", **{k: numpy.asfortranarray(a[k]) for k in a})`
	cmd := exec.Command(python, "-c", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	got, err := ReadZip(filepath.Join(dir, "b.npz"), nil)
	if err != nil || !reflect.DeepEqual(got, members) {
		t.Errorf("got %v, %v, want %v", got, err, members)
	}
	one, err := ReadZipMember(filepath.Join(dir, "b.npz"), "int32", nil)
	if err != nil || one.DType != "int32" {
		t.Errorf("member: %v, %v", one, err)
	}
	if _, err := ReadZipMember(filepath.Join(dir, "b.npz"), "nope", nil); err == nil ||
		!strings.Contains(err.Error(), "float16") {
		t.Errorf("missing member: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	var b bytes.Buffer
	for _, k := range kinds[:3] {
		b.Reset()
		if err := Write(&b, sample(k)); err != nil {
			f.Fatal(err)
		}
		f.Add(bytes.Clone(b.Bytes()))
	}
	zipped, _ := base64.StdEncoding.DecodeString("UEsFBgAAAAAAAAAAAAAAAAAAAAAAAA==")
	f.Add(zipped)
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := Parse(data)
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := Write(&b, a); err != nil {
			t.Fatal(err)
		}
		again, err := Parse(b.Bytes())
		if err != nil || !reflect.DeepEqual(again.Shape, a.Shape) {
			t.Fatalf("%v does not read back: %v", a.Shape, err)
		}
		_, _ = ParseZip(data)
	})
}

// zeros is an array of zeros.
func zeros(dtype string, shape ...int64) *Array {
	k, ok := kindNamed(dtype)
	if !ok {
		panic("BUG: npy has no element type " + dtype)
	}
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return &Array{DType: dtype, Shape: append([]int64{}, shape...), Data: k.make(n)}
}

// A file has what its header says, no more and no less.
func TestLengthMustFit(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, zeros("float32", 2, 3)); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{-24, -1, 1, 4, 24} {
		data := append(bytes.Clone(b.Bytes()), make([]byte, max(n, 0))...)
		data = data[:b.Len()+n]
		if _, err := Parse(data); err == nil || !strings.Contains(err.Error(), "does not fit") {
			t.Errorf("%+d bytes: %v", n, err)
		}
	}
}

// What the caller does not want is refused before its elements are read.
func TestAcceptComesFirst(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.npy")
	var b bytes.Buffer
	if err := Write(&b, zeros("float32", 2, 3)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	no := errors.New("not wanted")
	_, err := ReadFile(file, func(name, dtype string, shape []int64) error {
		if name != "" || dtype != "float32" || !reflect.DeepEqual(shape, []int64{2, 3}) {
			t.Errorf("asked for %q %s %v", name, dtype, shape)
		}
		return no
	})
	if !errors.Is(err, no) {
		t.Errorf("got %v", err)
	}
}

// Nobody needs a header of 64 KB, and nothing is allocated for one.
func TestLongHeader(t *testing.T) {
	text := "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }" + strings.Repeat(" ", maxHeader) + "\n"
	data := append([]byte(magic), 2, 0, byte(len(text)), byte(len(text)>>8), byte(len(text)>>16), 0)
	data = append(append(data, text...), make([]byte, 8)...)
	if _, err := Parse(data); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("got %v", err)
	}
}

// A member that is not what the archive says of it is refused: a changed byte, and more bytes than deflate can make.
func TestDamagedMembers(t *testing.T) {
	var b bytes.Buffer
	if err := WriteZip(&b, []Member{{"x", zeros("float32", 64)}}); err != nil {
		t.Fatal(err)
	}
	data := b.Bytes()
	data[bytes.Index(data, make([]byte, 128))+64] ^= 1
	if _, err := ParseZip(data); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a changed byte: %v", err)
	}
	b.Reset()
	z := zip.NewWriter(&b)
	w, err := z.CreateRaw(&zip.FileHeader{Name: "x.npy", Method: zip.Deflate, CompressedSize64: 3,
		UncompressedSize64: (3+16)*maxDeflate + 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte{1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := ParseZip(b.Bytes()); err == nil || !strings.Contains(err.Error(), "impossible size") {
		t.Errorf("an impossible size: %v", err)
	}
}
