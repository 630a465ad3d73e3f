package codegen

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/rammerc/rammerc/codegen/abi"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
)

const lineWidth = 110

// comment makes text from a model safe inside a // comment: one line, no splice with the next one.
func comment(text string) string {
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029' || r == '\u0085' {
			return ' '
		}
		return r
	}, text)
	clean = strings.ReplaceAll(clean, "??", "? ?") // trigraphs can spell a backslash
	return strings.TrimRight(strings.ToValidUTF8(clean, "?"), "\\ ")
}

// quote is text as a C string literal, in ASCII.
func quote(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c >= 0x7f || c == '?': // '?' could start a trigraph
			fmt.Fprintf(&b, "\\%03o", c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// nodeNames lists ONNX nodes for a comment or a report; long lists are cut.
func nodeNames(origins []ir.Origin) string {
	const most = 8
	var parts []string
	for i, o := range origins {
		if i == most {
			parts = append(parts, fmt.Sprintf("and %d more", len(origins)-most))
			break
		}
		parts = append(parts, o.Name)
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// block spells fields as a designated initialiser that starts after indent columns; where a line would
// grow too long it goes on below, indented by one more.
func (l *layout) block(fields []rkernels.Field, indent int) string {
	parts := make([]string, len(fields))
	for i, f := range fields {
		parts[i] = "." + f.Name + " = " + l.value(f.Value)
		if nested, ok := f.Value.(rkernels.Struct); ok && indent+2+len(parts[i]) > lineWidth {
			head := "." + f.Name + " = "
			parts[i] = head + l.block(nested, indent+1+len(head))
		}
	}
	return "{" + wrap(parts, indent+1) + "}"
}

func (l *layout) value(v rkernels.ArgValue) string {
	switch v := v.(type) {
	case rkernels.Int:
		return intLiteral(int64(v))
	case rkernels.Float:
		return floatLiteral(float32(v))
	case rkernels.Ref:
		return "{" + l.ref(v) + "}"
	case rkernels.List:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = l.value(e)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case rkernels.Struct:
		parts := make([]string, len(v))
		for i, f := range v {
			parts[i] = "." + f.Name + " = " + l.value(f.Value)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	panic(fmt.Sprintf("BUG: argument value %T", v))
}

// ref resolves a reference: where the buffer's bytes are when the program runs.
func (l *layout) ref(r rkernels.Ref) string {
	b := l.plan.Graph.Buffers[r.Buffer]
	switch b.Kind {
	case roperator.Const:
		return fmt.Sprintf("RT_WEIGHTS(%d)", l.constAt[b.ID]+r.Offset)
	case roperator.Input:
		return fmt.Sprintf("RT_REF(%s, %d)", l.inputs[b.Index].space, r.Offset)
	case roperator.Output:
		return fmt.Sprintf("RT_REF(%s, %d)", l.outputs[b.Index].space, r.Offset)
	}
	at := l.plan.Arena[b.ID]
	if at < 0 {
		if b.Elems > 0 {
			panic(fmt.Sprintf("BUG: buffer %s has no place in the arena", b.Name))
		}
		at = 0
	}
	return fmt.Sprintf("RT_ARENA(%d)", at+r.Offset)
}

func intLiteral(n int64) string {
	switch {
	case n == math.MinInt64:
		return "INT64_MIN"
	case n == math.MinInt32:
		return "INT32_MIN"
	}
	return strconv.FormatInt(n, 10)
}

// floatLiteral is exact: nine digits tell all float32 apart.
func floatLiteral(f float32) string {
	x := float64(f)
	switch {
	case math.IsNaN(x):
		return `__builtin_nanf("")`
	case math.IsInf(x, 1):
		return "__builtin_inff()"
	case math.IsInf(x, -1):
		return "-__builtin_inff()"
	}
	s := strconv.FormatFloat(x, 'g', 9, 32)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s + "f"
}

// wrap joins parts with commas, breaking lines that would grow too long; the first line starts after
// indent columns, the others are indented by indent. Parts may have lines of their own.
func wrap(parts []string, indent int) string {
	var b strings.Builder
	col := indent
	for i, p := range parts {
		if i < len(parts)-1 {
			p += ","
		}
		if i > 0 {
			first, _, _ := strings.Cut(p, "\n")
			if col+1+len(first) > lineWidth {
				b.WriteString("\n" + strings.Repeat(" ", indent))
				col = indent
			} else {
				b.WriteByte(' ')
				col++
			}
		}
		b.WriteString(p)
		if at := strings.LastIndexByte(p, '\n'); at >= 0 {
			col = len(p) - at - 1
		} else {
			col += len(p)
		}
	}
	return b.String()
}

// onnxType is the ONNX TensorProto.DataType of d.
func onnxType(d ir.DType) int {
	for _, row := range onnxTypes {
		if row.dtype == d {
			return row.code
		}
	}
	panic("BUG: no ONNX type for " + d.String())
}

var onnxTypes = []struct {
	dtype ir.DType
	code  int
	numpy string
}{
	{ir.Float32, 1, "float32"}, {ir.Uint8, 2, "uint8"}, {ir.Int8, 3, "int8"}, {ir.Uint16, 4, "uint16"},
	{ir.Int16, 5, "int16"}, {ir.Int32, 6, "int32"}, {ir.Int64, 7, "int64"}, {ir.Bool, 9, "bool"},
	{ir.Float16, 10, "float16"}, {ir.Float64, 11, "float64"}, {ir.Uint32, 12, "uint32"},
	{ir.Uint64, 13, "uint64"}, {ir.BFloat16, 16, "uint16"},
}

// header is the library's C header: the interface that all libraries have, and this one's extents.
func (l *layout) header() string {
	var b strings.Builder
	fmt.Fprintf(&b, "/* SPDX-License-Identifier: Apache-2.0\n * Generated by rammerc %s from %s.\n *\n",
		comment(l.opt.Version), strings.ReplaceAll(comment(l.opt.Model), "*/", "* /"))
	for _, side := range []struct {
		what  string
		ports []port
	}{{"in", l.inputs}, {"out", l.outputs}} {
		for i, p := range side.ports {
			fmt.Fprintf(&b, " * %s[%d]  %s %s%v\n", side.what, i, strings.ReplaceAll(comment(p.Name), "*/", "* /"), p.DType, p.Dims)
		}
	}
	b.WriteString(" */\n" + abi.Header(l.opt.Name))
	return b.String()
}
