package eval

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/rammerc/rammerc/internal/limits"
	"github.com/rammerc/rammerc/ir"
)

// opKey names an operator.
type opKey struct{ domain, op string }

// opFunc computes a node's outputs. It calls fail if the node cannot be computed. Before it runs, call.check has
// checked the node against its row of ir.Ops.
type opFunc func(c *call) []*ir.Tensor

// call is one evaluation of a node. Operators read attributes through the embedded node.
type call struct {
	*ir.Node
	run   *runner
	scope *scope       // of the graph that the node is in
	in    []*ir.Tensor // by input; nil where the node leaves one out
	made  atomic.Int64 // bytes of the tensors that it has made so far
}

// NodeError is an error of one node. For an error inside a subgraph, Err is the NodeError of the inner node.
type NodeError struct {
	Node   string // as in the graph, "" when it has no name
	Op     string
	Domain string
	Origin []ir.Origin
	Err    error
}

func (e *NodeError) Error() string {
	op := e.Op
	if e.Domain != "" {
		op = e.Domain + "." + op
	}
	if e.Node == "" {
		return fmt.Sprintf("node (%s): %v", op, e.Err)
	}
	return fmt.Sprintf("node %q (%s): %v", e.Node, op, e.Err)
}

func (e *NodeError) Unwrap() error { return e.Err }

func nodeError(n *ir.Node, err error) error {
	return &NodeError{Node: n.Name, Op: n.Op, Domain: n.Domain, Origin: n.Origins, Err: err}
}

// failure is a panic that carries an error from deep inside an operator to call.do, which turns it into an error again.
// Iterators, index arithmetic and conversions can all meet data that make no sense; returning an error through each of
// them would hide the formulas. A failure never leaves the package.
type failure struct{ err error }

func fail(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

// do checks the call, runs f and turns a failure into an error.
func (c *call) do(f opFunc) (outs []*ir.Tensor, err error) {
	defer func() {
		if p := recover(); p != nil {
			fl, ok := p.(failure)
			if !ok {
				panic(p)
			}
			outs, err = nil, fl.err
		}
	}()
	c.check()
	return f(c), nil
}

// arg returns input i, which must be there.
func (c *call) arg(i int) *ir.Tensor {
	if t := c.opt(i); t != nil {
		return t
	}
	fail("input %d is missing", i)
	return nil
}

// opt returns input i or nil.
func (c *call) opt(i int) *ir.Tensor {
	if i < len(c.in) {
		return c.in[i]
	}
	return nil
}

// args returns the inputs that the node does not leave out; there must be at least one.
func (c *call) args() []*ir.Tensor {
	var ts []*ir.Tensor
	for _, t := range c.in {
		if t != nil {
			ts = append(ts, t)
		}
	}
	if len(ts) == 0 {
		fail("needs at least one input")
	}
	return ts
}

// wants reports whether the node has output i. Operators skip the work for outputs that it leaves out.
func (c *call) wants(i int) bool { return c.Output(i) != nil }

// alloc makes a zero tensor within the memory limit.
func (c *call) alloc(d ir.DType, dims []int64) *ir.Tensor {
	c.checkSize(d, dims)
	return ir.NewTensor(d, dims...)
}

// checkSize fails unless a tensor of these dims, with those that are live and that the call has made, is within
// Options.MaxBytes, and counts it. Dims of 0 count as 1: a tensor may be empty and have another extent of 2^60, over
// which an operator would loop.
func (c *call) checkSize(d ir.DType, dims []int64) {
	n := int64(max(d.Size(), 1))
	for _, e := range dims {
		if e < 0 {
			fail("negative extent in dims %v", dims)
		}
	}
	for _, e := range dims {
		e = max(e, 1)
		if n > c.run.opt.MaxBytes/e {
			c.tooLarge(d, dims)
		}
		n *= e
	}
	if c.made.Add(n) > c.run.opt.MaxBytes-c.run.live {
		c.tooLarge(d, dims)
	}
}

func (c *call) tooLarge(d ir.DType, dims []int64) {
	fail("a %v tensor of dims %v, beside the %s of other values, is more than the limit of %s (--max-memory)", d, dims,
		limits.Bytes(c.run.live), limits.Bytes(c.run.opt.MaxBytes))
}

// parallel calls f for every i in [0, n), in any order, from at most Workers goroutines. If a call panics or fails,
// parallel does so too, when all goroutines have ended. Calls must write to different elements.
func (c *call) parallel(n int, f func(i int)) {
	workers := min(c.run.opt.Workers, n)
	if workers <= 1 {
		for i := range n {
			f(i)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	var once sync.Once
	var panicked any
	for range workers {
		wg.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					once.Do(func() { panicked = p })
				}
			}()
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
	if panicked != nil {
		panic(panicked)
	}
}

// one makes the result of an operator with a single output.
func one(t *ir.Tensor) []*ir.Tensor { return []*ir.Tensor{t} }
