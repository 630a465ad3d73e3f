package vdevice

import (
	"encoding/binary"
	"slices"

	"github.com/rammerc/rammerc/device"
)

// counterGroups decides which waits for flags become waits for counters. Every Front that rTasks wait for is a group
// of steps that could add to one counter. A step adds to one counter at most, so the groups are served in the order
// of the time that they would save, and each takes the steps that are left:
//
//	group 1: A B C D E    saves most: counter 0 has A B C D E
//	group 2: D E F G H    counter 1 has F G H; whoever waits for group 2 polls counter 1 and the flags of D and E
//
// By the model of device.Spec, polling n flags takes n-1 times WaitEach, and a counter takes AddTime for all that add
// to it. What counts is how many flags of the group an rTask really has to poll: its vEU may know of others already.
type counterGroups struct {
	index  map[string]int32
	groups []counterGroup
	users  []groupUser
}

// counterGroup is a set of steps that rTasks wait for together.
type counterGroup struct {
	at       []At    // sorted
	saved    float64 // what a counter for the whole group would save all who wait for it, in ns
	counters []int32 // counters to which only steps of the group add
}

// groupUser is a step that waits for groups.
type groupUser struct {
	at     At
	groups []int32
}

// smallestGroup is the fewest steps that may share a counter.
const smallestGroup = 3

// of returns the number of the group that the steps at at are, -1 if they are too few.
func (g *counterGroups) of(at []At) int32 {
	if len(at) < smallestGroup {
		return -1
	}
	key := make([]byte, 0, 8*len(at))
	for _, a := range at {
		key = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(key, uint32(a.VEU)), uint32(a.Order))
	}
	if id, ok := g.index[string(key)]; ok {
		return id
	}
	if g.index == nil {
		g.index = map[string]int32{}
	}
	id := int32(len(g.groups))
	g.index[string(key)] = id
	g.groups = append(g.groups, counterGroup{at: at})
	return id
}

// use notes that the step at at waits for all of fronts.
func (g *counterGroups) use(at At, fronts []*Front) {
	u := groupUser{at: at}
	for _, f := range fronts {
		if f.group >= 0 && !slices.Contains(u.groups, f.group) {
			u.groups = append(u.groups, f.group)
		}
	}
	if len(u.groups) > 0 {
		g.users = append(g.users, u)
	}
}

