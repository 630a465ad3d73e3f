package onnx

import "github.com/rammerc/rammerc/ir"

// Rules for losses. Also models for inference contain them, when they report the loss of their prediction.

func negativeLogLikelihoodLoss(c *rewriting) {
	if c.arity(2, 3) {
		if loss := c.logLikelihoodLoss(c.n.Input(0)); loss != nil {
			c.finish(loss)
		}
	}
}

func softmaxCrossEntropyLoss(c *rewriting) {
	if !c.arity(2, 3) {
		return
	}
	logs := c.emit("LogSoftmax", axisAttr(1), c.n.Input(0))
	if loss := c.logLikelihoodLoss(logs); loss != nil {
		c.finish(loss, logs)
	}
}

// logLikelihoodLoss is ONNX's NegativeLogLikelihoodLoss: the negative logarithm of the probability of each target
// class, times the weight of the class (input 2). logs is [N,C,…], and the targets (input 1) are [N,…]. Targets that
// equal the attribute ignore_index have the loss and the weight 0. It returns nil if it refuses the node.
func (c *rewriting) logLikelihoodLoss(logs *ir.Value) *ir.Value {
	reduction := c.takeString("reduction", "mean", "mean", "none", "sum")
	d, ok := c.dtypeOf(c.n.Input(0))
	if !ok {
		return nil
	}
	zero, one := c.number("zero", 0, d), c.number("one", 1, d)
	if c.refused {
		return nil
	}
	target, weight := c.cast(c.n.Input(1), ir.Int64), c.n.Input(2)
	var ignored *ir.Value
	if a, ok := c.take("ignore_index", ir.AttrInt); ok {
		ignored = c.emit("Equal", nil, target, c.int64("ignore_index", a.I))
		target = c.emit("Where", nil, ignored, c.int64("first", 0), target)
	}
	picked := c.emit("GatherElements", axisAttr(1), logs, c.unsqueeze(target, 1))
	loss := c.emit("Neg", nil, c.squeeze(picked, 1))
	if weight != nil {
		weight = c.emit("Gather", axisAttr(0), weight, target)
	}
	if ignored != nil {
		if weight == nil {
			weight = one
		}
		loss, weight = c.emit("Where", nil, ignored, zero, loss), c.emit("Where", nil, ignored, zero, weight)
	}
	if weight != nil {
		loss = c.emit("Mul", nil, loss, weight)
	}
	return c.reduced(loss, weight, reduction)
}

// reduced applies the attribute reduction. The mean is the weighted one: the sum of losses divided by that of weights.
func (c *rewriting) reduced(loss, weight *ir.Value, reduction string) *ir.Value {
	whole := func(op string, x *ir.Value) *ir.Value {
		return c.emit(op, ir.Attrs{"keepdims": ir.IntAttr(0)}, x)
	}
	switch {
	case reduction == "none":
		return loss
	case reduction == "sum":
		return whole("ReduceSum", loss)
	case weight == nil:
		return whole("ReduceMean", loss)
	}
	return c.emit("Div", nil, whole("ReduceSum", loss), whole("ReduceSum", weight))
}
