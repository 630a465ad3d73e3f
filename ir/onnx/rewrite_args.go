package onnx

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

// Rules for operators whose attributes became inputs. Each removes the attribute, adds a constant, and makes the
// constant an input.

// axesInput rewrites the attribute axes. An empty list means all axes, as an absent input does, except for Unsqueeze.
func axesInput(c *rewriting) {
	axes, ok := c.take("axes", ir.AttrInts)
	if ok && (len(axes.Ints) > 0 || c.n.Op == "Unsqueeze") {
		c.setInput(1, c.ints("axes", axes.Ints...))
	}
}

// clipBounds rewrites the attributes min and max. Their defaults are the limits of float32; these become absent inputs,
// since they do not limit any float32 but would limit a float64.
func clipBounds(c *rewriting) {
	low := c.takeFloat("min", -math.MaxFloat32)
	high := c.takeFloat("max", math.MaxFloat32)
	if low > -math.MaxFloat32 {
		c.setInput(1, c.scalar("min", low, c.n.Input(0)))
	}
	if high < math.MaxFloat32 {
		c.setInput(2, c.scalar("max", high, c.n.Input(0)))
	}
}

func padInputs(c *rewriting) {
	pads, ok := c.take("pads", ir.AttrInts)
	if !ok {
		c.refuse("bad-attribute", "attribute pads", "", "the attribute is absent, the operator needs it")
		return
	}
	c.setInput(1, c.ints("pads", pads.Ints...))
	if value := c.takeFloat("value", 0); value != 0 {
		c.setInput(2, c.scalar("value", value, c.n.Input(0)))
	}
}

func sliceInputs(c *rewriting) {
	for i, name := range []string{"starts", "ends", "axes"} {
		a, ok := c.take(name, ir.AttrInts)
		switch {
		case ok:
			c.setInput(i+1, c.ints(name, a.Ints...))
		case name != "axes":
			c.refuse("bad-attribute", "attribute "+name, "", "the attribute is absent, the operator needs it")
		}
	}
}

func splitInput(c *rewriting) {
	if split, ok := c.take("split", ir.AttrInts); ok && len(split.Ints) > 0 {
		c.setInput(1, c.ints("split", split.Ints...))
	}
}

// splitCount rewrites a Split without the input split, which divides into as many equal pieces as it has outputs.
func splitCount(c *rewriting) {
	if c.n.Input(1) == nil {
		c.setAttr("num_outputs", ir.IntAttr(int64(len(c.n.Outputs))))
	}
}

func topKInput(c *rewriting) {
	k, ok := c.take("k", ir.AttrInt)
	if !ok {
		c.refuse("bad-attribute", "attribute k", "", "the attribute is absent, the operator needs it")
		return
	}
	c.setInput(1, c.ints("k", k.I))
}

func reshapeAttr(c *rewriting) {
	if shape, ok := c.take("shape", ir.AttrInts); ok {
		c.setInput(1, c.ints("shape", shape.Ints...))
	}
}

func upsampleScales(c *rewriting) {
	scales, ok := c.take("scales", ir.AttrFloats)
	if !ok {
		c.refuse("bad-attribute", "attribute scales", "", "the attribute is absent, the operator needs it")
		return
	}
	c.setInput(1, c.floats("scales", scales.Floats...))
}

// castTarget reports a target type that ONNX has and rammerc does not, by its name instead of its number.
func castTarget(c *rewriting) {
	to, ok := c.n.Attrs["to"]
	if !ok || to.Kind != ir.AttrInt || to.I != int64(int32(to.I)) {
		return
	}
	if _, err := parseDType(int32(to.I)); err != nil {
		c.refuse(typeID(err), "attribute to", "", "%v", err)
	}
}
