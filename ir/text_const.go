package ir

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"reflect"
	"strconv"
)

const (
	maxListed = 1024 // larger constants print as hex
	minSplat  = 5    // shorter ones print as a list even when all elements are equal
	// splatBudget bounds how many elements all splats of one text may stand for. Without it a short hostile text could
	// make the parser allocate any amount of memory. The printer keeps to it too, so that what it prints can be read.
	splatBudget = 1 << 22
)

// tensor prints the type and elements of t: as a list {…}, as splat(e) when all elements are e, as hex"…" (the bytes,
// little endian) when there are many, or as elided("hash") when they are left out.
func (p *printer) tensor(t *Tensor) {
	if err := t.check(); err != nil {
		p.fail("%v", err)
		return
	}
	p.str(typeText(t.DType, Dims(t.Dims...)) + " ")
	n := t.Len()
	switch {
	case n >= minSplat && n <= p.splats && t.DType != String && t.uniform():
		p.splats -= n
		p.str("splat(" + elemText(t, 0) + ")")
	case p.opts.ElideAbove > 0 && n > p.opts.ElideAbove && t.DType != String:
		p.elide(t)
	case n > maxListed && t.DType != String:
		p.str(`hex"`)
		_, _ = hex.NewEncoder(p.w).Write(t.LittleEndian())
		p.byte('"')
	default:
		p.byte('{')
		for i := range n {
			p.comma(int(i))
			p.str(elemText(t, int(i)))
		}
		p.byte('}')
	}
}

// elide prints the hash of t in place of its elements.
func (p *printer) elide(t *Tensor) {
	hash := t.Hash()
	if p.opts.Elided != nil {
		if err := p.opts.Elided(hash, t); err != nil {
			p.fail("%v", err)
		}
	}
	p.str("elided(" + strconv.Quote(hash) + ")")
}

// check returns an error for a tensor whose dims, element type and data do not fit together.
func (t *Tensor) check() error {
	if t == nil {
		return fmt.Errorf("the tensor is nil")
	}
	n, ok := countDims(t.Dims)
	if !ok {
		return fmt.Errorf("tensor dims %v are negative or too large", t.Dims)
	}
	want, ok := goElem(t.DType)
	if !ok {
		return fmt.Errorf("the tensor has element type %v", t.DType)
	}
	data := reflect.ValueOf(t.Data)
	if !data.IsValid() || data.Type() != want {
		return fmt.Errorf("a %v tensor holds %T, not %v", t.DType, t.Data, want)
	}
	if int64(data.Len()) != n {
		return fmt.Errorf("a %v%v tensor holds %d elements, not %d", t.DType, Dims(t.Dims...), data.Len(), n)
	}
	return nil
}

// goElem returns the slice type that holds elements of d.
func goElem(d DType) (reflect.Type, bool) {
	if d == Invalid || int(d) >= len(dtypeNames) {
		return nil, false
	}
	return reflect.TypeOf(NewTensor(d, 0).Data), true
}

// countDims multiplies dims; ok is false for negative extents and products beyond 2^48.
func countDims(dims []int64) (n int64, ok bool) {
	n = 1
	for _, d := range dims {
		if d < 0 {
			return 0, false
		}
		if n = satMul(n, d); n > 1<<48 {
			return 0, false
		}
	}
	return n, true
}

// LittleEndian returns t's elements as bytes, little endian, bool as 0 and 1. It panics for String.
func (t *Tensor) LittleEndian() []byte {
	var b bytes.Buffer
	b.Grow(int(t.Bytes()))
	if err := binary.Write(&b, binary.LittleEndian, t.Data); err != nil {
		panic(fmt.Sprintf("BUG: %v elements as bytes: %v", t.DType, err))
	}
	return b.Bytes()
}

// Hash is a text that identifies t's type, dims and elements: the first half of their SHA-256.
func (t *Tensor) Hash() string {
	h := sha256.New()
	fmt.Fprintf(h, "%v%v;", t.DType, t.Dims)
	if t.DType == String {
		for _, s := range Slice[string](t) {
			fmt.Fprintf(h, "%q,", s)
		}
	} else {
		h.Write(t.LittleEndian())
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)[:16])
}

// uniform reports whether all elements have the same bits.
func (t *Tensor) uniform() bool {
	switch data := t.Data.(type) {
	case []float32:
		return allEqual(data, func(f float32) uint32 { return math.Float32bits(f) })
	case []float64:
		return allEqual(data, func(f float64) uint64 { return math.Float64bits(f) })
	case []int8:
		return allEqual(data, same)
	case []int16:
		return allEqual(data, same)
	case []int32:
		return allEqual(data, same)
	case []int64:
		return allEqual(data, same)
	case []uint8:
		return allEqual(data, same)
	case []uint16:
		return allEqual(data, same)
	case []uint32:
		return allEqual(data, same)
	case []uint64:
		return allEqual(data, same)
	case []bool:
		return allEqual(data, same)
	}
	return false
}

func same[T any](v T) T { return v }

func allEqual[T any, K comparable](data []T, key func(T) K) bool {
	for _, v := range data {
		if key(v) != key(data[0]) {
			return false
		}
	}
	return true
}

// elemText prints element i so that it reads back with the same bits (NaN payloads aside).
func elemText(t *Tensor, i int) string {
	switch data := t.Data.(type) {
	case []float32:
		return floatSpecial(strconv.FormatFloat(float64(data[i]), 'g', -1, 32))
	case []float64:
		return floatSpecial(strconv.FormatFloat(data[i], 'g', -1, 64))
	case []uint16:
		if t.DType.IsFloat() {
			return fmt.Sprintf("0x%04x", data[i])
		}
		return strconv.Itoa(int(data[i]))
	case []string:
		return strconv.Quote(data[i])
	}
	return fmt.Sprint(reflect.ValueOf(t.Data).Index(i).Interface())
}
