package ir

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// attr reads "name = value" into attrs.
func (p *parser) attr(attrs Attrs) {
	name := p.word("an attribute name")
	if _, twice := attrs[name]; twice {
		p.fail("the attribute %q is given twice", shorten(name))
	}
	p.expect("=")
	attrs[name] = p.attrValue()
}

// attrValue reads an attribute's value; its form shows the kind: 1 is an integer, 1.0 or 1f a number, [1, 2] integers.
func (p *parser) attrValue() Attr {
	switch {
	case p.is(tokString):
		return StringAttr(p.take(tokString, ""))
	case p.atFloat():
		return FloatAttr(p.floatAttr())
	case p.is(tokNumber):
		return IntAttr(p.intAttr())
	case p.at("["):
		return p.attrList()
	case p.atWord("graph"):
		return GraphAttr(p.graph(false))
	case p.atWord("ints"), p.atWord("floats"), p.atWord("strings"):
		return p.emptyList()
	case p.is(tokIdent):
		return TensorAttr(p.tensor())
	}
	p.unexpected("an attribute value")
	return Attr{}
}

// emptyList reads "ints[]", "floats[]" or "strings[]".
func (p *parser) emptyList() Attr {
	kinds := map[string]AttrKind{"ints": AttrInts, "floats": AttrFloats, "strings": AttrStrings}
	kind := kinds[p.tok.text]
	p.advance()
	p.expect("[")
	p.expect("]")
	return Attr{Kind: kind}
}

// attrList reads a list whose first element tells the kind.
func (p *parser) attrList() Attr {
	p.expect("[")
	a := Attr{}
	switch {
	case p.is(tokString):
		a.Kind = AttrStrings
		p.list("]", func() { a.Strs = append(a.Strs, p.take(tokString, "a string")) })
	case p.atFloat():
		a.Kind = AttrFloats
		p.list("]", func() { a.Floats = append(a.Floats, p.floatAttr()) })
	case p.is(tokNumber):
		a.Kind = AttrInts
		p.list("]", func() { a.Ints = append(a.Ints, p.intAttr()) })
	default:
		p.unexpected(`a list element (empty lists are ints[], floats[] or strings[])`)
	}
	return a
}

// atFloat reports a number that cannot be an integer: with point, exponent or suffix, inf or nan.
func (p *parser) atFloat() bool {
	if p.is(tokIdent) {
		return p.tok.text == "inf" || p.tok.text == "nan"
	}
	return p.is(tokNumber) && strings.ContainsAny(p.tok.text, ".efn")
}

func (p *parser) floatAttr() float64 {
	if !p.atFloat() {
		p.unexpected("a number with a decimal point")
	}
	text, bits := p.tok.text, 64
	if short, ok := strings.CutSuffix(text, "f"); ok && !strings.HasSuffix(text, "inf") {
		text, bits = short, 32
	}
	return p.float(text, bits)
}

// float parses text, the current token without its suffix, as a number of 32 or 64 bits.
func (p *parser) float(text string, bits int) float64 {
	f, err := strconv.ParseFloat(text, bits)
	if err != nil {
		p.fail("%q is not a number of %d bits", shorten(text), bits)
	}
	p.advance()
	return f
}

func (p *parser) intAttr() int64 {
	i, err := strconv.ParseInt(p.tok.text, 10, 64)
	if !p.is(tokNumber) || err != nil {
		p.unexpected("an integer of 64 bits")
	}
	p.advance()
	return i
}

// constant reads the part of a constant behind "const" and defines v as it.
func (p *parser) constant(g *Graph, v *Value, line int) {
	defer p.define(v, line)
	if !p.acceptWord("const") {
		p.fail("the value %%%s needs a type, or const", v.Name)
	}
	v.Const = p.tensor()
	v.DType, v.Shape = v.Const.DType, Dims(v.Const.Dims...)
	g.Consts = append(g.Consts, v)
}

// tensor reads a type with constant dims and the elements.
func (p *parser) tensor() *Tensor {
	d, shape := p.typ()
	dims, ok := shape.Consts()
	if !ok || d == Invalid {
		p.fail("a constant needs an element type and integer dims")
	}
	n, ok := countDims(dims)
	if !ok {
		p.fail("the dims %v of the constant are negative or too large", shape)
	}
	switch {
	case p.accept("{"):
		return p.listed(d, dims, n)
	case p.acceptWord("splat"):
		return p.splat(d, dims, n)
	case p.acceptWord("hex"):
		return p.hexTensor(d, dims)
	case p.atWord("elided"):
		return p.elided(d, dims)
	}
	p.unexpected(`the elements: {…}, splat(…) or hex"…"`)
	return nil
}

// elided reads elided("hash") and asks for the elements with that hash.
func (p *parser) elided(d DType, dims []int64) *Tensor {
	if p.opts.Elided == nil || d == String {
		p.fail("the elements of this constant were left out when the text was printed; print it without eliding")
	}
	p.advance()
	p.expect("(")
	hash := p.take(tokString, "the hash of the elements")
	raw, err := p.opts.Elided(hash)
	if err != nil {
		p.fail("the elements of this constant were left out when the text was printed, and %v", err)
	}
	t, err := TensorFromBytes(d, dims, raw)
	if err != nil {
		p.fail("the elements that were left out when the text was printed do not fit: %v", err)
	}
	if t.Hash() != hash {
		p.fail("the elements that were left out when the text was printed have been changed: their hash is %s",
			t.Hash())
	}
	p.expect(")")
	return t
}

