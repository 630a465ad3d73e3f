package codegen

import (
	"fmt"
	"slices"

	"github.com/rammerc/rammerc/vdevice"
)

// kernel is a CUDA kernel of the program: a struct in C++ with the bodies of the instances that its launches run.
type kernel struct {
	vdevice.Kernel
	serves []bool // by number of the instance
	parts  parts  // that its launches use
}

// useKernels finds out which kernels the program of the given layouts has, and their rings of weights. A kernel of
// rPrograms must hold all that any launch of the plan needs. So among a general program and its special ones, those with
// rPrograms have kernels of their own, which come first. So has the program of a prompt: its launches come once in an
// answer, and what they need shall cost the steps nothing.
func (l *layout) useKernels(program []*layout) {
	groups := [][]*layout{program}
	if program[0].opt.beside() {
		groups = [][]*layout{nil, nil, nil}
		for _, p := range program {
			g := 1
			switch {
			case p.prompt:
				g = 2
			case p.plan.Persistent():
				g = 0
			}
			groups[g] = append(groups[g], p)
		}
	}
	l.kernels = nil
	for _, group := range groups {
		if len(group) == 0 {
			continue
		}
		all := *group[0].plan
		all.Segments = nil
		for _, p := range group {
			all.Segments = append(all.Segments, p.plan.Segments...)
		}
		list, first := all.Kernels(), len(l.kernels)
		for _, k := range list {
			l.kernels = append(l.kernels, kernel{Kernel: k, serves: make([]bool, len(l.instances))})
		}
		rings := all.RingOf(list)
		rings.StageBytes = max(rings.StageBytes, l.rings.StageBytes)
		l.rings = rings
		if slices.Contains(group, l) {
			of := all.KernelOf(list)
			l.kernelOf = func(n vdevice.Needs) int { return first + of(n) }
		}
	}
}

// kernelFor is the number of the kernel of a launch of the given rTasks, which serves their instances from then on.
func (l *layout) kernelFor(tasks []vdevice.Task) int {
	var n vdevice.Needs
	used, last := map[int]bool{}, int32(-1)
	for _, t := range tasks {
		if t.Op == last {
			continue
		}
		last = t.Op
		if u := l.ops[l.opIndex[t.Op]]; !used[u.instance] {
			used[u.instance] = true
			n.AddCandidate(u.cand)
		}
	}
	k := l.kernelOf(n)
	for i := range used {
		l.kernels[k].serves[i] = true
	}
	return k
}

// joinKernels says of the kernels of a shared program which instances they serve in any of its models, and what the
// launches use.
func (l *layout) joinKernels() {
	for _, p := range l.parts {
		for k := range p.kernels {
			for i, serves := range p.kernels[k].serves {
				l.kernels[k].serves[i] = l.kernels[k].serves[i] || serves
			}
			l.kernels[k].parts.add(p.kernels[k].parts)
		}
	}
}

// Kernel is what NAME.plan.json says of a CUDA kernel of the program.
type Kernel struct {
	Name      string `json:"name"`          // of the C++ struct
	Blocks    int    `json:"blocks_per_sm"` // that a multiprocessor must have registers for
	Ring      bool   `json:"ring"`          // whether its blocks may have a loader of weights
	Threads   int    `json:"threads"`       // of a block, the loader's not counted
	Registers int    `json:"registers"`     // of a thread, by the estimates of the rKernels' manifests
	// Instances are those that its launches run, by the names that reports have for them.
	Instances []string `json:"instances"`
}

func (l *layout) describeKernels() []Kernel {
	out := make([]Kernel, 0, len(l.kernels))
	for i := range l.kernels {
		k := &l.kernels[i]
		d := Kernel{Name: kernelName(i), Blocks: k.Blocks, Ring: k.Rings, Threads: k.Needs.Threads,
			Registers: k.Needs.Registers, Instances: []string{}}
		for n, serves := range k.serves {
			if serves {
				d.Instances = append(d.Instances, l.instances[n].label)
			}
		}
		out = append(out, d)
	}
	return out
}

// kernelName is the C++ name of a kernel's struct.
func kernelName(k int) string { return fmt.Sprintf("Kernel%d", k) }

// kernelNote says what tells a kernel from the others.
func kernelNote(k *kernel) string {
	ring := "streaming weights"
	if k.StageBytes == 0 {
		ring = "none of which streams weights"
	}
	return fmt.Sprintf("Launches %s, of which a multiprocessor holds %s", ring, count(k.Blocks, "block"))
}
