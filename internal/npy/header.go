package npy

import (
	"encoding/binary"
	"errors"
	"fmt"
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

// parseHeader splits a file into its header and the elements.
func parseHeader(data []byte) (arrayHeader, []byte, error) {
	if len(data) < 10 || string(data[:6]) != magic {
		return arrayHeader{}, nil, errors.New("not a NumPy array: the file does not start like a .npy file")
	}
	if data[6] < 1 || data[6] > 3 {
		return arrayHeader{}, nil, fmt.Errorf("version %d.%d of the .npy format is not known", data[6], data[7])
	}
	start, length := 10, int(binary.LittleEndian.Uint16(data[8:]))
	if data[6] >= 2 {
		if len(data) < 12 {
			return arrayHeader{}, nil, errors.New("not a NumPy array: the header is truncated")
		}
		start, length = 12, int(binary.LittleEndian.Uint32(data[8:]))
	}
	if length > maxHeader || length > len(data)-start {
		return arrayHeader{}, nil, errors.New("not a NumPy array: the header is truncated or too long")
	}
	h, err := parseDict(string(data[start : start+length]))
	return h, data[start+length:], err
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
