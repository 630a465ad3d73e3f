package onnx

import (
	"crypto/sha1" // the checksum that the ONNX specification names
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rammerc/rammerc/internal/limits"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// external reads tensors from the files beside a model. Every file is opened through an os.Root on the model's folder,
// so neither "..", absolute names nor symbolic links lead out of it.
type external struct {
	dir     string // the model's folder, "" when there is none
	root    *os.Root
	rootErr error
	files   map[string]*dataFile // by location
	cache   map[extKey]any       // elements that have been read
	taken   int64                // their bytes
}

// dataFile is an open file of external data, or the reason why it could not be opened.
type dataFile struct {
	f    *os.File
	size int64
	read int64  // bytes that tensors have taken so far
	sum  string // SHA-1 in hexadecimal, "" until it is needed
	err  error
}

// extKey identifies a range of a file and its element type. Tensors with the same key share their elements.
type extKey struct {
	location string
	offset   int64
	dtype    ir.DType
	n        int64
}

// maxOverlap bounds the sum of the tensors that are read from one file, in multiples of its size. Equal ranges are read
// once and count once, but different ranges that overlap would let a small file ask for any amount of memory. No
// exporter writes many of those.
const maxOverlap = 4

// unreadable is the error of a file that cannot be opened. All tensors in it have the same one, which is reported once.
type unreadable struct {
	location string
	err      error
}

func (u *unreadable) Error() string { return u.err.Error() }

func (u *unreadable) Unwrap() error { return u.err }

func newExternal(dir string) *external {
	return &external{dir: dir, files: map[string]*dataFile{}, cache: map[extKey]any{}}
}

func (e *external) close() {
	for _, f := range e.files {
		if f.f != nil {
			f.f.Close()
		}
	}
	if e.root != nil {
		e.root.Close()
	}
}

// extEntry is the field external_data of a TensorProto: where the tensor's bytes are.
type extEntry struct {
	location string
	offset   int64
	length   int64 // -1: not given
	checksum string
}

// parseExternal reads the pairs of keys and values of external_data. Other keys are ignored.
func parseExternal(kv []*onnxpb.StringStringEntryProto) (extEntry, error) {
	e := extEntry{length: -1}
	for _, p := range kv {
		var err error
		switch v := p.GetValue(); p.GetKey() {
		case "location":
			e.location = v
		case "offset":
			e.offset, err = parseExtent("offset", v)
		case "length":
			e.length, err = parseExtent("length", v)
		case "checksum":
			e.checksum = strings.ToLower(v)
		}
		if err != nil {
			return e, err
		}
	}
	if e.location == "" {
		return e, errors.New("external data without a location")
	}
	return e, nil
}

func parseExtent(key, v string) (int64, error) {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("external data: %s %q is not a byte count", key, v)
	}
	return n, nil
}

// read returns the n elements of type d at the place that kv names. They are a slice as in ir.Tensor.Data.
func (e *external) read(kv []*onnxpb.StringStringEntryProto, d ir.DType, n int64) (any, error) {
	x, err := parseExternal(kv)
	if err != nil {
		return nil, err
	}
	want := rawBytes(d, n)
	if x.length >= 0 && x.length != want {
		return nil, fmt.Errorf("external data %q: length is %d bytes, the tensor takes %d", x.location, x.length, want)
	}
	f := e.open(x.location)
	if f.err != nil {
		return nil, &unreadable{x.location, f.err}
	}
	if x.offset > f.size || want > f.size-x.offset {
		return nil, fmt.Errorf("external data %q is too short: bytes %d to %d are wanted, the file has %d",
			x.location, x.offset, x.offset+want, f.size)
	}
	if err := f.verify(x); err != nil {
		return nil, err
	}
	key := extKey{x.location, x.offset, d, n}
	if data, ok := e.cache[key]; ok {
		return data, nil
	}
	if err := limits.CheckMemory("external data", e.taken+want); err != nil {
		return nil, fmt.Errorf("external data %q: %w", x.location, err)
	}
	e.taken += want
	if f.read += want; f.read > maxOverlap*f.size {
		return nil, fmt.Errorf("external data %q: the tensors overlap so much that they are more than %d times the file",
			x.location, maxOverlap)
	}
	data, err := f.elems(x.offset, d, n)
	if err != nil {
		return nil, fmt.Errorf("external data %q: %w", x.location, bareError(err))
	}
	e.cache[key] = data
	return data, nil
}

// elems reads n elements directly into the slice that the tensor keeps, without a second copy in memory.
func (f *dataFile) elems(offset int64, d ir.DType, n int64) (any, error) {
	src := io.NewSectionReader(f.f, offset, rawBytes(d, n))
	if d == ir.Bool || d.Bits() < 8 {
		raw := make([]byte, rawBytes(d, n))
		if _, err := io.ReadFull(src, raw); err != nil {
			return nil, err
		}
		return fromRaw(d, raw, n), nil
	}
	data, view := newRaw(d, n)
	if _, err := io.ReadFull(src, view); err != nil && len(view) > 0 {
		return nil, err
	}
	settle(view, d.Size())
	return data, nil
}

// open returns the file at location. It tries to open each file only once.
func (e *external) open(location string) *dataFile {
	if f, ok := e.files[location]; ok {
		return f
	}
	f := &dataFile{}
	e.files[location] = f
	if f.f, f.err = e.openFile(location); f.err != nil {
		return f
	}
	info, err := f.f.Stat()
	if err != nil {
		f.err = fmt.Errorf("external data %q: %w", location, bareError(err))
		return f
	}
	f.size = info.Size()
	return f
}

// openFile opens a regular file inside the model's folder. The error says why it cannot.
func (e *external) openFile(location string) (*os.File, error) {
	if e.dir == "" {
		return nil, fmt.Errorf("external data %q: the model was not read from a folder", location)
	}
	if !filepath.IsLocal(filepath.FromSlash(location)) {
		return nil, fmt.Errorf("external data %q leaves the model's folder", location)
	}
	if e.root == nil && e.rootErr == nil {
		e.root, e.rootErr = os.OpenRoot(e.dir)
	}
	if e.rootErr != nil {
		return nil, fmt.Errorf("external data %q: the model's folder: %w", location, bareError(e.rootErr))
	}
	name := filepath.Clean(filepath.FromSlash(location))
	info, err := e.root.Stat(name) // before Open, because opening a named pipe waits for its writer
	if err != nil {
		return nil, e.explain(location, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("external data %q is not a regular file", location)
	}
	f, err := e.root.Open(name)
	if err != nil {
		return nil, e.explain(location, err)
	}
	return f, nil
}

// explain turns an error of os.Root into one that the user understands.
func (e *external) explain(location string, err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("external data %q: there is no such file beside the model", location)
	}
	if strings.Contains(err.Error(), "escapes") {
		return fmt.Errorf("external data %q leaves the model's folder by a symbolic link", location)
	}
	return fmt.Errorf("external data %q: %w", location, bareError(err))
}

// verify compares the file's SHA-1 with the checksum of x, if it has one.
func (f *dataFile) verify(x extEntry) error {
	if x.checksum == "" {
		return nil
	}
	if f.sum == "" {
		h := sha1.New()
		if _, err := io.Copy(h, io.NewSectionReader(f.f, 0, f.size)); err != nil {
			return fmt.Errorf("external data %q: %w", x.location, bareError(err))
		}
		f.sum = hex.EncodeToString(h.Sum(nil))
	}
	if f.sum != x.checksum {
		return fmt.Errorf("external data %q: the file's SHA-1 is %s, the model says %s", x.location, f.sum, x.checksum)
	}
	return nil
}
