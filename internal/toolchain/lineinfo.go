package toolchain

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// Span is a piece of machine code that comes from one place of the source. Frames leads from that place out through the
// calls that were inlined.
type Span struct {
	Section string // of the code, ".text.NAME"
	Bytes   int64
	Frames  []Frame // innermost first
	Routine bool    // the code is nvcc's own, for rare cases of divisions and roots; there are no Frames
}

// Frame is a function of the main source file that was inlined, and the line in it. Code that the compiler found in two
// places and kept once has the frames of one of them, or a mixture.
type Frame struct {
	Function string // as the linker sees it; empty for the kernel itself
	Line     int
}

// errLines is the error for a line table that cannot be read.
var errLines = errors.New("the line table is damaged")

// readSpans reads the line table of a cubin that nvcc made with LineInfo. Its form is that of DWARF 2 with two further
// opcodes of NVIDIA, which say that the code of a row was inlined at the place of an earlier row. Code without a place
// is not in the result.
func readSpans(cubin string) ([]Span, error) {
	f, err := elf.Open(cubin)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := f.Section(".debug_line")
	if s == nil {
		return nil, fmt.Errorf("%s has no line table", cubin)
	}
	data, err := s.Data()
	if err != nil {
		return nil, err
	}
	var names []byte
	if s := f.Section(".debug_str"); s != nil {
		if names, err = s.Data(); err != nil {
			return nil, err
		}
	}
	symbols, err := f.Symbols()
	if err != nil {
		return nil, err
	}
	places, err := addressSections(f, symbols)
	if err != nil {
		return nil, err
	}
	return spansOf(data, names, places, routines(f, symbols))
}

// routine is a function that nvcc itself puts behind the code of a kernel. The line table has no rows for it.
type routine struct {
	section  string
	from, to uint64
}

func routines(f *elf.File, symbols []elf.Symbol) []routine {
	var out []routine
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Value > 0 && int(s.Section) < len(f.Sections) {
			out = append(out, routine{f.Sections[s.Section].Name, s.Value, s.Value + s.Size})
		}
	}
	return out
}

// spansOf reads a line table. names holds the names of functions. places maps the offset at which the table holds an
// address to the section that the address is in.
func spansOf(data, names []byte, places map[int]string, own []routine) (spans []Span, err error) {
	defer func() { // a damaged table makes the reader run over its end
		if r := recover(); r != nil {
			spans, err = nil, errLines
		}
	}()
	for at := 0; at < len(data); {
		u := lineUnit{data: data, names: names, pos: at, sections: places, own: own}
		more, err := u.read()
		if err != nil {
			return nil, err
		}
		spans = append(spans, more...)
		at = u.end
	}
	return spans, nil
}

// addressSections reads the table's relocations. It maps the offset at which the line table holds an address to the
// section that the address is in.
func addressSections(f *elf.File, symbols []elf.Symbol) (map[int]string, error) {
	out := map[int]string{}
	s := f.Section(".rela.debug_line")
	if s == nil {
		return out, nil
	}
	data, err := s.Data()
	if err != nil {
		return nil, err
	}
	for ; len(data) >= 24; data = data[24:] { // Elf64_Rela
		at, sym := binary.LittleEndian.Uint64(data), int(binary.LittleEndian.Uint32(data[12:]))
		if sym < 1 || sym > len(symbols) {
			return nil, errLines
		}
		if n := int(symbols[sym-1].Section); n < len(f.Sections) {
			out[int(at)] = f.Sections[n].Name
		}
	}
	return out, nil
}

// lineUnit is the state of reading one unit of the table.
type lineUnit struct {
	data     []byte
	names    []byte
	pos, end int
	sections map[int]string
	own      []routine

	lineBase          int8
	lineRange, opBase int
	minLength         uint64
	operands          []byte // of the standard opcodes
	main              int    // number of the main source file
	rows              []lineRow
	first             int // row of the sequence
	address           uint64
	file, line        int
	inlinedAt         int // row of the sequence, from 1; 0 for none
	function          int // offset in names
	section           string
	spans             []Span
}

// lineRow is a row of the table: a place in the source, and the code that begins there.
type lineRow struct {
	address    uint64
	file, line int
	inlinedAt  int
	function   int
}

// Opcodes of DWARF 2 (6.2.5) and NVIDIA's extension.
const (
	opCopy, opAdvancePC, opAdvanceLine, opSetFile = 1, 2, 3, 4
	opConstAddPC, opFixedAdvancePC                = 8, 9
	extEndSequence, extSetAddress                 = 1, 2
	extInlinedCall                                = 0x90
)

func (u *lineUnit) read() ([]Span, error) {
	length := int(u.u32())
	u.end = u.pos + length
	if version := u.u16(); version != 2 {
		return nil, fmt.Errorf("the line table has version %d, want 2", version)
	}
	header := int(u.u32())
	program := u.pos + header
	if length < 1 || u.end > len(u.data) || program > u.end {
		return nil, errLines
	}
	u.minLength = uint64(u.u8())
	u.u8() // is_stmt
	u.lineBase = int8(u.u8())
	u.lineRange, u.opBase = int(u.u8()), int(u.u8())
	if u.lineRange == 0 || u.opBase == 0 {
		return nil, errLines
	}
	u.operands = u.data[u.pos : u.pos+u.opBase-1]
	u.pos += u.opBase - 1
	u.files()
	u.pos = program
	u.reset()
	for u.pos < u.end {
		u.step()
	}
	return u.spans, nil
}

