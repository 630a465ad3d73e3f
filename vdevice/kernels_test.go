package vdevice

import (
	"testing"

	"github.com/rammerc/rammerc/device"
)

// needsOf joins the needs of a launch's instances, of which each multiplies by warp groups, with so many registers.
func needsOf(registers int, instances ...string) Needs {
	var n Needs
	for _, key := range instances {
		n.Join(Needs{Threads: 256, Registers: registers, StreamStep: 16384, WarpGroups: key + "\n"})
	}
	return n
}

// Launches have the same kernel if they run the same instances of warp groups, in whatever order.
func TestKernelsOfWarpGroups(t *testing.T) {
	spec, err := device.Find("h200")
	if err != nil {
		t.Fatal(err)
	}
	scalar := Needs{Threads: 256, Registers: 64}
	for name, c := range map[string]struct {
		rule kernelRule
		a, b Needs
		same bool
	}{
		"one instance":    {kernelRule{}, needsOf(168, "x"), needsOf(168, "x"), true},
		"another":         {kernelRule{}, needsOf(168, "x"), needsOf(168, "y"), false},
		"two of them":     {kernelRule{}, needsOf(168, "x", "y"), needsOf(168, "y", "x", "y"), true},
		"one of two":      {kernelRule{}, needsOf(168, "x", "y"), needsOf(168, "y"), false},
		"small ones":      {kernelRule{one: true}, needsOf(64, "x"), needsOf(64, "y"), false},
		"none":            {kernelRule{one: true}, scalar, scalar, true},
		"of one rProgram": {kernelRule{persistent: true}, needsOf(168, "x"), needsOf(168, "y"), true},
	} {
		c.rule.spec = spec
		if a, b := c.rule.classOf(c.a), c.rule.classOf(c.b); (a == b) != c.same {
			t.Errorf("%s: classes %+v and %+v", name, a, b)
		}
	}
}

// Of instances of warp groups in one kernel each has registers of its own: two large ones are too many for a thread.
func TestGroupsSpill(t *testing.T) {
	spec, err := device.Find("h200")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		needs Needs
		want  bool
	}{
		"one large":      {needsOf(168, "x"), false},
		"the same twice": {needsOf(168, "x", "x"), false},
		"two large":      {needsOf(168, "x", "y"), true},
		"two small":      {needsOf(90, "x", "y"), false},
		"four small":     {needsOf(90, "x", "y", "z", "w"), true},
	} {
		if got := c.needs.GroupsSpill(spec); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
