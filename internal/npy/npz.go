package npy

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/rammerc/rammerc/internal/limits"
)

// Member is an array of an .npz archive.
type Member struct {
	Name  string // without ".npy"
	Array *Array
}

// maxDeflate is slightly more than the number of bytes that deflate can make of one. A member that claims to be larger
// than that is refused before anything is allocated for it.
const maxDeflate = 1100

// ErrSkip is what an Accept returns to skip a member of an archive. ReadZip lists it without its array.
var ErrSkip = errors.New("skip this array")

// ReadZip reads the arrays of an .npz file in file order. accept may be nil.
func ReadZip(path string, accept Accept) ([]Member, error) {
	f, size, err := limits.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readZip(f, size, accept)
}

func readZip(r io.ReaderAt, size int64, accept Accept) ([]Member, error) {
	z, err := openZip(r, size)
	if err != nil {
		return nil, err
	}
	var out []Member
	for _, f := range z.File {
		name, ok := strings.CutSuffix(f.Name, ".npy")
		if !ok {
			continue
		}
		a, err := readMember(f, name, accept)
		if err != nil && !errors.Is(err, ErrSkip) {
			return nil, fmt.Errorf("array %q: %w", name, err)
		}
		out = append(out, Member{name, a})
	}
	return out, nil
}

// openZip reads the directory of an archive, for which archive/zip allocates in proportion to the size of the file.
func openZip(r io.ReaderAt, size int64) (*zip.Reader, error) {
	if err := limits.CheckMemory("an archive of that size", size); err != nil {
		return nil, err
	}
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("not an .npz archive: %w", err)
	}
	return z, nil
}

// ReadZipMember reads one array of an .npz file. accept may be nil.
func ReadZipMember(path, name string, accept Accept) (*Array, error) {
	file, size, err := limits.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	z, err := openZip(file, size)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range z.File {
		if f.Name == name+".npy" {
			return readMember(f, name, accept)
		}
		names = append(names, strings.TrimSuffix(f.Name, ".npy"))
	}
	return nil, fmt.Errorf("the archive has no array %q; it has: %s", name, strings.Join(names, ", "))
}

func readMember(f *zip.File, name string, accept Accept) (*Array, error) {
	if f.UncompressedSize64 > (f.CompressedSize64+16)*maxDeflate {
		return nil, errors.New("the archive claims an impossible size")
	}
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	a, err := read(r, f.UncompressedSize64, name, accept)
	if err != nil {
		return nil, err
	}
	// At the end archive/zip compares the checksum.
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		return nil, errors.Join(errors.New("the archive is damaged"), err)
	}
	return a, nil
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
