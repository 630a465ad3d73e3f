package onnx

import (
	"fmt"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// svm are the parts that support vector machines have in common: the kernel, and the vectors that it compares rows with.
type svm struct {
	w                    *rewriting
	kernel               string
	gamma, coef0, degree float64
	coefficients, rho    []float64
	vectors              []float64
	count, features      int64 // of the vectors; there are none in a linear machine
	transform            string
}

// readSVM reads the attributes of a machine. rows is how many lists of coefficients there are in a linear machine.
func (c *rewriting) readSVM(count, rows int64) *svm {
	m := &svm{w: c, kernel: c.takeString("kernel_type", "LINEAR", "LINEAR", "POLY", "RBF", "SIGMOID"),
		coefficients: c.takeFloats("coefficients"), rho: c.takeFloats("rho"), vectors: c.takeFloats("support_vectors"),
		count: count, transform: c.postTransform()}
	if p := c.takeFloats("kernel_params"); len(p) >= 3 {
		m.gamma, m.coef0, m.degree = p[0], p[1], p[2]
	}
	of, name := m.vectors, "support_vectors"
	if count == 0 {
		of, name, count, m.kernel = m.coefficients, "coefficients", rows, "LINEAR"
	}
	if count < 1 || len(of) == 0 || int64(len(of))%count != 0 {
		c.refuse("bad-attribute", "attribute "+name, "", "%d numbers do not make %d rows", len(of), count)
	} else if len(m.rho) == 0 {
		c.refuse("bad-attribute", "attribute rho", "", "the attribute is absent, the operator needs it")
	}
	if c.refused {
		return nil
	}
	m.features = int64(len(of)) / count
	return m
}

// compared is the kernel of each row of x with each of some vectors, which are rows too: [rows][count].
func (m *svm) compared(vectors []float64) *ir.Value {
	x := m.w.floatInput()
	sv := m.w.reshape(m.w.floats("vectors", vectors...), int64(len(vectors))/m.features, m.features)
	if m.kernel == "RBF" {
		d := m.w.emit("Sub", nil, m.w.unsqueeze(x, 1), sv)
		square := m.w.emit("ReduceSum", ir.Attrs{"keepdims": ir.IntAttr(0)}, m.w.emit("Mul", nil, d, d), m.w.ints("axes", -1))
		return m.w.emit("Exp", nil, m.w.emit("Mul", nil, square, m.w.number("gamma", -m.gamma, ir.Float32)))
	}
	dot := m.w.emit("MatMul", nil, x, m.w.transpose(sv, 1, 0))
	if m.kernel == "LINEAR" {
		return dot
	}
	dot = m.w.emit("Mul", nil, dot, m.w.number("gamma", m.gamma, ir.Float32))
	dot = m.w.emit("Add", nil, dot, m.w.number("coef0", m.coef0, ir.Float32))
	if m.kernel == "SIGMOID" {
		return m.w.emit("Tanh", nil, dot)
	}
	return m.w.emit("Pow", nil, dot, m.w.number("degree", m.degree, ir.Float32))
}

// svmRegressor is the sum of the kernels of a row with all vectors, each times its coefficient.
func svmRegressor(c *rewriting) {
	if !c.arity(1, 1) {
		return
	}
	one := c.takeInt("one_class", 0) != 0
	m := c.readSVM(c.takeInt("n_supports", 0), 1)
	if c.refused {
		return
	}
	var y *ir.Value
	switch {
	case m.count == 0:
		y = m.compared(m.coefficients)
	case int64(len(m.coefficients)) != m.count:
		c.refuse("bad-attribute", "attribute coefficients", "", "there are %d, and %d support vectors", len(m.coefficients),
			m.count)
		return
	default:
		y = c.emit("MatMul", nil, m.compared(m.vectors), c.reshape(c.floats("coefficients", m.coefficients...), -1, 1))
	}
	y = c.emit("Add", nil, y, c.number("rho", m.rho[0], ir.Float32))
	if one {
		above := c.emit("Greater", nil, y, c.number("zero", 0, ir.Float32))
		y = c.emit("Where", nil, above, c.number("in", 1, ir.Float32), c.number("out", -1, ir.Float32))
	}
	c.finish(c.transformed(y, m.transform))
}

// svmClassifier gives the label that wins most of the comparisons of two labels, and the scores: those of the
// comparisons or, where the model has sigmoids for them, the probabilities of the labels. A machine without vectors has a
// linear score for each label.
func svmClassifier(c *rewriting) {
	if !c.arity(1, 1) {
		return
	}
	labels := c.takeLabels("classlabels_ints", "classlabels_strings")
	perClass := c.takeInts("vectors_per_class")
	a, b := c.takeFloats("prob_a"), c.takeFloats("prob_b")
	if c.refused {
		return
	}
	count, classes := int64(0), labels.Len()
	for _, n := range perClass {
		if n < 0 || n > 1<<30 {
			c.refuse("bad-attribute", "attribute vectors_per_class", "", "%d vectors are not possible", n)
			return
		}
		count += n
	}
	m := c.readSVM(count, classes)
	if c.refused {
		return
	}
	if count == 0 {
		scores := c.emit("Add", nil, m.compared(m.coefficients), c.number("rho", m.rho[0], ir.Float32))
		c.finish(c.labelled(scores, labels), c.transformed(scores, m.transform))
		return
	}
	pairs := classes * (classes - 1) / 2
	if int64(len(perClass)) != classes || int64(len(m.coefficients)) != (classes-1)*count || int64(len(m.rho)) < pairs {
		c.refuse("bad-attribute", "attribute coefficients", "",
			"%d coefficients and %d offsets do not fit %d labels of %d vectors", len(m.coefficients), len(m.rho), classes, count)
		return
	}
	m.classify(labels, perClass, pairs, a, b)
}

// duel is a comparison of two labels.
type duel struct{ i, j int64 }

// classify finishes an SVMClassifier with support vectors.
func (m *svm) classify(labels *ir.Tensor, perClass []int64, pairs int64, a, b []float64) {
	classes := labels.Len()
	matrix, duels := m.duels(perClass, pairs)
	scores := m.w.emit("MatMul", nil, m.compared(m.vectors), m.w.constant("coefficients", matrix))
	scores = m.w.emit("Add", nil, scores, m.w.floats("rho", m.rho[:pairs]...))
	won := m.w.cast(m.w.emit("Greater", nil, scores, m.w.number("zero", 0, ir.Float32)), ir.Float32)
	// A label has a vote for each comparison that it wins: won·V + lost, where V is 1 for the first and -1 for the second.
	v, lost := ir.NewTensor(ir.Float32, pairs, classes), ir.NewTensor(ir.Float32, classes)
	for e, d := range duels {
		ir.Slice[float32](v)[int64(e)*classes+d.i] = 1
		ir.Slice[float32](v)[int64(e)*classes+d.j] = -1
		ir.Slice[float32](lost)[d.j]++
	}
	votes := m.w.emit("Add", nil, m.w.emit("MatMul", nil, won, m.w.constant("votes", v)), m.w.constant("lost", lost))
	if len(a) > 0 {
		if int64(len(a)) < pairs || int64(len(b)) < pairs {
			m.w.refuse("bad-attribute", "attribute prob_a", "", "there are %d and %d numbers for %d comparisons", len(a), len(b),
				pairs)
			return
		}
		p := m.probabilities(scores, duels, classes, a[:pairs], b[:pairs])
		m.w.finish(m.w.labelled(votes, labels), m.w.transformed(p, m.transform))
		return
	}
	if classes == 2 { // then the labels' scores are -s and s, as ONNX Runtime reads such machines
		scores = m.w.concat(1, m.w.emit("Neg", nil, scores), scores)
	}
	m.w.finish(m.w.labelled(votes, labels), m.w.transformed(scores, m.transform))
}

// duels are the comparisons of two labels each, and for each of them a column of coefficients: in the comparison of i and
// j the vectors of i have coefficients of list j-1, those of j of list i, and others none.
func (m *svm) duels(perClass []int64, pairs int64) (*ir.Tensor, []duel) {
	matrix := ir.NewTensor(ir.Float32, m.count, pairs)
	data, duels := ir.Slice[float32](matrix), []duel(nil)
	starts := make([]int64, len(perClass)+1)
	for i, n := range perClass {
		starts[i+1] = starts[i] + n
	}
	for i := range int64(len(perClass)) {
		for j := i + 1; j < int64(len(perClass)); j++ {
			e := int64(len(duels))
			for s := starts[i]; s < starts[i+1]; s++ {
				data[s*pairs+e] = float32(m.coefficients[(j-1)*m.count+s])
			}
			for s := starts[j]; s < starts[j+1]; s++ {
				data[s*pairs+e] = float32(m.coefficients[i*m.count+s])
			}
			duels = append(duels, duel{i, j})
		}
	}
	return matrix, duels
}

// probabilities are those of the labels that follow from the scores of the comparisons. Those are, by sigmoids of their
// own, probabilities r[i][j] that a row is of i and not of j. The labels' probabilities p minimise the sum of
// (r[j][i]·p[i] - r[i][j]·p[j])² over all pairs. As in libsvm they are found by going through the labels again and again
// until nothing changes any more, which is the Loop here; it ends when that is so for all rows.
func (m *svm) probabilities(scores *ir.Value, duels []duel, k int64, a, b []float64) *ir.Value {
	c := m.w
	z := c.emit("Add", nil, c.emit("Mul", nil, scores, c.floats("prob_a", a...)), c.floats("prob_b", b...))
	won := c.emit("Sigmoid", nil, c.emit("Neg", nil, z))
	won = c.emit("Clip", nil, won, c.number("least", 1e-7, ir.Float32), c.number("most", 1-1e-7, ir.Float32))
	lost := c.emit("Sub", nil, c.number("one", 1, ir.Float32), won)
	// All entries of r[i][j], row by row; on the diagonal, where none is used, is the first comparison's.
	places := make([]int64, k*k)
	for e, d := range duels {
		places[d.i*k+d.j], places[d.j*k+d.i] = int64(e), int64(e+len(duels))
	}
	r := c.reshape(c.emit("Gather", axisAttr(1), c.concat(1, won, lost), c.ints("places", places...)), -1, k, k)
	eye, off := ir.NewTensor(ir.Float32, k, k), ir.NewTensor(ir.Float32, k, k)
	for i := range k * k {
		ir.Slice[float32](eye)[i], ir.Slice[float32](off)[i] = 0, 1
		if i/k == i%k {
			ir.Slice[float32](eye)[i], ir.Slice[float32](off)[i] = 1, 0
		}
	}
	r = c.emit("Mul", nil, r, c.constant("off", off))
	t := c.transpose(r, 0, 2, 1)
	squares := c.emit("ReduceSum", nil, c.emit("Mul", nil, t, t), c.ints("axes", 2)) // over j of r[j][i]²
	q := c.emit("Sub", nil, c.emit("Mul", nil, squares, c.constant("eye", eye)), c.emit("Mul", nil, r, t))
	first := c.emit("Add", nil, c.emit("Mul", nil, c.squeeze(squares, 2), c.number("none", 0, ir.Float32)),
		c.number("equal", 1/float64(k), ir.Float32))
	return m.converged(q, first, k)
}

// converged runs libsvm's iteration on p[rows][k] with the matrices q[rows][k][k]. Rows that are done stay as they are.
func (m *svm) converged(q, first *ir.Value, k int64) *ir.Value {
	const most = 100
	c := m.w
	g := &ir.Graph{Name: c.p.name + "/sweep"}
	in := func(name string, d ir.DType, shape ir.Shape) *ir.Value {
		v := &ir.Value{Name: c.s.im.namer.Fresh(c.p.name + "/" + name), DType: d, Shape: shape}
		g.Inputs = append(g.Inputs, v)
		return v
	}
	in("sweep", ir.Int64, ir.Shape{})
	in("more", ir.Bool, ir.Shape{})
	shape, _ := c.shapeOf(first)
	p := in("p", ir.Float32, slices.Clone(shape))
	inner := &scope{im: c.s.im, b: &builder{g: g, outer: c.s.b}, outer: c.s, names: map[string]*ir.Value{},
		opsets: c.s.opsets, path: c.s.path}
	b := &rewriting{s: inner, p: c.p, n: c.n}
	// q·p and p·q·p
	qp := b.squeeze(b.emit("MatMul", nil, q, b.unsqueeze(p, 2)), 2)
	pqp := b.emit("ReduceSum", nil, b.emit("Mul", nil, p, qp), b.ints("axes", 1))
	off := b.emit("ReduceMax", nil, b.emit("Abs", nil, b.emit("Sub", nil, qp, pqp)), b.ints("axes", 1))
	wrong := b.emit("GreaterOrEqual", nil, off, b.number("eps", 0.005/float64(k), ir.Float32))
	next := p
	for i := range k {
		next, qp, pqp = b.improved(q, next, qp, pqp, i, k)
	}
	next = b.emit("Where", nil, wrong, next, p)
	any := b.emit("ReduceMax", ir.Attrs{"keepdims": ir.IntAttr(0)}, b.cast(wrong, ir.Float32))
	g.Outputs = []*ir.Value{b.cast(any, ir.Bool), next}
	c.refused = c.refused || b.refused
	n := &ir.Node{Op: "Loop", Name: c.p.name, Inputs: []*ir.Value{c.int64("sweeps", most), nil, first},
		Attrs: ir.Attrs{"body": ir.GraphAttr(g)}, Origins: c.p.origin(),
		Outputs: []*ir.Value{{Name: c.s.im.namer.Fresh(fmt.Sprintf("%s/probabilities", c.p.name))}}}
	c.s.emit(n)
	return n.Outputs[0]
}

// improved moves p[i] to where it is best, and scales p to a sum of 1.
func (c *rewriting) improved(q, p, qp, pqp *ir.Value, i, k int64) (*ir.Value, *ir.Value, *ir.Value) {
	row := c.squeeze(c.slice(q, 1, i, i+1), 1) // q[i], [rows][k]
	corner, at := c.slice(row, 1, i, i+1), c.slice(qp, 1, i, i+1)
	diff := c.emit("Div", nil, c.emit("Sub", nil, pqp, at), corner)
	one := c.number("one", 1, ir.Float32)
	sum := c.emit("Add", nil, one, diff)
	axis := ir.NewTensor(ir.Float32, 1, k)
	ir.Slice[float32](axis)[i] = 1
	p = c.emit("Div", nil, c.emit("Add", nil, p, c.emit("Mul", nil, diff, c.constant("axis", axis))), sum)
	twice := c.emit("Mul", nil, at, c.number("two", 2, ir.Float32))
	grown := c.emit("Mul", nil, diff, c.emit("Add", nil, c.emit("Mul", nil, diff, corner), twice))
	pqp = c.emit("Div", nil, c.emit("Add", nil, pqp, grown), c.emit("Mul", nil, sum, sum))
	qp = c.emit("Div", nil, c.emit("Add", nil, qp, c.emit("Mul", nil, diff, row)), sum)
	return p, qp, pqp
}
