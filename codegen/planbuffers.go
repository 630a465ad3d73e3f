package codegen

import (
	"bufio"
	"encoding/json"
	"fmt"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/roperator"
)

// planBuffer is a tensor that rTasks read or write, in NAME.plan.json.
type planBuffer struct {
	Name   string `json:"name"` // the value of the graph that it holds
	Kind   string `json:"kind"` // "arena", "input" or "output"
	DType  string `json:"dtype"`
	Bytes  int64  `json:"bytes"`
	Offset int64  `json:"offset"` // in the arena; -1 for inputs, outputs, and what is only handed over as tagged words
}

// planBuffers are the tensors of a plan, numbered in the order of their first uses.
type planBuffers struct {
	index map[int]int // by Buffer.ID
	list  []planBuffer
}

// of lists the numbers of the buffers that accesses are of, each once.
func (p *planBuffers) of(l *layout, accesses []roperator.Access) []int {
	out := []int{}
	seen := map[int]bool{}
	for _, a := range accesses {
		b := a.View.Buf
		if b.Kind == roperator.Const || seen[b.ID] {
			continue
		}
		seen[b.ID] = true
		n, known := p.index[b.ID]
		if !known {
			n = len(p.list)
			p.index[b.ID] = n
			offset := int64(-1)
			if b.ID < len(l.plan.Arena) {
				offset = l.plan.Arena[b.ID]
			}
			p.list = append(p.list, planBuffer{b.Name, b.Kind.String(), b.DType.String(), b.Bytes(), offset})
		}
		out = append(out, n)
	}
	return out
}

func (p *planBuffers) write(b *bufio.Writer) error {
	fmt.Fprint(b, " \"buffers\": [")
	for i, x := range p.list {
		line, err := json.Marshal(x)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "%s\n  %s", comma(i), diag.PrintableJSON(line))
	}
	fmt.Fprint(b, "],\n")
	return nil
}
