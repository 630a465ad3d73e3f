package golden

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/ir"
)

// elementTypes are the element types that operators compute with.
var elementTypes = []ir.DType{
	ir.Float32, ir.Float64, ir.Float16, ir.BFloat16, ir.Int8, ir.Int16, ir.Int32, ir.Int64,
	ir.Uint8, ir.Uint16, ir.Uint32, ir.Uint64, ir.Bool,
}

// special are elements for which operators have rules of their own, such as zeros, halves, infinities and NaN.
var special = []float64{0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, math.NaN(), math.Inf(1), -math.Inf(1), 3, -3, 100, -100}

// statement is the k-th statement of a body: an elementwise operator applied to as many of the operands %px, %py and
// %pz as it takes.
func statement(op *ir.Op, k int) string {
	args, attrs := []string{"%px", "%py", "%pz"}[:max(len(op.Inputs), 1)], ""
	switch op.Name {
	case "Where":
		args = []string{"%pc", "%px", "%py"}
	case "Clip":
		args = []string{"%px", "%lo", "%hi"}
	case "Min", "Max", "Sum", "Mean":
		args = []string{"%px", "%py", "%pz"}
	case "Div", "Mod":
		args = []string{"%px", "%pz"} // %pz has no zeros, by which it would divide
	case "BitShift":
		attrs = []string{` {direction = "LEFT"}`, ` {direction = "RIGHT"}`}[k%2]
	case "Gelu":
		attrs = []string{"", ` {approximate = "tanh"}`}[k%2]
	case "IsInf":
		attrs = fmt.Sprintf(" {detect_negative = %d}", k%2)
	}
	if op.Name == "Mod" && k%2 == 1 {
		attrs = " {fmod = 1}"
	}
	return fmt.Sprintf("%%%s%d = %s(%s)%s", strings.ToLower(op.Name), k, op.Name, strings.Join(args, ", "), attrs)
}

// TestElementwise computes every elementwise operator in every element type that it allows. Many operators are fused
// into one map with as many outputs, because each map costs the compiler time.
func TestElementwise(t *testing.T) {
	var cases []Case
	for _, d := range elementTypes {
		var lines, outs []string
		flush := func() {
			if len(lines) == 0 {
				return
			}
			cases = append(cases, elementwiseCase(d, lines, outs))
			lines, outs = nil, nil
		}
		for i := range ir.Ops {
			op := &ir.Ops[i]
			if op.Kind != ir.KindElementwise || strings.Contains(op.Name, "Cast") {
				continue
			}
			p := op.Inputs[len(op.Inputs)-1]
			if p.Types != nil && !slices.Contains(p.Types, d) {
				continue
			}
			variants := 1
			if slices.Contains([]string{"BitShift", "Gelu", "IsInf"}, op.Name) || op.Name == "Mod" {
				variants = 2
			}
			if op.Name == "Mod" && d.IsFloat() {
				lines, outs = append(lines, statement(op, 1)), append(outs, "%mod1")
				continue
			}
			for k := range variants {
				lines, outs = append(lines, statement(op, k)),
					append(outs, fmt.Sprintf("%%%s%d", strings.ToLower(op.Name), k))
			}
			if len(lines) >= 12 {
				flush()
			}
		}
		flush()
	}
	Check(t, cases)
}

