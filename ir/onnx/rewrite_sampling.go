package onnx

import (
	"hash/fnv"

	"github.com/rammerc/rammerc/ir"
)

// gridSampleMode: the modes were named after two axes.
func gridSampleMode(c *rewriting) {
	names := map[string]string{"bilinear": "linear", "bicubic": "cubic"}
	if a, ok := c.n.Attrs["mode"]; ok && names[a.S] != "" {
		c.setAttr("mode", ir.StringAttr(names[a.S]))
	}
}

// roiAlign10 had no shift of half an element.
func roiAlign10(c *rewriting) {
	c.setAttr("coordinate_transformation_mode", ir.StringAttr("output_half_pixel"))
}

func dftAxis(c *rewriting) {
	axis := c.takeInt("axis", 1)
	c.setInput(2, c.constant("axis", ir.FromSlice(ir.Int64, []int64{axis})))
}

// seedByName gives a node without a seed one of its own, which depends on the node's name only: runs of
// a program are repeatable, and engines agree.
func seedByName(c *rewriting) {
	if c.n.HasAttr("seed") {
		return
	}
	h := fnv.New32a()
	h.Write([]byte(c.p.name))
	c.setAttr("seed", ir.FloatAttr(float64(h.Sum32()>>8))) // exact in float32
}

// scan8 scans the batch axis, which all inputs and outputs of opset 8 have, with a Scan in the body.
func scan8(c *rewriting) {
	body := c.n.Attrs["body"].G
	switch {
	case c.n.Input(0) != nil:
		c.refuse("unsupported-op", "input 0 (sequence_lens)", "convert the model to opset 9 or later with onnx.version_converter",
			"sequences of different lengths are not supported")
		return
	case body == nil || len(c.n.Inputs) < 2:
		c.refuse("missing-input", "", "", "the operator needs a body and something to scan")
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
