package golden

import (
	"fmt"
	"testing"
)

// cellCase describes one step of an LSTM, GRU or RNN cell with constant weights.
type cellCase struct {
	op                    string
	gates                 int
	batch, inputs, hidden int
	bias, peep, lens      bool
	projected             bool // the cell has no W: its input is already multiplied by it
	attrs                 string
	outs                  string
}

func (c cellCase) build() Case {
	state := fmt.Sprintf("float32[%d,%d]", c.batch, c.hidden)
	body, w := weights("w", c.gates*c.hidden, c.inputs), "%w"
	if c.projected {
		body, w, c.inputs = "", "_", c.gates*c.hidden
	}
	in := fmt.Sprintf("%%x: float32[%d,%d], %%h: %s", c.batch, c.inputs, state)
	args, results := "%x, %h", "%hn"
	if c.op == "LSTMCell" {
		in += ", %c: " + state
		args += ", %c"
		results += ", %cn"
	}
	body += weights("r", c.gates*c.hidden, c.hidden)
	args += ", " + w + ", %r"
	if c.bias {
		body += weights("b", 2*c.gates*c.hidden)
		args += ", %b"
	} else {
		args += ", _"
	}
	if c.op == "LSTMCell" {
		if c.peep {
			body += weights("p", 3*c.hidden)
			args += ", %p"
		} else {
			args += ", _"
		}
	}
	if c.lens {
		in += fmt.Sprintf(", %%l: int32[%d]", c.batch)
		args += ", %l"
	} else {
		args += ", _"
	}
	results += ", %y"
	attrs := "step = 2"
	if c.attrs != "" {
		attrs += ", " + c.attrs
	}
	if c.outs == "" {
		c.outs = results
	}
	return Case{
		Name: fmt.Sprintf("%+v", c), In: in, Out: c.outs, Body: body +
			fmt.Sprintf("%s = rammer.%s(%s) {%s}", results, c.op, args, attrs),
		Range: map[string][2]float64{"l": {1, 4}, "x": {-0.3, 0.3}, "h": {-0.3, 0.3}},
		Set:   map[string][]float64{"l": {2, 3}},
	}
}

func TestRecurrentCells(t *testing.T) {
	lstm := cellCase{op: "LSTMCell", gates: 4, batch: 1, inputs: 8, hidden: 20, bias: true}
	gru := cellCase{op: "GRUCell", gates: 3, batch: 1, inputs: 8, hidden: 20, bias: true}
	rnn := cellCase{op: "RNNCell", gates: 1, batch: 1, inputs: 8, hidden: 20, bias: true}
	var cases []Case
	for _, c := range []cellCase{lstm, gru, rnn} {
		plain := c
		plain.bias = false
		batch := c
		batch.batch, batch.lens = 3, true
		large := c
		large.batch, large.lens, large.inputs, large.hidden = 11, true, 70, 50
		wide := c
		wide.inputs, wide.hidden = 60, 70
		clipped := c
		clipped.attrs = "clip = 0.5"
		projected, many := c, large
		projected.projected, many.projected = true, true
		cases = append(cases, c.build(), plain.build(), batch.build(), large.build(), wide.build(), clipped.build(),
			projected.build(), many.build())
	}
	lstm.peep, lstm.batch, lstm.lens = true, 2, true
	cases = append(cases, lstm.build())
	lstm.attrs = "input_forget = 1"
	cases = append(cases, lstm.build())
	lstm.attrs = `activations = ["HardSigmoid", "Affine", "ScaledTanh"], activation_alpha = [0.3, 0.8, 1.2], activation_beta = [0.4, 0.1, 0.9]`
	cases = append(cases, lstm.build())
	lstm.outs = "%y"
	cases = append(cases, lstm.build())
	gru.attrs = "linear_before_reset = 1"
	cases = append(cases, gru.build())
	gru.projected = true
	cases = append(cases, gru.build())
	gru.projected = false
	gru.batch, gru.lens, gru.inputs, gru.hidden = 3, true, 70, 50
	cases = append(cases, gru.build())
	for _, a := range []string{"Relu", "Softsign", "Softplus", "LeakyRelu", "Elu", "ThresholdedRelu"} {
		rnn.attrs = fmt.Sprintf("activations = [%q], activation_alpha = [0.2]", a)
		cases = append(cases, rnn.build())
	}
	Check(t, WithLayouts(cases))
}

