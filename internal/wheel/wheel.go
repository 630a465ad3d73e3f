// Package wheel writes Python wheels (https://packaging.python.org/en/latest/specifications/binary-distribution-format).
package wheel

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash"
	"io"
	"os"
	"strings"
)

// File is a file of a wheel: a path in it, with slashes, and the file on disk that has the content.
type File struct{ Path, Source string }

// Wheel is a package for one platform.
type Wheel struct {
	Name     string // of the distribution: letters, digits and underscores
	Version  string // as PEP 440 has it
	Platform string // such as linux_x86_64
	Summary  string // one line
	Python   string // the versions that it needs, such as ">=3.8"
	Requires []string
	Files    []File
}

// FileName is what the wheel must be called.
func (w *Wheel) FileName() string {
	return fmt.Sprintf("%s-%s-py3-none-%s.whl", w.Name, w.Version, w.Platform)
}

// Write writes the wheel. The same content gives the same bytes: files are stored as they are, without times.
func (w *Wheel) Write(to io.Writer) error {
	z := &writer{zip: zip.NewWriter(to)}
	for _, f := range w.Files {
		if err := z.copy(f); err != nil {
			return err
		}
	}
	info := fmt.Sprintf("%s-%s.dist-info/", w.Name, w.Version)
	metadata := fmt.Sprintf("Metadata-Version: 2.1\nName: %s\nVersion: %s\nSummary: %s\nRequires-Python: %s\n", w.Name, w.Version,
		w.Summary, w.Python)
	for _, r := range w.Requires {
		metadata += "Requires-Dist: " + r + "\n"
	}
	tag := fmt.Sprintf("Wheel-Version: 1.0\nGenerator: rammerc\nRoot-Is-Purelib: false\nTag: py3-none-%s\n", w.Platform)
	for _, f := range []struct{ name, text string }{{"METADATA", metadata}, {"WHEEL", tag}} {
		if err := z.add(info+f.name, strings.NewReader(f.text)); err != nil {
			return err
		}
	}
	record := z.record.String() + info + "RECORD,,\n"
	if err := z.add(info+"RECORD", strings.NewReader(record)); err != nil {
		return err
	}
	return z.zip.Close()
}

// writer adds files to an archive, and keeps the lines of RECORD.
type writer struct {
	zip    *zip.Writer
	record strings.Builder
}

func (z *writer) copy(f File) error {
	in, err := os.Open(f.Source)
	if err != nil {
		return err
	}
	defer in.Close()
	return z.add(f.Path, in)
}

func (z *writer) add(path string, content io.Reader) error {
	h := &zip.FileHeader{Name: path, Method: zip.Store}
	h.SetMode(0o644)
	if strings.HasSuffix(path, ".so") {
		h.SetMode(0o755)
	}
	out, err := z.zip.CreateHeader(h)
	if err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(out, io.TeeReader(content, sum))
	if err != nil {
		return err
	}
	fmt.Fprintf(&z.record, "%s,sha256=%s,%d\n", path, digest(sum), n)
	return nil
}

// digest is a hash as RECORD has it.
func digest(h hash.Hash) string { return base64.RawURLEncoding.EncodeToString(h.Sum(nil)) }
