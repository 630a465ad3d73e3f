package npy

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Member is an array of an .npz archive.
type Member struct {
	Name  string // without ".npy"
	Array *Array
}

// maxDeflate is slightly more than the number of bytes that deflate can make of one. A member that claims to be larger
// than that is refused before anything is allocated for it.
const maxDeflate = 1100

// ReadZip reads all arrays of an .npz file in file order.
func ReadZip(path string) ([]Member, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return ParseZip(data)
}

// ParseZip decodes the bytes of an .npz file.
func ParseZip(data []byte) ([]Member, error) {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("not an .npz archive: %w", err)
	}
	var out []Member
	for _, f := range z.File {
		name, ok := strings.CutSuffix(f.Name, ".npy")
		if !ok {
			continue
		}
		a, err := readMember(f)
		if err != nil {
			return nil, fmt.Errorf("array %q: %w", name, err)
		}
		out = append(out, Member{name, a})
	}
	return out, nil
}

// ReadZipMember reads one array of an .npz file.
func ReadZipMember(path, name string) (*Array, error) {
	z, err := zip.OpenReader(path)
	if err != nil {
		var p *os.PathError
		if errors.As(err, &p) {
			return nil, err
		}
		return nil, fmt.Errorf("not an .npz archive: %w", err)
	}
	defer z.Close()
	var names []string
	for _, f := range z.File {
		if f.Name == name+".npy" {
			return readMember(f)
		}
		names = append(names, strings.TrimSuffix(f.Name, ".npy"))
	}
	return nil, fmt.Errorf("the archive has no array %q; it has: %s", name, strings.Join(names, ", "))
}

func readMember(f *zip.File) (*Array, error) {
	if f.UncompressedSize64 > (f.CompressedSize64+16)*maxDeflate {
		return nil, errors.New("the archive claims an impossible size")
	}
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var buf bytes.Buffer
	if _, err := io.Copy(&buf, r); err != nil {
		return nil, err
	}
	return Parse(buf.Bytes())
}

// WriteZip writes an .npz archive without compression. Equal members give equal bytes.
func WriteZip(w io.Writer, members []Member) error {
	z := zip.NewWriter(w)
	for _, m := range members {
		f, err := z.CreateHeader(&zip.FileHeader{Name: m.Name + ".npy", Method: zip.Store})
		if err != nil {
			return err
		}
		if err := Write(f, m.Array); err != nil {
			return fmt.Errorf("array %q: %w", m.Name, err)
		}
	}
	return z.Close()
}
