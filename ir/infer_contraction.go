package ir

import "slices"

// inferMatMul: A[…,M,K] and B[…,K,N] give […,M,N], where the axes before the matrices broadcast. As in numpy.matmul, an
// A of rank 1 is a row [1,K] and a B of rank 1 a column [K,1], and the axis of extent 1 is removed from the result.
func inferMatMul(c *InferContext) {
	a, b := c.shape(0), c.shape(1)
	if a == nil || b == nil || !c.wantRank(0, 1, -1) || !c.wantRank(1, 1, -1) {
		return
	}
	if len(a) == 1 {
		a = Shape{D(1), a[0]}
	}
	if len(b) == 1 {
		b = Shape{b[0], D(1)}
	}
	k, l := a[len(a)-1], b[len(b)-2]
	if !mayEqual(k, l) {
		c.badInput("bad-shape", 1, "the shape %v has %v rows, wanted the %v columns of %v", c.shape(1), l, k,
			c.shape(0))
		return
	}
	out, err := BroadcastShapes(a[:len(a)-2], b[:len(b)-2])
	if err != nil {
		c.Report("bad-shape", "", "%v (the axes before the matrices)", err)
		return
	}
	if len(c.shape(0)) > 1 {
		out = append(out, a[len(a)-2])
	}
	if len(c.shape(1)) > 1 {
		out = append(out, b[len(b)-1])
	}
	c.set(0, out)
}

// inferGemm: A[M,K] and B[K,N], after the transpositions, give [M,N], to which C broadcasts.
func inferGemm(c *InferContext) {
	okA, okB := c.wantRank(0, 2, 2), c.wantRank(1, 2, 2)
	a, b := c.shape(0), c.shape(1)
	if !okA || !okB || a == nil || b == nil {
		return
	}
	if c.int("transA") != 0 {
		a = Shape{a[1], a[0]}
	}
	if c.int("transB") != 0 {
		b = Shape{b[1], b[0]}
	}
	if !mayEqual(a[1], b[0]) {
		c.badInput("bad-shape", 1, "the matrix has %v rows, wanted the %v columns of A", b[0], a[1])
	}
	out := Shape{a[0], b[1]}
	c.wantBroadcast(2, out)
	c.set(0, out)
}

// inferEinsum: every label has one extent, to which the axes with this label broadcast.
func inferEinsum(c *InferContext) {
	ranks := make([]int, len(c.Node.Inputs))
	for i := range ranks {
		if c.shape(i) == nil {
			return
		}
		ranks[i] = len(c.shape(i))
	}
	eq, err := ParseEinsum(c.str("equation"), ranks)
	if err != nil {
		c.badAttr("equation", "%v", err)
		return
	}
	extents := make(Shape, eq.Labels)
	for i := range extents {
		extents[i] = D(1)
	}
	for i, labels := range eq.Inputs {
		for k, label := range labels {
			d, ok := broadcastDim(extents[label], c.shape(i)[k])
			if !ok {
				c.badInput("bad-shape", i, "the extent %v of axis %d differs from %v of the same label", c.shape(i)[k],
					k, extents[label])
				return
			}
			extents[label] = d
		}
	}
	out := make(Shape, len(eq.Output))
	for i, label := range eq.Output {
		out[i] = extents[label]
	}
	c.set(0, out)
}

// inferAttention: q[…,Lq,D], k[…,Lk,D] and v[…,Lk,Dv] give […,Lq,Dv]; the mask broadcasts to […,Lq,Lk]. The axes before
// the last two broadcast.
func inferAttention(c *InferContext) {
	for i := range 3 {
		if !c.wantRank(i, 2, -1) {
			return
		}
	}
	q, k, v := c.shape(0), c.shape(1), c.shape(2)
	if q == nil || k == nil || v == nil {
		return
	}
	matrix := func(s Shape) (rows, columns Dim) { return s[len(s)-2], s[len(s)-1] }
	lq, d := matrix(q)
	lk, dk := matrix(k)
	lv, dv := matrix(v)
	if !mayEqual(d, dk) {
		c.badInput("bad-shape", 1, "the shape %v has %v columns, wanted the %v of q", k, dk, d)
		return
	}
	if !mayEqual(lk, lv) {
		c.badInput("bad-shape", 2, "the shape %v has %v rows, wanted the %v of k", v, lv, lk)
		return
	}
	outer, err := BroadcastShapes(q[:len(q)-2], k[:len(k)-2], v[:len(v)-2])
	if err != nil {
		c.Report("bad-shape", "", "%v (the axes before the matrices)", err)
		return
	}
	c.wantBroadcast(3, append(slices.Clone(outer), lq, lk))
	c.set(0, append(outer, lq, dv))
}