// files skips the folders and files that the header lists, and notes the number of the main source file, the .cu.
func (u *lineUnit) files() {
	for u.text() != "" {
	}
	for n := 1; ; n++ {
		name := u.text()
		if name == "" {
			return
		}
		if u.main == 0 && strings.HasSuffix(name, ".cu") {
			u.main = n
		}
		for range 3 { // folder, time, length
			u.uleb()
		}
	}
}

func (u *lineUnit) text() string {
	n := bytes.IndexByte(u.data[u.pos:], 0)
	s := string(u.data[u.pos : u.pos+n])
	u.pos += n + 1
	return s
}

func (u *lineUnit) reset() {
	u.address, u.file, u.line, u.inlinedAt, u.function = 0, 1, 1, 0, 0
	u.section = ""
	u.first = len(u.rows)
}

func (u *lineUnit) step() {
	op := int(u.u8())
	switch {
	case op >= u.opBase:
		op -= u.opBase
		u.address += uint64(op/u.lineRange) * u.minLength
		u.line += int(u.lineBase) + op%u.lineRange
		u.row()
	case op == 0:
		u.extended()
	case op == opCopy:
		u.row()
	case op == opAdvancePC:
		u.address += u.uleb() * u.minLength
	case op == opAdvanceLine:
		u.line += int(u.sleb())
	case op == opSetFile:
		u.file = int(u.uleb())
	case op == opConstAddPC:
		u.address += uint64((255-u.opBase)/u.lineRange) * u.minLength
	case op == opFixedAdvancePC:
		u.address += uint64(u.u16())
	default:
		for range u.operands[op-1] {
			u.uleb()
		}
	}
}

func (u *lineUnit) extended() {
	n := int(u.uleb())
	next := u.pos + n
	switch op := u.u8(); op {
	case extSetAddress:
		u.section = u.sections[u.pos]
		u.address = binary.LittleEndian.Uint64(u.data[u.pos:])
	case extInlinedCall:
		u.inlinedAt = int(u.uleb())
		u.function = int(u.uleb())
	case extEndSequence:
		u.sequence()
		u.reset()
	}
	u.pos = next
}

func (u *lineUnit) row() {
	u.rows = append(u.rows, lineRow{u.address, u.file, u.line, u.inlinedAt, u.function})
}

// sequence turns the rows of the sequence that has just ended into spans.
func (u *lineUnit) sequence() {
	for i := u.first; i < len(u.rows); i++ {
		from, to := u.rows[i].address, u.address
		if i+1 < len(u.rows) {
			to = u.rows[i+1].address
		}
		if to <= from {
			continue
		}
		bytes := int64(to - from)
		for _, r := range u.own {
			if lo, hi := max(from, r.from), min(to, r.to); r.section == u.section && lo < hi {
				u.spans = append(u.spans, Span{Section: u.section, Bytes: int64(hi - lo), Routine: true})
				bytes -= int64(hi - lo)
			}
		}
		if bytes > 0 {
			u.spans = append(u.spans, Span{Section: u.section, Bytes: bytes, Frames: u.frames(i)})
		}
	}
}

// frames are the frame of a row and those of the calls through which it was inlined, from the inside out. Each kernel
// is a sequence, and rows are counted from its beginning.
func (u *lineUnit) frames(at int) []Frame {
	var out []Frame
	for at >= u.first && at < len(u.rows) {
		r := u.rows[at]
		if r.file == u.main {
			f := Frame{Line: r.line}
			if r.inlinedAt > 0 {
				f.Function = u.name(r.function)
			}
			out = append(out, f)
		}
		call := u.first + r.inlinedAt - 1
		if call >= at { // a call comes before what is inlined there
			break
		}
		at = call
	}
	return out
}

func (u *lineUnit) name(at int) string {
	if at < 0 || at >= len(u.names) {
		return ""
	}
	name, _, _ := bytes.Cut(u.names[at:], []byte{0})
	return string(name)
}

func (u *lineUnit) u8() byte {
	b := u.data[u.pos]
	u.pos++
	return b
}

func (u *lineUnit) u16() uint16 {
	u.pos += 2
	return binary.LittleEndian.Uint16(u.data[u.pos-2:])
}

func (u *lineUnit) u32() uint32 {
	u.pos += 4
	return binary.LittleEndian.Uint32(u.data[u.pos-4:])
}

func (u *lineUnit) uleb() uint64 {
	v, n := binary.Uvarint(u.data[u.pos:])
	if n <= 0 {
		panic(errLines)
	}
	u.pos += n
	return v
}

func (u *lineUnit) sleb() int64 {
	r := bytes.NewReader(u.data[u.pos:])
	var v int64
	for shift := uint(0); ; shift += 7 {
		b, err := r.ReadByte()
		if err != nil || shift > 63 {
			panic(errLines)
		}
		u.pos++
		v |= int64(b&0x7f) << shift
		if b < 0x80 {
			if b&0x40 != 0 && shift+7 < 64 {
				v |= -1 << (shift + 7)
			}
			return v
		}
	}
}
