package stencil

import (
	"testing"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice"
)

// Given has the stages of the stencil hand their tiles over as tagged data, from stage to stage in a
// buffer of its own; a tile stays on its vEU, and vEUs are in clusters, unless cluster is 0.
func Given(t testing.TB, veus, stages, tile, cluster int) *Model {
	t.Helper()
	s := New(t, veus, 1, tile)
	s.Stages = stages
	spec := s.Plan.Spec
	spec.Shared, spec.SharedPerVEU, spec.Registers = 1<<16, 1<<16, 1<<16
	spec.Clusters = device.Clusters{Of4: veus / 4, Of8: veus / 8}
	g, kernel := s.Plan.Graph, kernelNamed(t, "test_stencil_given")
	g.Buffers = g.Buffers[:3] // x, y, coef
	from := g.Buffers[0]
	g.Ops = nil
	for st := range stages {
		to := g.Buffers[1]
		if st < stages-1 {
			b := *g.Buffers[0]
			b.ID, b.Name, b.Kind, b.Index = len(g.Buffers), "state", roperator.Arena, -1
			to = &b
			g.Buffers = append(g.Buffers, to)
		}
		op := s.stage(kernel, st, from, to, g.Buffers[2])
		s.stage3(op.Candidates[0])
		g.Ops = append(g.Ops, op)
		from = to
	}
	b := vdevice.NewBuilder(spec, g)
	for st := range stages {
		b.Pick(int32(st), 0)
		for k := range veus {
			task := vdevice.Task{Op: int32(st), Index: int32(k)}
			if st > 0 {
				var near []vdevice.Task
				for d := -1; d <= 1; d++ {
					near = append(near, vdevice.Task{Op: int32(st - 1), Index: int32((k + d + veus) % veus)})
				}
				b.After(vdevice.EdgeTagged, task, b.Front(near))
			}
			b.Append(task, int32(k))
		}
	}
	for buf := 3; buf < len(g.Buffers); buf++ {
		b.Carry(buf, vdevice.Tagged, len(g.Buffers))
	}
	p := b.Program()
	if p.Cluster = cluster; cluster > 0 {
		vdevice.PlaceSlots(p, 1000)
	}
	s.Plan.Pick, s.Plan.Segments = p.Pick, []vdevice.Segment{{Kind: vdevice.RProgram, Program: p}}
	vdevice.LayoutArena(s.Plan)
	if err := vdevice.Verify(s.Plan); err != nil {
		t.Fatal(err)
	}
	return s
}

// stage3 makes a candidate of stage import its tile and the neighbours', and export its own.
func (s *Model) stage3(c *roperator.Candidate) {
	view := c.Reads[0].View
	c.Reads = nil
	tiles, tile := int64(s.VEUs), int64(s.Tile)
	for d := range int64(3) {
		a := roperator.Access{View: view, Box: func(task int, lo, hi []int64) {
			k := (int64(task) + d - 1 + tiles) % tiles
			lo[0], hi[0] = k*tile, (k+1)*tile
		}}
		c.Reads = append(c.Reads, a)
		c.Imports = append(c.Imports, roperator.Staged{Access: a, Index: int(d), At: d * tile, Pitch: []int64{1}})
	}
	c.Args = c.Args[2:] // it is told of no places
	c.Exports = []roperator.Staged{{Access: c.Writes[0], Pitch: []int64{1}}}
}
