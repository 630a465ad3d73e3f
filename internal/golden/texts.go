package golden

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Weights is a statement that defines %name as a float32 constant with random elements of about 1.
func Weights(name string, dims ...int) string { return WeightsOf(name, 0, dims...) }

// WeightsOf is the same with elements of about ten to the given power.
func WeightsOf(name string, power int, dims ...int) string {
	return constant(name, "float32", dims, func(rng *rand.Rand) string {
		return fmt.Sprintf("%.3fe%d", rng.NormFloat64(), power)
	})
}

// constant is a statement that defines %name as a constant of a type, with elements that draw makes.
func constant(name, dtype string, dims []int, draw func(rng *rand.Rand) string) string {
	rng := rand.New(rand.NewPCG(uint64(len(name)), uint64(dims[0])))
	n := 1
	for _, d := range dims {
		n *= d
	}
	values := make([]string, n)
	for i := range values {
		values[i] = draw(rng)
	}
	return fmt.Sprintf("%%%s = const %s%s {%s}\n", name, dtype, Dims(dims), strings.Join(values, ", "))
}

// Fused is the statement of a Fused node with the given anchor, whose result is %y. in, body and out are the inputs,
// statements and result of its body; args are the node's own operands.
func Fused(anchor, in, body, out, args string) string {
	return fmt.Sprintf("%%y = rammer.Fused(%s) {anchor = %q, body = graph \"body\" (%s) {\n%s\nreturn %s\n}}", args,
		anchor, in, body, out)
}

// Dims is a shape in ir's text form.
func Dims(list []int) string { return strings.ReplaceAll(fmt.Sprint(list), " ", ",") }

// ConvCase is a convolution of x with constant weights, with a constant bias if bias is its length.
func ConvCase(op, x string, w []int, bias int, attrs string) Case {
	c := Case{Name: fmt.Sprintf("%s %s %v %s", op, x, w, attrs), In: "%x: float32[" + x + "]", Out: "%y"}
	args := "%x, %w"
	c.Body = Weights("w", w...)
	if bias > 0 {
		c.Body += Weights("b", bias)
		args += ", %b"
	}
	c.Body += fmt.Sprintf("%%y = %s(%s) {%s}", op, args, attrs)
	return c
}
