package codegen

import (
	"fmt"
	"strings"

	"github.com/rammerc/rammerc/vdevice"
)

// unrolled prints the program as the paper's Figure 9 does: a branch for each vEU with its steps in
// sequence. It is for reading and for comparison; the tables say the same in less code.
func (s *source) unrolled() {
	s.printf("\n  // The same program, spelled out.\n  template <class VEU>\n  RT_DEVICE static void unrolled(VEU& veu) {\n    veu.settle();\n")
	for i, seg := range s.plan.Segments {
		if seg.Kind != vdevice.RProgram {
			continue
		}
		u := unrolledSegment{s, s.segments[i].veus, seg.Program.Contributors(vdevice.EdgeCounter)}
		for v, steps := range seg.Program.Steps {
			if len(steps) == 0 {
				continue
			}
			s.printf("    if (veu.segment() == %d && veu.index() == %d) {\n", i, v)
			for order, st := range steps {
				u.step(order, st)
			}
			s.printf("      return;\n    }\n")
		}
	}
	s.printf("  }\n")
}

type unrolledSegment struct {
	*source
	veus      int
	additions [][]vdevice.At // per counter
}

func (s *unrolledSegment) step(order int, st vdevice.Step) {
	op := s.opIndex[st.Task.Op]
	u := s.ops[op]
	in := s.instances[u.instance]
	var waits []string
	for _, w := range st.InOf(vdevice.EdgeFlag) {
		waits = append(waits, fmt.Sprintf("{%d, %d}", w.VEU, w.Order))
	}
	for _, c := range st.InOf(vdevice.EdgeCounter) {
		waits = append(waits, fmt.Sprintf("{rt::kCounterWait | %d, %d}", s.veus+int(c.Number()), len(s.additions[c.Number()])))
	}
	if len(waits) > 0 {
		s.printf("      veu.barrier({%s}, {%d, %d, %d});\n", strings.Join(waits, ", "), order, op, st.Task.Index)
	}
	b := s.stream(op, st.Task.Index)
	s.printf("      veu.template step<kernels::%s>(device_%s[%d], {%d, %d, %d}, {%d, %d});  // %s\n", in.alias, argsName(in), u.row,
		order, op, st.Task.Index, b.chunkWords, b.chunks, comment(u.op.Name))
	add := 0
	if c, ok := st.Adds(); ok {
		add = s.veus + int(c)
	}
	if st.Signals() || add > 0 {
		s.printf("      veu.publish(%d, %t, %d);\n", order, st.Signals(), add)
	}
}