func TestAttention(t *testing.T) {
	attention := func(name, in, args, attrs string) Case {
		return Case{Name: name, In: in, Body: fmt.Sprintf("%%y = rammer.Attention(%s) {%s}", args, attrs), Out: "%y"}
	}
	qkv := func(b string, lq, lk, d, dv int) string {
		return fmt.Sprintf("%%q: float32[%s%d,%d], %%k: float32[%s%d,%d], %%v: float32[%s%d,%d]", b, lq, d, b, lk, d,
			b, lk, dv)
	}
	cases := []Case{
		attention("halves", "%q: float16[2,9,16], %k: float16[2,11,16], %v: float16[2,11,8], %m: float16[9,11]",
			"%q, %k, %v, %m", "scale = 0.25"),
		attention("bfloat16", "%q: bfloat16[2,9,16], %k: bfloat16[2,11,16], %v: bfloat16[2,11,8]", "%q, %k, %v",
			"scale = 0.25"),
		attention("one head", qkv("", 20, 70, 16, 16), "%q, %k, %v", "scale = 0.25"),
		attention("heads", qkv("2,3,", 33, 40, 32, 32), "%q, %k, %v", "scale = 0.25"),
		attention("odd sizes", qkv("2,", 9, 5, 7, 13), "%q, %k, %v", "scale = 0.5"),
		attention("64", qkv("2,", 40, 70, 64, 64), "%q, %k, %v", "scale = 0.125"),
		attention("80", qkv("1,", 10, 35, 80, 80), "%q, %k, %v", "scale = 0.125"),
		attention("200", qkv("1,", 10, 35, 200, 136), "%q, %k, %v", "scale = 0.1"),
		attention("mask", qkv("2,3,", 18, 40, 16, 16)+", %m: float32[2,1,1,40]", "%q, %k, %v, %m", "scale = 0.25"),
		attention("shared keys", "%q: float32[2,4,6,16], %k: float32[2,1,9,16], %v: float32[2,1,9,16]", "%q, %k, %v",
			"scale = 0.25"),
		{Name: "transposed heads", In: "%p: float32[2,20,3,16], %r: float32[2,24,3,16], %s: float32[2,24,3,16]",
			Out: "%y",
			Body: "%q = Transpose(%p) {perm = [0, 2, 1, 3]}\n%k = Transpose(%r) {perm = [0, 2, 1, 3]}\n%v = Transpose(%s) {perm = [0, 2, 1, 3]}\n" +
				"%y = rammer.Attention(%q, %k, %v) {scale = 0.25}"},
		{Name: "epilogue", In: qkv("2,", 9, 12, 16, 16) + ", %r: float32[16]", Out: "%y", Body: fused("Attention",
			"%pq: float32[2,9,16], %pk: float32[2,12,16], %pv: float32[2,12,16], %pr: float32[16]",
			"%a = rammer.Attention(%pq, %pk, %pv) {scale = 0.25}\n%z = Add(%a, %pr)", "%z", "%q, %k, %v, %r")},
	}
	for _, nan := range []int{0, 1} {
		c := attention("masked rows", qkv("", 3, 40, 16, 16)+", %m: float32[3,40]", "%q, %k, %v, %m",
			fmt.Sprintf("scale = 0.25, nan_to_zero = %d", nan))
		mask := make([]float64, 120)
		for i := range mask {
			if i < 40 || i%3 == 0 {
				mask[i] = -inf()
			}
		}
		c.Set = map[string][]float64{"m": mask}
		cases = append(cases, c)
	}
	Check(t, WithLayouts(cases))
}
