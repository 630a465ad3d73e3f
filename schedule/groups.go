package schedule

import (
	"slices"

	"github.com/rammerc/rammerc/vdevice"
)

// Of tiles of warp groups a launch can run few kinds: ptxas gives each instance of them in a kernel registers of its
// own, and when there are too many, it spills registers and lets no product begin before the one before has ended.

// groupsWait is how many times longer tiles of warp groups take then. Whole rPrograms of GoogLeNet and Inception took 2.5 and
// 2.1 times as long (bench/results/h200-groups.json). Without this factor Inception in fp32 is 11 % slower, and four
// programs of ResNet-50 are 1 to 5 % faster; why has not been looked into.
const groupsWait = 2.5

// groupsFactor is groupsWait for a wave whose kernel would hold too many instances of warp groups, otherwise 1. A wave
// that becomes a part of an rProgram is in one kernel with the waves before it.
func (s *scheduler) groupsFactor(wave []picked, cur *current) float64 {
	var n vdevice.Needs
	if cur.group.kind == vdevice.RProgram {
		n = cur.group.warpGroups
	}
	for _, x := range wave {
		x.choice.addWarpGroups(&n)
	}
	if n.GroupsSpill(s.spec) {
		return groupsWait
	}
	return 1
}

// addWarpGroups raises n to what the choice needs, if it multiplies by warp groups.
func (c *choice) addWarpGroups(n *vdevice.Needs) {
	if c.multipliesByGroups() {
		n.AddCandidate(c.c)
	}
}

func (c *choice) multipliesByGroups() bool { return c.c.Inst.Kernel.OnlyArch > 0 }

// withoutGroups picks for each rOperator the fastest candidate that does not multiply by warp groups, if there is one.
func (s *scheduler) withoutGroups(wave []int32) []picked {
	out, _ := s.pick(wave, func(choices []choice) *choice {
		others := slices.DeleteFunc(slices.Clone(choices), func(c choice) bool { return c.multipliesByGroups() })
		if len(others) == 0 {
			return fastest(choices)
		}
		best := fastest(others)
		return &choices[slices.IndexFunc(choices, func(c choice) bool { return c.c == best.c })]
	})
	return out
}

// groupsOfOne has, for each rOperator whose fastest candidate multiplies by warp groups, a selection in which it is the
// only one that does.
func groupsOfOne(fast, without []picked) (selections [][]picked) {
	for i := range fast {
		if fast[i].choice.multipliesByGroups() {
			one := slices.Clone(without)
			one[i] = fast[i]
			selections = append(selections, one)
		}
	}
	return selections
}
