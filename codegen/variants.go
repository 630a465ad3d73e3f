package codegen

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/rammerc/rammerc/codegen/abi"
	"github.com/rammerc/rammerc/vdevice"
)

// EmitVariants writes a library to compare several plans of one graph: one program, which one run of the
// compiler builds, with a C interface for each plan and a weights file that all share. Plan i has the
// prefix VariantName(opt.Name, i). Of a library's other files there are none.
func EmitVariants(plans []*vdevice.Plan, opt Options, sink Sink) error {
	opt.Name = abi.Identifier(opt.Name)
	b, err := newVariants(plans, opt)
	if err != nil {
		return err
	}
	if b.hash, err = writeFile(sink, opt.Name+".weights", b.writeWeights); err != nil {
		return err
	}
	headers := make([]string, len(b.parts))
	for i, p := range b.parts {
		headers[i] = p.header()
	}
	list := append(besideHeaders(),
		file{opt.Name + ".cu", b.writeVariants},
		file{opt.Name + ".h", text(strings.Join(headers, "\n"))},
		file{opt.Name + ".map", text(exportMap(opt.Name))})
	return writeFiles(sink, list)
}

// VariantName is the prefix of plan i in a library of variants.
func VariantName(name string, i int) string { return fmt.Sprintf("%s_%d", abi.Identifier(name), i) }

// newVariants lays the plans out. Constants have the same places for all; tables stand one behind the
// other.
func newVariants(plans []*vdevice.Plan, opt Options) (*layout, error) {
	b, err := beginParts(plans, opt)
	if err != nil {
		return nil, err
	}
	b.plan.Graph = plans[0].Graph
	var ops []usedOp
	for _, p := range b.parts {
		if p.plan.Graph != b.plan.Graph {
			panic("BUG: variants of different graphs")
		}
		ops = append(ops, p.ops...)
	}
	b.collectConstants(ops)
	for _, p := range b.parts {
		p.owner = b
		p.consts, p.constAt, p.weightBytes = nil, b.constAt, b.weightBytes
		p.tableBytes = b.tableBytes
		if err := p.finish(b.parts); err != nil {
			return nil, err
		}
		b.tableBytes = p.tableBytes
	}
	b.countOps()
	return b, nil
}

// writeVariants writes NAME.cu.
func (l *layout) writeVariants(w io.Writer) error {
	s := &source{l, bufio.NewWriterSize(w, 1<<18)}
	if err := s.sharedProgram("plans", fmt.Sprintf("#include \"%s.h\"\n\n", l.opt.Name)); err != nil {
		return err
	}
	for _, p := range l.parts {
		s.partTables(p)
	}
	s.printf("}  // namespace\n\n")
	for _, p := range l.parts {
		(&source{p, s.w}).interfaceCode()
	}
	return s.w.Flush()
}
