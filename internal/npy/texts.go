package npy

import (
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
)

// NumPy stores strings in as many code points as the longest one has, of 4 bytes each; shorter ones end in zeros.

const (
	textKind = "string"
	textHead = 16      // bytes of a string beside its text
	maxText  = 1 << 20 // code points of a string
	maxTexts = 1 << 40 // strings of an array
)

// textKindOf is the kind of strings of NumPy's code, such as U5.
func textKindOf(code string) (kind, bool) {
	digits, ok := strings.CutPrefix(code, "U")
	length, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || length < 0 || length > maxText {
		return kind{}, false
	}
	return kind{textKind, code, 4 * length, func(n int64) any { return make([]uint32, n*length) }}, true
}

// textsOf makes n strings of their code points, length for each.
func textsOf(points []uint32, n, length int64) []string {
	out := make([]string, n)
	for i := range out {
		text := points[int64(i)*length : int64(i+1)*length]
		for len(text) > 0 && text[len(text)-1] == 0 {
			text = text[:len(text)-1]
		}
		var b strings.Builder
		for _, p := range text {
			b.WriteRune(rune(min(p, unicode.MaxRune+1))) // what is no code point becomes U+FFFD
		}
		out[i] = b.String()
	}
	return out
}

// writeTexts encodes an array of strings.
func writeTexts(w io.Writer, texts []string, shape []int64) error {
	if n, err := count(shape); err != nil || n != int64(len(texts)) {
		return fmt.Errorf("%d strings do not fit the shape %v", len(texts), shape)
	}
	length := 1 // an array of empty strings has places for one code point
	for _, s := range texts {
		length = max(length, len([]rune(s)))
	}
	points := make([]uint32, len(texts)*length)
	for i, s := range texts {
		for k, r := range []rune(s) {
			points[i*length+k] = uint32(r)
		}
	}
	k, _ := textKindOf("U" + strconv.Itoa(length))
	if _, err := w.Write(header(k, shape)); err != nil {
		return err
	}
	return binary.Write(w, binary.LittleEndian, points)
}
