package onnx

import (
	"hash/fnv"

	"github.com/rammerc/rammerc/ir"
)

// gridSampleMode renames the modes, which were named for two spatial axes before opset 20.
func gridSampleMode(c *rewriting) {
	names := map[string]string{"bilinear": "linear", "bicubic": "cubic"}
	if a, ok := c.n.Attrs["mode"]; ok && names[a.S] != "" {
		c.setAttr("mode", ir.StringAttr(names[a.S]))
	}
}

// roiAlign10 sets the mode in which coordinates are not shifted by half a pixel; opsets before 16 had no other.
func roiAlign10(c *rewriting) {
	c.setAttr("coordinate_transformation_mode", ir.StringAttr("output_half_pixel"))
}

// dftAxis makes the attribute axis an input. Its default was 1.
func dftAxis(c *rewriting) {
	axis := c.takeInt("axis", 1)
	c.setInput(2, c.constant("axis", ir.FromSlice(ir.Int64, []int64{axis})))
}

// seedByName gives a node without a seed one that depends on the node's name only. The standard allows any seed. With
// this one runs are repeatable, all engines agree, and different nodes draw different numbers.
func seedByName(c *rewriting) {
	if c.n.HasAttr("seed") {
		return
	}
	h := fnv.New32a()
	h.Write([]byte(c.p.name))
	c.setAttr("seed", ir.FloatAttr(float64(h.Sum32()>>8))) // 24 bits, which a float32 holds exactly
}

// scan8 rewrites the Scan of opset 8, all of whose inputs and outputs have a batch axis, as two nested ones: the outer
// Scan goes over the batch, and its body is a Scan over the sequence of one item.
func scan8(c *rewriting) {
	body := c.n.Attrs["body"].G
	switch {
	case c.n.Input(0) != nil:
		c.refuse("unsupported-op", "input 0 (sequence_lens)",
			"convert the model to opset 9 or later with onnx.version_converter",
			"sequences of different lengths are not supported")
		return
	case body == nil || len(c.n.Inputs) < 2:
		c.refuse("missing-input", "", "", "the operator needs a body and an input to scan")
		return
	}
	inner := ir.Attrs{"body": c.n.Attrs["body"], "num_scan_inputs": c.n.Attrs["num_scan_inputs"]}
	if directions, ok := c.take("directions", ir.AttrInts); ok {
		inner["scan_input_directions"] = directions
	}
	item := &ir.Graph{Name: c.p.name + "/item"}
	fresh := func(list []*ir.Value) []*ir.Value {
		out := make([]*ir.Value, len(list))
		for i := range out {
			out[i] = &ir.Value{Name: c.s.im.namer.Fresh(c.p.name + "/item")}
		}
		return out
	}
	inputs := c.n.Inputs[1:]
	item.Inputs, item.Outputs = fresh(inputs), fresh(body.Outputs)
	n := &ir.Node{
		Op: "Scan", Name: c.p.name, Inputs: item.Inputs, Outputs: item.Outputs, Attrs: inner, Origins: c.p.origin(),
	}
	for _, v := range n.Outputs {
		v.Def = n
	}
	item.Nodes = []*ir.Node{n}
	c.become("Scan", ir.Attrs{"body": ir.GraphAttr(item), "num_scan_inputs": ir.IntAttr(int64(len(inputs)))}, inputs...)
}

// stftSignal gives a real signal [batch][samples] the axis of the standard, [batch][samples][1].
func stftSignal(c *rewriting) {
	if x := c.n.Input(0); x != nil && len(c.s.typeOf(x).shape) == 2 {
		c.n.Inputs = append([]*ir.Value{c.unsqueeze(x, 2)}, c.n.Inputs[1:]...)
	}
}
