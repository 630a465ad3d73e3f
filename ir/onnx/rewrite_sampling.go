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