// listed reads "{e, …}". Each element takes at least two bytes of the text. So a tensor with more elements than the
// rest of the text has bytes is refused before it is allocated.
func (p *parser) listed(d DType, dims []int64, n int64) *Tensor {
	if n > int64(len(p.lex.src)-p.lex.pos)+1 {
		p.fail("%d elements expected, more than the rest of the text can hold", n)
	}
	t := NewTensor(d, dims...)
	i := int64(0)
	p.list("}", func() {
		if i == n {
			p.fail("more than the %d elements that %v has", n, Dims(dims...))
		}
		p.element(t, int(i))
		i++
	})
	if i < n {
		p.fail("%d elements for %v, which has %d", i, Dims(dims...), n)
	}
	return t
}

// splat reads "(e)", the element that all n elements equal.
func (p *parser) splat(d DType, dims []int64, n int64) *Tensor {
	if n > p.splats {
		p.fail("the splats of a text may stand for at most %d elements in all", int64(splatBudget))
	}
	p.splats -= n
	p.expect("(")
	one := NewTensor(d, 1)
	p.element(one, 0)
	p.expect(")")
	t := NewTensor(d, dims...)
	fill(t, one)
	return t
}

// fill sets all elements of t to the only element of one.
func fill(t, one *Tensor) {
	switch data := t.Data.(type) {
	case []float32:
		fillSlice(data, one)
	case []float64:
		fillSlice(data, one)
	case []int8:
		fillSlice(data, one)
	case []int16:
		fillSlice(data, one)
	case []int32:
		fillSlice(data, one)
	case []int64:
		fillSlice(data, one)
	case []uint8:
		fillSlice(data, one)
	case []uint16:
		fillSlice(data, one)
	case []uint32:
		fillSlice(data, one)
	case []uint64:
		fillSlice(data, one)
	case []bool:
		fillSlice(data, one)
	case []string:
		fillSlice(data, one)
	}
}

func fillSlice[T Elem](data []T, one *Tensor) {
	v := Slice[T](one)[0]
	for i := range data {
		data[i] = v
	}
}

// hexTensor reads the bytes of all elements, little endian, as a string of hexadecimal digits.
func (p *parser) hexTensor(d DType, dims []int64) *Tensor {
	if d == String {
		p.fail("strings have no hex form")
	}
	if !p.is(tokString) {
		p.unexpected("the elements' bytes as hex digits in quotes")
	}
	raw, err := hex.DecodeString(p.tok.text)
	if err != nil {
		p.fail("bad hex digits: %v", err)
	}
	t, err := TensorFromBytes(d, dims, raw)
	if err != nil {
		p.fail("%v", err)
	}
	p.advance()
	return t
}

// TensorFromBytes makes a tensor from little-endian bytes, the inverse of LittleEndian. The bytes are copied.
func TensorFromBytes(d DType, dims []int64, raw []byte) (*Tensor, error) {
	n, ok := countDims(dims)
	if !ok || d.Size() == 0 || n*int64(d.Size()) != int64(len(raw)) {
		return nil, fmt.Errorf("%d bytes do not make a constant of type %v%v", len(raw), d, Dims(dims...))
	}
	t := NewTensor(d, dims...)
	if d == Bool {
		for i, b := range raw {
			Slice[bool](t)[i] = b != 0
		}
		return t, nil
	}
	if err := binary.Read(bytes.NewReader(raw), binary.LittleEndian, t.Data); err != nil {
		panic(fmt.Sprintf("BUG: %v elements from bytes: %v", d, err))
	}
	return t, nil
}

// element reads element i of t.
func (p *parser) element(t *Tensor, i int) {
	switch data := t.Data.(type) {
	case []float32:
		data[i] = float32(p.floatElem(32))
	case []float64:
		data[i] = p.floatElem(64)
	case []int8:
		data[i] = int8(p.intElem(8))
	case []int16:
		data[i] = int16(p.intElem(16))
	case []int32:
		data[i] = int32(p.intElem(32))
	case []int64:
		data[i] = p.intElem(64)
	case []uint8:
		data[i] = uint8(p.uintElem(8))
	case []uint16:
		data[i] = uint16(p.uintElem(16))
	case []uint32:
		data[i] = uint32(p.uintElem(32))
	case []uint64:
		data[i] = p.uintElem(64)
	case []bool:
		data[i] = p.boolElem()
	case []string:
		data[i] = p.take(tokString, "a string element")
	}
}

func (p *parser) floatElem(bits int) float64 {
	if p.is(tokIdent) && p.tok.text == "nan" {
		p.advance()
		return math.NaN()
	}
	if !p.is(tokNumber) && !p.atWord("inf") {
		p.unexpected("a number")
	}
	return p.float(p.tok.text, bits)
}

func (p *parser) intElem(bits int) int64 {
	i, err := strconv.ParseInt(p.tok.text, 10, bits)
	if !p.is(tokNumber) || err != nil {
		p.unexpected(fmt.Sprintf("an integer of %d bits", bits))
	}
	p.advance()
	return i
}

// uintElem reads an unsigned integer; the bits of 16-bit floats are written in hexadecimal.
func (p *parser) uintElem(bits int) uint64 {
	u, err := strconv.ParseUint(p.tok.text, 0, bits)
	if !p.is(tokNumber) || err != nil {
		p.unexpected(fmt.Sprintf("an unsigned integer of %d bits", bits))
	}
	p.advance()
	return u
}

func (p *parser) boolElem() bool {
	if p.acceptWord("true") {
		return true
	}
	if !p.acceptWord("false") {
		p.unexpected("true or false")
	}
	return false
}
