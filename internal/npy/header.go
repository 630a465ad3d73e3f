package npy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

const magic = "\x93NUMPY"

// maxHeader bounds the length of a header in bytes. NumPy itself refuses more than 10,000 characters.
const maxHeader = 1 << 16

type arrayHeader struct {
	kind    kind
	order   binary.ByteOrder
	fortran bool
	shape   []int64
}

// readHeader reads what stands before the elements of an array of size bytes, and returns how many bytes that is.
func readHeader(r io.Reader, size uint64) (h arrayHeader, length uint64, err error) {
	start := make([]byte, 12)
	if _, err := io.ReadFull(r, start[:10]); err != nil || string(start[:6]) != magic {
		return h, 0, errors.New("not a NumPy array: the file does not start like a .npy file")
	}
	if start[6] < 1 || start[6] > 3 {
		return h, 0, fmt.Errorf("version %d.%d of the .npy format is not known", start[6], start[7])
	}
	at, n := uint64(10), uint64(binary.LittleEndian.Uint16(start[8:]))
	if start[6] >= 2 {
		if _, err := io.ReadFull(r, start[10:]); err != nil {
			return h, 0, errors.New("not a NumPy array: the header is truncated")
		}
		at, n = 12, uint64(binary.LittleEndian.Uint32(start[8:]))
	}
	if n > maxHeader || at+n > size {
		return h, 0, errors.New("not a NumPy array: the header is truncated or too long")
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return h, 0, errors.New("not a NumPy array: the header is truncated or too long")
	}
	h, err = parseDict(string(text))
	return h, at + n, err
}

// parseDict reads the Python literal in the header that describes the array, for example
// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
func parseDict(text string) (arrayHeader, error) {
	p := &literal{rest: text}
	var h arrayHeader
	seen := map[string]bool{}
	p.expect("{")
	for p.err == nil && !p.accept("}") {
		key := p.str()
		p.expect(":")
		seen[key] = true
		switch key {
		case "descr":
			h.kind, h.order = p.descr()
		case "fortran_order":
			h.fortran = p.boolean()
		case "shape":
			h.shape = p.tuple()
		default:
			p.fail("unknown key " + strconv.Quote(key))
		}
		if !p.accept(",") {
			p.expect("}")
			break
		}
	}
	if p.err == nil && (len(seen) != 3 || strings.TrimSpace(p.rest) != "") {
		p.fail("descr, fortran_order and shape are wanted")
	}
	return h, p.err
}

// literal is a parser of Python literals. After the first error its methods return zero values.
type literal struct {
	rest string
	err  error
}

func (p *literal) fail(what string) {
	if p.err == nil {
		p.err = errors.New("not a NumPy array: bad header: " + what)
	}
}

func (p *literal) accept(s string) bool {
	p.rest = strings.TrimLeft(p.rest, " \t\r\n")
	rest, ok := strings.CutPrefix(p.rest, s)
	if ok && p.err == nil {
		p.rest = rest
		return true
	}
	return false
}

func (p *literal) expect(s string) {
	if !p.accept(s) {
		p.fail(strconv.Quote(s) + " is missing")
	}
}

func (p *literal) str() string {
	quote := "'"
	if !p.accept(quote) {
		quote = `"`
		p.expect(quote)
	}
	s, rest, ok := strings.Cut(p.rest, quote)
	if !ok {
		p.fail("a string is not closed")
		return ""
	}
	p.rest = rest
	return s
}

func (p *literal) boolean() bool {
	if p.accept("True") {
		return true
	}
	p.expect("False")
	return false
}

func (p *literal) tuple() []int64 {
	shape := []int64{}
	p.expect("(")
	for p.err == nil && !p.accept(")") {
		shape = append(shape, p.integer())
		if !p.accept(",") {
			p.expect(")")
			break
		}
	}
	return shape
}

func (p *literal) integer() int64 {
	p.accept("")
	n := len(p.rest) - len(strings.TrimLeft(p.rest, "0123456789"))
	v, err := strconv.ParseInt(p.rest[:n], 10, 64)
	if err != nil {
		p.fail("an extent is not a number")
		return 0
	}
	p.rest = strings.TrimPrefix(p.rest[n:], "L") // Python 2 wrote long integers so
	return v
}

// descr reads an element type such as "<f4", which is a byte order, a kind and a size in bytes.
func (p *literal) descr() (kind, binary.ByteOrder) {
	if p.accept("[") {
		p.fail("arrays of records are not supported")
		return kind{}, nil
	}
	s := p.str()
	if p.err != nil || s == "" {
		p.fail("the element type is missing")
		return kind{}, nil
	}
	var order binary.ByteOrder = binary.LittleEndian
	if s[0] == '>' {
		order = binary.BigEndian
	}
	code := strings.TrimLeft(s, "<>|=")
	for _, k := range kinds {
		if k.code == code {
			return k, order
		}
	}
	if k, ok := textKindOf(code); ok {
		return k, order
	}
	p.err = fmt.Errorf("elements of NumPy type %q are not supported", s)
	return kind{}, nil
}

// header encodes the magic number, the version and the description, and pads them to a multiple of 64 bytes.
func header(k kind, shape []int64) []byte {
	order := "<"
	if k.size == 1 {
		order = "|"
	}
	dims := make([]string, len(shape))
	for i, d := range shape {
		dims[i] = strconv.FormatInt(d, 10)
	}
	tuple := strings.Join(dims, ", ")
	if len(dims) == 1 {
		tuple += ","
	}
	text := fmt.Sprintf("{'descr': '%s%s', 'fortran_order': False, 'shape': (%s), }", order, k.code, tuple)
	total := (10 + len(text) + 1 + 63) / 64 * 64
	text += strings.Repeat(" ", total-10-len(text)-1) + "\n"
	out := append([]byte(magic), 1, 0)
	out = binary.LittleEndian.AppendUint16(out, uint16(len(text)))
	return append(out, text...)
}