// elementwiseCase is one Fused node of all statements. The last extent is odd in half of the cases, so that elements
// cannot be loaded and stored in packs.
func elementwiseCase(d ir.DType, lines, outs []string) Case {
	shape := "5,16"
	if len(lines)%2 == 1 {
		shape = "5,15"
	}
	in := fmt.Sprintf("%%x: %v[%s], %%y: %[1]v[%s], %%z: %[1]v[%s], %%c: bool[%[2]s]", d, shape, shape[2:], shape)
	body := fmt.Sprintf("%%px: %v[%s], %%py: %[1]v[%s], %%pz: %[1]v[%s], %%pc: bool[%[2]s]", d, shape, shape[2:], shape)
	text := strings.Join(lines, "\n")
	if strings.Contains(text, "Clip") {
		text = fmt.Sprintf("%%lo = const %v[] {1}\n%%hi = const %[1]v[] {3}\n", d) + text
		if d == ir.Float16 || d == ir.BFloat16 {
			text = strings.NewReplacer("{1}", "{0x3c00}", "{3}", "{0x4200}").Replace(text)
		}
	}
	results := make([]string, len(outs))
	for i := range outs {
		results[i] = fmt.Sprintf("%%r%d", i)
	}
	c := Case{
		Name: fmt.Sprintf("%v %s", d, text), In: in, Out: strings.Join(results, ", "),
		Body: fmt.Sprintf("%s = rammer.Fused(%%x, %%y, %%z, %%c) {anchor = \"map\", body = graph \"body\" (%s) {\n%s\nreturn %s\n}}",
			strings.Join(results, ", "), body, text, strings.Join(outs, ", ")),
		Range: map[string][2]float64{"z": {1, 4}}, Set: map[string][]float64{},
	}
	if d.IsFloat() {
		c.Set["x"] = special
	}
	return c
}

// TestCast converts every element type to every other one.
func TestCast(t *testing.T) {
	var cases []Case
	for _, from := range elementTypes {
		var lines, outs []string
		for _, to := range elementTypes {
			lines = append(lines, fmt.Sprintf("%%%v = Cast(%%px) {to = %d}", to, to.ONNX()))
			outs = append(outs, fmt.Sprintf("%%%v", to))
		}
		c := elementwiseCase(from, lines, outs)
		if c.Set["x"] = append(c.Set["x"], 255.7, -129, 70000, -70000); from.IsFloat() {
			c.Set["x"] = append(c.Set["x"], 3e9, -3e9, 5e9, 1e19, -1e19, 3e19)
		}
		cases = append(cases, c)
	}
	Check(t, cases)
}

// TestNarrowCast converts to every type of at most 8 bits, with each way of rounding, and back.
func TestNarrowCast(t *testing.T) {
	var cases []Case
	for _, from := range []ir.DType{ir.Float32, ir.Float64, ir.Float16, ir.Int32, ir.Bool} {
		var lines, outs []string
		cast := func(to ir.DType, attrs string) {
			k := len(lines)
			lines = append(lines, fmt.Sprintf("%%n%d = Cast(%%px) {to = %d%s}\n%%w%[1]d = Cast(%%n%[1]d) {to = 1}", k,
				to.ONNX(), attrs))
			outs = append(outs, fmt.Sprintf("%%w%d", k))
		}
		for to := ir.Float8E4M3FN; to <= ir.Uint2; to++ {
			cast(to, "")
			if to.IsNarrowFloat() {
				cast(to, ", saturate = 0")
			}
		}
		cast(ir.Float8E8M0, `, round_mode = "nearest"`)
		c := elementwiseCase(from, lines, outs)
		c.Set["x"] = append(c.Set["x"], 7, 8, -8, -9, 15, 16, 0.2, 1.1, 5, 6, 7, 240, 247, 248, 448, 463, 465, 57344,
			61439, 61441, 1e-3, 0x1p-9, 0x1p-10, 0x1.8p-10, 0x1p-16, 0x1p-17, 0x1.8p-17)
		if from != ir.Float16 && from.IsFloat() {
			c.Set["x"] = append(c.Set["x"], 1e38, 0x1p-127, 0x1p-130, 3e38)
		}
		cases = append(cases, c)
	}
	Check(t, cases)
}

// TestBitCast reads the bits of every element type as every other one of the same size.
func TestBitCast(t *testing.T) {
	var cases []Case
	for _, from := range elementTypes {
		var lines, outs []string
		for _, to := range elementTypes {
			if to.Size() == from.Size() {
				lines = append(lines, fmt.Sprintf("%%%v = BitCast(%%px) {to = %d}", to, to.ONNX()))
				outs = append(outs, fmt.Sprintf("%%%v", to))
			}
		}
		cases = append(cases, elementwiseCase(from, lines, outs))
	}
	Check(t, cases)
}
