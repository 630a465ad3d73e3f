package codegen

import (
	"fmt"
	"slices"

	"github.com/rammerc/rammerc/ir/axes"
	"github.com/rammerc/rammerc/roperator"
)

// liveSizes are the most rules of rTasks with nothing to do that an rOperator of the program has, and the most members of
// its Args that follow from extents which the device finds. Both are 0 where all extents are the same in all runs.
type liveSizes struct{ rules, members int }

// sizesOf are the sizes for all parts of a program.
func sizesOf(program []*layout) liveSizes {
	var most liveSizes
	for _, l := range program {
		if l.general() {
			most.rules = max(most.rules, 1)
		}
		for _, u := range l.ops {
			most.rules = max(most.rules, len(l.rulesOf(u.cand)))
			if len(u.cand.Counts)+len(u.cand.Conditions) > 0 {
				most.members = max(most.members, 1, len(l.foundMembers(u.cand)))
			}
		}
	}
	return most
}

// argsType is the C++ type of a row of arguments of an instance.
func (l *layout) argsType(in instance) string {
	if l.live.rules > 0 {
		return fmt.Sprintf("rt::GeneralArgs<kernels::%s::Args, %d, %d>", in.alias, l.live.rules, l.live.members)
	}
	return "kernels::" + in.alias + "::Args"
}

// liveSizeConstants writes what the executor must know of the rows of arguments.
func (s *source) liveSizeConstants() {
	if s.live.rules == 0 {
		return
	}
	s.printf("  static constexpr int kRules = %d;  // of rTasks with nothing to do, for an rOperator\n"+
		"  static constexpr int kMembers = %d;  // of Args that follow from what the device finds\n"+
		"  static constexpr int kArgsBytes =  // with both\n"+
		"      Needs::kArgsBytes + kRules * static_cast<int>(sizeof(rt::LiveRule)) + %d;\n", s.live.rules,
		s.live.members,
		alignUp(int64(4+12*s.live.members), 16))
}

// liveRule says from which index on rTask t writes along axes of a range: (t / div mod mod) · step, or further.
type liveRule struct{ div, mod, step int64 }

// rangeRule is the rule of an rOperator for a range. count is where the device finds its extent, nil if the host knows
// it. A rule for a condition is that of a range whose extent is 1 where the condition holds, and otherwise 0.
type rangeRule struct {
	liveRule
	number int // of the range
	most   int64
	count  *roperator.View
	found  string // what is at count, as rt::Found spells it
}

// rulesOf are the rules of a candidate for its conditions, and for the ranges that matter to it.
func (l *layout) rulesOf(c *roperator.Candidate) []rangeRule {
	var out []rangeRule
	for i := range c.Conditions {
		x := &c.Conditions[i]
		found := "kTrue"
		if x.Not {
			found = "kFalse"
		}
		out = append(out, rangeRule{liveRule{1, 1, 1}, 0, 1, &x.View, found})
	}
	for r, rule := range liveRules(c, l.plan.Graph) {
		x := rangeRule{rule, r, l.plan.Graph.Ranges[r].Hi, nil, "kExtent"}
		told := slices.ContainsFunc(c.Live, func(m roperator.LiveArg) bool { return m.Axis.Has(r) })
		if i := slices.IndexFunc(c.Counts, func(n roperator.Count) bool { return n.Range == r }); i >= 0 {
			x.count = &c.Counts[i].View
		}
		counted := l.plan.Graph.Ranges[r].Counted
		if counted && x.count != nil && (rule.step > 0 || told) || !counted && rule.step > 0 {
			out = append(out, x)
		}
	}
	return out
}

// foundFactor is the range among the factors of an axis whose extent the device finds, or -1. rKernels are told the extents
// of axes with one such factor alone (axes.begins).
func (l *layout) foundFactor(a axes.Axis) int {
	for _, f := range a {
		if f.Symbol != axes.Static && l.plan.Graph.Ranges[f.Symbol].Counted {
			return f.Symbol
		}
	}
	return -1
}

// foundMembers are the members of a candidate's Args that follow from extents which the device finds.
func (l *layout) foundMembers(c *roperator.Candidate) []roperator.LiveArg {
	return slices.DeleteFunc(slices.Clone(c.Live), func(m roperator.LiveArg) bool { return l.foundFactor(m.Axis) < 0 })
}

// liveTrees are the initialisers of the rules and members of an rOperator, with the largest extents.
func (s *source) liveTrees(u usedOp) []tree {
	rules := s.rulesOf(u.cand)
	live := tree{head: ".live = ", list: true}
	found := "rt::kNothingFound"
	for _, r := range rules {
		text := fmt.Sprintf("{%d, %d, %d, %d, %d", r.div, r.mod, r.step, r.most, r.number)
		if r.count != nil {
			text += fmt.Sprintf(", rt::%s, {%s}", r.found, s.ref(r.count.Ref()))
			if r.found == "kExtent" {
				found = "rt::kExtentsFound"
			} else if found == "rt::kNothingFound" {
				found = "rt::kOnlyConditions"
			}
		}
		live.items = append(live.items, tree{head: text + "}"})
	}
	if found == "rt::kNothingFound" {
		return []tree{live}
	}
	list := tree{head: ".member = ", list: true}
	for _, m := range s.foundMembers(u.cand) {
		r := s.foundFactor(m.Axis)
		at := slices.IndexFunc(rules, func(x rangeRule) bool { return x.found == "kExtent" && x.number == r })
		list.items = append(list.items, tree{head: fmt.Sprintf("{offsetof(kernels::%s::Args, %s), %d, %d}",
			s.instances[u.instance].alias, m.Member, at, m.Axis.Largest()/s.plan.Graph.Ranges[r].Hi)})
	}
	members := tree{head: ".members = ", list: true, items: []tree{{head: ".found = " + found}}}
	if len(list.items) > 0 {
		members.items = append(members.items, list)
	}
	return []tree{live, members}
}

// liveRules finds the rules of a candidate, one for each range.
func liveRules(c *roperator.Candidate, g *roperator.Graph) []liveRule {
	first := make([][]int64, c.Tasks)
	for t := range first {
		first[t] = c.FirstLive(g.Buffers, len(g.Ranges), t)
	}
	out := make([]liveRule, len(g.Ranges))
	for s := range out {
		out[s] = ruleOf(first, s)
	}
	return out
}

// ruleOf finds a rule for range s. first has the first indices of all rTasks, or lower bounds; a rule must not be above
// them. Where there is none, the rule says 0 of all rTasks.
func ruleOf(first [][]int64, s int) liveRule {
	n := int64(len(first))
	r := liveRule{div: 1, mod: n, step: 0}
	for r.div < n && first[r.div][s] == 0 {
		r.div++
	}
	if r.div == n {
		return liveRule{1, 1, 0}
	}
	r.step = first[r.div][s]
	for r.mod = 1; r.mod*r.div < n && first[r.mod*r.div][s] != 0; {
		r.mod++
	}
	for t := range n {
		if t/r.div%r.mod*r.step > first[t][s] {
			return liveRule{1, 1, 0}
		}
	}
	return r
}
