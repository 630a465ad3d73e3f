package measure

import (
	"math"
	"slices"
	"sort"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/profiler"
	"github.com/rammerc/rammerc/profiler/db"
	"github.com/rammerc/rammerc/roperator"
)

// subject is a candidate to be measured. It stands for all candidates with the same key.
type subject struct {
	key      db.Key
	cand     *roperator.Candidate
	group    *group
	modelled float64 // of one rTask, ns
	total    float64 // of all rTasks, by the model
	promise  float64 // how much of the program's time its measurement may save, by the model

	entry  int    // its number in its part
	kernel string // and the kernel of its instance there
}

// group is an rOperator whose candidates are measured. It stands for all rOperators with the same candidates.
type group struct {
	op       *roperator.ROperator
	graph    *roperator.Graph
	model    string
	count    int // how many rOperators it stands for
	subjects []*subject

	offsets []int64 // by roperator.Buffer.ID: where a buffer lies in the machine's memory
	bytes   int64
	inputs  []*roperator.Buffer // that candidates read, but constants
	outputs []*roperator.Buffer
}

// hopeless is how many times slower than the best candidate of its rOperator, by the model, a candidate may be to be
// measured. The model was off by a factor of three in either direction.
const hopeless = 6

// Program is a graph whose candidates are to be measured.
type Program struct {
	Graph *roperator.Graph
	Model string         // name of the model, for new lines
	Costs profiler.Costs // say which candidates are promising
}

// plan lists the groups of the programs that have candidates which the database lacks. veus is how many rTasks run at
// once.
func plan(programs []Program, base *db.DB, keys *Keys, veus int) ([]*group, error) {
	w := &planning{base: base, keys: keys, veus: veus, bySignature: map[string]*group{}, seen: map[string]bool{}}
	for _, p := range programs {
		for _, op := range p.Graph.Ops {
			if err := w.add(p, op); err != nil {
				return nil, err
			}
		}
	}
	for _, gr := range w.groups {
		gr.layOut()
		gr.rate()
	}
	return w.groups, nil
}

// planning collects groups.
type planning struct {
	base        *db.DB
	keys        *Keys
	veus        int
	bySignature map[string]*group
	seen        map[string]bool // keys of subjects
	groups      []*group
}

// add makes a group of an rOperator, unless there is one with the same candidates.
func (w *planning) add(p Program, op *roperator.ROperator) error {
	all, signature, err := subjectsOf(p.Graph, op, p.Costs, w.keys, w.veus)
	if err != nil {
		return err
	}
	if same := w.bySignature[signature]; same != nil {
		same.count++
		return nil
	}
	gr := &group{op: op, graph: p.Graph, model: p.Model, count: 1}
	w.bySignature[signature] = gr
	for _, s := range all {
		id := s.key.ID()
		if _, known := w.base.Find(s.key); known || w.seen[id] {
			continue
		}
		w.seen[id] = true
		s.group = gr
		gr.subjects = append(gr.subjects, s)
	}
	if len(gr.subjects) > 0 {
		w.groups = append(w.groups, gr)
	}
	return nil
}

// subjectsOf describes the candidates of an rOperator that are not hopeless. Those that find their operands on chip are
// compared with each other: they take less because others have done a part of the work. The signature is the same for
// rOperators with the same candidates.
func subjectsOf(g *roperator.Graph, op *roperator.ROperator, costs profiler.Costs, keys *Keys,
	veus int) (list []*subject,
	signature string, err error) {
	best := map[bool]float64{true: math.Inf(1), false: math.Inf(1)}
	for _, c := range op.Candidates {
		if c.Tasks == 0 || c.Like != nil {
			continue
		}
		s := &subject{cand: c, modelled: costs.TaskTime(c)}
		s.total = s.modelled * float64((c.Tasks+veus-1)/veus)
		best[Standalone(c)] = min(best[Standalone(c)], s.total)
		if s.key, err = keys.Of(g, c); err != nil {
			return nil, "", err
		}
		signature += s.key.ID()
		list = append(list, s)
	}
	list = slices.DeleteFunc(list, func(s *subject) bool { return s.total > hopeless*best[Standalone(s.cand)] })
	return list, signature, nil
}

// rate gives the group's subjects their promise: what the group takes, less for candidates that are slower by the model.
func (gr *group) rate() {
	best := math.Inf(1)
	for _, s := range gr.subjects {
		best = min(best, s.total)
	}
	for _, s := range gr.subjects {
		s.promise = float64(gr.count) * best * best / s.total
	}
}

// space aligns buffers as the arena does, and leaves room behind each for loads that are wider than what they need.
const space = 256

// layOut gives every buffer that the subjects refer to a place.
func (gr *group) layOut() {
	gr.offsets = make([]int64, len(gr.graph.Buffers))
	placed, written := map[int]bool{}, map[int]bool{}
	for _, s := range gr.subjects {
		for _, a := range s.cand.Writes {
			written[a.View.Buf.ID] = true
		}
		eachBuffer(s.cand, func(id int) {
			if placed[id] {
				return
			}
			placed[id] = true
			b := gr.graph.Buffers[id]
			gr.offsets[id] = gr.bytes
			gr.bytes += (b.Bytes()+space-1)/space*space + space
		})
		for _, a := range s.cand.Reads {
			if b := a.View.Buf; placed[b.ID] && b.Kind != roperator.Const && !slices.Contains(gr.inputs, b) {
				gr.inputs = append(gr.inputs, b)
			}
		}
	}
	for _, id := range slices.Sorted(keysOf(written)) {
		if placed[id] {
			gr.outputs = append(gr.outputs, gr.graph.Buffers[id])
		}
	}
}

func keysOf(m map[int]bool) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// eachBuffer visits the buffers that a candidate's arguments refer to, and those whose elements the executor moves.
func eachBuffer(c *roperator.Candidate, visit func(id int)) {
	c.Refs(visit)
	for _, list := range [][]roperator.Staged{c.Imports, c.Exports} {
		for i := range list {
			visit(list[i].Access.View.Buf.ID)
		}
	}
}

// constants lists the constant buffers of a candidate.
func constants(g *roperator.Graph, c *roperator.Candidate) []*roperator.Buffer {
	var out []*roperator.Buffer
	eachBuffer(c, func(id int) {
		if b := g.Buffers[id]; b.Kind == roperator.Const && !slices.Contains(out, b) {
			out = append(out, b)
		}
	})
	return out
}

// parts distributes the subjects among programs: instances with the largest promise come first, so many in each. A part
// has all subjects of its instances.
func parts(groups []*group, most int) []*part {
	promise := map[string]float64{}
	byInstance := map[string][]*subject{}
	var instances []string
	for _, gr := range groups {
		for _, s := range gr.subjects {
			k := s.cand.Inst.Key()
			if byInstance[k] == nil {
				instances = append(instances, k)
			}
			promise[k] += s.promise
			byInstance[k] = append(byInstance[k], s)
		}
	}
	sort.SliceStable(instances, func(i, j int) bool { return promise[instances[i]] > promise[instances[j]] })
	var out []*part
	for i, k := range instances {
		if i%most == 0 {
			out = append(out, &part{number: len(out)})
		}
		p := out[len(out)-1]
		p.subjects = append(p.subjects, byInstance[k]...)
	}
	return out
}

// fillTypes says how the machine fills elements with random numbers; others become zeros, which are valid indices.
var fillTypes = map[ir.DType]string{ir.Float32: "f4", ir.Float64: "f8", ir.Float16: "h2", ir.BFloat16: "b2"}