// count gives counters to the groups that save time by them, and replaces the waits for flags.
func (g *counterGroups) count(p *Program) {
	for i := range g.users {
		waits := p.stepAt(g.users[i].at).InOf(EdgeFlag)
		for _, id := range g.users[i].groups {
			group := &g.groups[id]
			group.saved += max(0, counterSaves(p.Spec, covered(waits, group.at), len(group.at)))
		}
	}
	var order []int32
	for id := range g.groups {
		if g.groups[id].saved > 0 {
			order = append(order, int32(id))
		}
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		switch x, y := g.groups[a].saved, g.groups[b].saved; {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	adders := g.assign(p, order)
	if len(adders) == 0 {
		return
	}
	for i := range g.users {
		g.replace(p, &g.users[i], adders)
	}
	p.settleCounters(len(adders))
}

// assign makes the steps of each group add to a new counter, as far as they add to none yet. It returns how many steps
// add to each counter.
func (g *counterGroups) assign(p *Program, order []int32) []int {
	var adders []int
	mine := map[int32]int{}
	for _, id := range order {
		group := &g.groups[id]
		var free []*Step
		clear(mine)
		for _, at := range group.at {
			s := p.stepAt(at)
			if c, ok := s.Adds(); ok {
				mine[c]++
			} else {
				free = append(free, s)
			}
		}
		if len(free) >= smallestGroup {
			c := int32(len(adders))
			for _, s := range free {
				s.announce(Meeting(EdgeCounter, c))
			}
			adders = append(adders, len(free))
			mine[c] = len(free)
		}
		for c, n := range mine {
			if n == adders[c] {
				group.counters = append(group.counters, c)
			}
		}
		slices.Sort(group.counters)
	}
	return adders
}

// replace exchanges a user's waits for flags for waits for counters where that saves time.
func (g *counterGroups) replace(p *Program, u *groupUser, adders []int) {
	s := p.stepAt(u.at)
	from, to := firstOf(s.In, EdgeFlag), firstOf(s.In, EdgeFlag+1)
	waits, rest := s.In[from:to], s.In[to:]
	var counters []Edge
	adds := func(e Edge, counter int32) bool {
		c, ok := p.stepAt(e.At).Adds()
		return ok && c == counter
	}
	for _, id := range u.groups {
		for _, c := range g.groups[id].counters {
			n := 0
			for _, w := range waits {
				if adds(w, c) {
					n++
				}
			}
			if counterSaves(p.Spec, n, adders[c]) <= 0 {
				continue
			}
			counters = append(counters, Meeting(EdgeCounter, c))
			waits = slices.DeleteFunc(waits, func(w Edge) bool { return adds(w, c) })
		}
	}
	if len(counters) > 0 {
		slices.SortFunc(counters, compareEdges)
		s.In = append(s.In[:from+len(waits)], rest...)
		s.SetIn(EdgeCounter, counters...)
	}
}

// covered counts the waits that are in at; both are sorted by vEU, with one for each.
func covered(waits []Edge, at []At) int {
	n, k := 0, 0
	for _, w := range waits {
		for k < len(at) && at[k].VEU < w.VEU {
			k++
		}
		if k < len(at) && at[k] == w.At {
			n++
		}
	}
	return n
}

func (p *Program) stepAt(at At) *Step { return &p.Steps[at.VEU][at.Order] }

// settleCounters drops counters that nobody waits for, numbers the others in the order in which steps first add to
// them, and leaves only those signals that somebody still waits for.
func (p *Program) settleCounters(counters int) {
	waited := make([]bool, counters)
	for _, steps := range p.Steps {
		for o := range steps {
			steps[o].SetOut(EdgeFlag)
			for _, e := range steps[o].InOf(EdgeCounter) {
				waited[e.Number()] = true
			}
		}
	}
	number := map[int32]int32{}
	for _, steps := range p.Steps {
		for o := range steps {
			s := &steps[o]
			for _, e := range s.In {
				if e.row().byFlag {
					p.stepAt(e.At).announce(Edge{Kind: EdgeFlag})
				}
			}
			c, adds := s.Adds()
			if !adds {
				continue
			}
			if !waited[c] {
				s.SetOut(EdgeCounter)
				continue
			}
			if _, ok := number[c]; !ok {
				number[c] = int32(len(number))
			}
			s.SetOut(EdgeCounter, Meeting(EdgeCounter, number[c]))
		}
	}
	for _, steps := range p.Steps {
		for o := range steps {
			in := steps[o].InOf(EdgeCounter)
			for i := range in {
				in[i] = Meeting(EdgeCounter, number[in[i].Number()])
			}
			if len(in) > 1 {
				slices.SortFunc(in, compareEdges)
			}
		}
	}
	p.Counters = len(number)
}

// WaitFor says how a Builder makes a step wait for n others that it does not know to be complete yet: how many words
// the step polls, and how much later, in ns, the last of them is set than the last flag would be.
func WaitFor(s *device.Spec, n int) (polled int, later float64) {
	if n >= smallestGroup && counterSaves(s, n, n) > 0 {
		return 1, s.AddTime(n)
	}
	return n, 0
}

// counterSaves is how much time a step saves, in ns, that polls one counter to which adders steps add instead of so
// many flags.
func counterSaves(s *device.Spec, flags, adders int) float64 {
	return float64(flags-1)*s.Cost.WaitEach - s.AddTime(adders)
}
