package schedule

import (
	"slices"

	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice"
)

// taskSet is the rTasks that an access conflicts with. All rTasks that make the same access depend on these.
type taskSet struct {
	tasks []vdevice.Task
	users int              // how many rTasks wait for it
	kind  vdevice.EdgeKind // by which they come after it: flags, or tags where they poll the data themselves
}

// deps says what the rTasks of one rOperator depend on. rTasks with the same accesses have the same combination of task
// sets, and combinations share sets:
//
//	rTasks 0 … 7    combination 1: sets 0, 1
//	rTasks 8 … 15   combination 2: sets 0, 2      set 0: the rTasks that write an operand that all 16 read
type deps struct {
	sets   []taskSet
	combos [][]int32 // per combination: its sets; combination 0 has none
	of     []int32   // per rTask: its combination
}

// none is for n rTasks that depend on nothing.
func none(n int) *deps { return &deps{combos: [][]int32{nil}, of: make([]int32, n)} }

// afterAll is for n rTasks that come after all rTasks of a wave.
func afterAll(wave []*placedOp, n int) *deps {
	d := &deps{combos: [][]int32{nil, {0}}, of: make([]int32, n)}
	set := taskSet{kind: vdevice.EdgeFlag, users: n}
	for _, o := range wave {
		for t := range o.veu {
			set.tasks = append(set.tasks, vdevice.Task{Op: o.op, Index: int32(t)})
		}
	}
	for t := range d.of {
		d.of[t] = 1
	}
	d.sets = []taskSet{set}
	return d
}

// tileCache keeps the tile indexes of rOperators that were placed.
type tileCache struct {
	reads, writes []map[int32]*tileIndex // per rOperator
}

func newTileCache(ops int) *tileCache {
	return &tileCache{make([]map[int32]*tileIndex, ops), make([]map[int32]*tileIndex, ops)}
}

func (t *tileCache) readsOf(op int32, c *roperator.Candidate) map[int32]*tileIndex {
	if t.reads[op] == nil {
		t.reads[op] = newTileIndexes(c.Tasks, c.AppendReads)
	}
	return t.reads[op]
}

func (t *tileCache) writesOf(op int32, c *roperator.Candidate) map[int32]*tileIndex {
	if t.writes[op] == nil {
		t.writes[op] = newTileIndexes(c.Tasks, c.AppendWrites)
	}
	return t.writes[op]
}

// producer is an rOperator in the current rProgram that others may depend on.
type producer struct {
	op int32
	c  *roperator.Candidate
}

// depFinder computes the deps of one candidate.
type depFinder struct {
	cache  *tileCache
	g      *roperator.Graph
	preds  []producer
	d      *deps
	tagged map[int]bool              // buffers whose importers poll
	boxSet smallMap[boxSide, int32]  // the set that an access to a box depends on, -1 for none
	folded smallMap[[2]int32, int32] // a combination and one more set → a combination
}

type boxSide struct {
	box            roperator.Box
	write, imports bool
}

// findDeps finds what c's rTasks depend on: the rTasks of preds whose boxes overlap their own, where one of the two
// writes.
func findDeps(g *roperator.Graph, cache *tileCache, preds []producer, c *roperator.Candidate,
	tagged map[int]bool) *deps {
	d := none(c.Tasks)
	if len(preds) == 0 {
		return d
	}
	f := &depFinder{cache: cache, g: g, preds: preds, d: d, tagged: tagged}
	var boxes []roperator.Box
	imported := c.Imported()
	polls := func(i int) bool { return imported != nil && imported[i] && tagged[c.Reads[i].View.Buf.ID] }
	for t := range c.Tasks {
		boxes = c.AppendReadsOf(boxes[:0], t, func(i int) bool { return !polls(i) })
		f.addBoxes(t, boxes, false, false)
		boxes = c.AppendReadsOf(boxes[:0], t, polls)
		f.addBoxes(t, boxes, false, true)
		boxes = c.AppendWrites(boxes[:0], t)
		f.addBoxes(t, boxes, true, false)
		for _, s := range d.combos[d.of[t]] {
			d.sets[s].users++
		}
	}
	return d
}

func (f *depFinder) addBoxes(task int, boxes []roperator.Box, write, imports bool) {
	for i := range boxes {
		if f.g.Buffers[boxes[i].Buf].Kind == roperator.Const {
			continue
		}
		if s := f.setOf(boxSide{boxes[i], write, imports}); s >= 0 {
			f.d.of[task] = f.fold(f.d.of[task], s)
		}
	}
}

// fold returns the combination that has one more set.
func (f *depFinder) fold(combo, set int32) int32 {
	key := [2]int32{combo, set}
	if c, ok := f.folded.get(key); ok {
		return c
	}
	c := combo
	if sets := f.d.combos[combo]; !slices.Contains(sets, set) {
		c = int32(len(f.d.combos))
		f.d.combos = append(f.d.combos, append(slices.Clone(sets), set))
	}
	f.folded.set(key, c)
	return c
}

// setOf finds the rTasks that an access to the box conflicts with: those that write it, and if the access is a write
// also those that read it.
func (f *depFinder) setOf(b boxSide) int32 {
	if s, ok := f.boxSet.get(b); ok {
		return s
	}
	set := taskSet{kind: vdevice.EdgeFlag}
	if b.imports {
		set.kind = vdevice.EdgeTagged
	}
	for _, p := range f.preds {
		from := len(set.tasks)
		collect := func(tasks []int32) {
			for _, t := range tasks {
				set.tasks = append(set.tasks, vdevice.Task{Op: p.op, Index: t})
			}
		}
		if x := f.cache.writesOf(p.op, p.c)[b.box.Buf]; x != nil {
			x.find(&b.box, collect)
		}
		if b.write {
			if x := f.cache.readsOf(p.op, p.c)[b.box.Buf]; x != nil {
				x.find(&b.box, collect)
			}
		}
		set.tasks = append(set.tasks[:from], distinct(set.tasks[from:])...)
	}
	s := int32(-1)
	if len(set.tasks) > 0 {
		s = int32(len(f.d.sets))
		f.d.sets = append(f.d.sets, set)
	}
	f.boxSet.set(b, s)
	return s
}

// distinct sorts rTasks of one rOperator and removes repetitions.
func distinct(tasks []vdevice.Task) []vdevice.Task {
	slices.SortFunc(tasks, func(a, b vdevice.Task) int { return int(a.Index - b.Index) })
	return slices.Compact(tasks)
}
