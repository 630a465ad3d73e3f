package golden

import (
	"fmt"
	"testing"

	"github.com/rammerc/rammerc/precision"
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
	body, w := Weights("w", c.gates*c.hidden, c.inputs), "%w"
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
	body += Weights("r", c.gates*c.hidden, c.hidden)
	args += ", " + w + ", %r"
	if c.bias {
		body += Weights("b", 2*c.gates*c.hidden)
		args += ", %b"
	} else {
		args += ", _"
	}
	if c.op == "LSTMCell" {
		if c.peep {
			body += Weights("p", 3*c.hidden)
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
	cases = WithLayouts(cases)
	// Weights in 16 bits take runs of eight values of k, of which the last may be half empty.
	for i, c := range cases {
		if i%2 == 0 {
			c.Precision = []precision.Precision{precision.FP16, precision.BF16}[i/2%2]
			c.Name += ", " + c.Precision.String()
			cases = append(cases, c)
		}
	}
	Check(t, cases)
}
