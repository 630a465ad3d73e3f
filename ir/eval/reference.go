package eval

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	bin "encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/internal/process"
	"github.com/rammerc/rammerc/internal/toolchain"
	"github.com/rammerc/rammerc/ir"
)

// referee runs the function of a reference in a Python process.
//
//go:embed reference.py
var referee string

// missingNumpy is the status with which reference.py says that it has no numpy.
const missingNumpy = 3

// referencePort is an input for reference.py.
type referencePort struct {
	Type string  `json:"type"`
	Dims []int64 `json:"dims"`
}

// referenceCall is the first line that reference.py reads. Elements of the inputs follow.
type referenceCall struct {
	File       string          `json:"file"`
	Function   string          `json:"function"`
	Attributes map[string]any  `json:"attributes"`
	Inputs     []referencePort `json:"inputs"`
	Types      []string        `json:"types"` // of the outputs
}

// reference computes an operator of the user's by a function in Python.
func reference(c *call) []*ir.Tensor {
	where := c.Attrs["file"].S + ": " + c.Attrs["function"].S
	if len(c.Attrs["values"].Floats) != len(c.Attrs["value_names"].Strs) || slices.Contains(c.in, nil) {
		fail("an input is missing, or a value without a name")
	}
	var given [][]int64
	for _, t := range c.in {
		given = append(given, t.Dims)
	}
	types, want, problem := ir.ReferenceResults(c.Node, given)
	if problem != "" {
		fail("%s", problem)
	}
	out := bufio.NewReader(bytes.NewReader(c.askPython(where)))
	line, err := out.ReadBytes('\n')
	var dims [][]int64
	if err == nil {
		err = json.Unmarshal(line, &dims)
	}
	if err != nil {
		fail("%s: the answer of Python cannot be read: %v", where, err)
	}
	if len(dims) != len(want) {
		fail("%s returns %d arrays, the operator has %d outputs", where, len(dims), len(want))
	}
	var list []*ir.Tensor
	for i, extents := range want {
		if !slices.Equal(extents, dims[i]) {
			fail("%s returns the shape %v, by the kernel's rule output %d has %v", where, dims[i], i, extents)
		}
		t := c.alloc(types[i], extents)
		if err := bin.Read(out, bin.LittleEndian, t.Data); err != nil {
			fail("%s: the answer of Python ends early: %v", where, err)
		}
		list = append(list, t)
	}
	return list
}

// askPython runs the function, and gives what it answers.
func (c *call) askPython(where string) []byte {
	q := referenceCall{File: c.Attrs["file"].S, Function: c.Attrs["function"].S, Attributes: map[string]any{},
		Types: c.Attrs["types"].Strs}
	values := c.Attrs["values"].Floats
	for i, name := range c.Attrs["value_names"].Strs {
		if q.Attributes[name] = values[i]; values[i] == math.Trunc(values[i]) && math.Abs(values[i]) < 1<<53 {
			q.Attributes[name] = int64(values[i])
		}
	}
	for _, t := range c.in {
		q.Inputs = append(q.Inputs, referencePort{t.DType.String(), append([]int64{}, t.Dims...)})
	}
	head, err := json.Marshal(q)
	if err != nil {
		fail("%s: %v", where, err)
	}
	in := bytes.NewBuffer(append(head, '\n'))
	for _, t := range c.in {
		if err := bin.Write(in, bin.LittleEndian, t.Data); err != nil {
			fail("%s: an input of %v cannot be handed to Python", where, t.DType)
		}
	}
	python := process.Python()
	cmd := process.Command(context.Background(), python, "-c", referee)
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, &said
	if err := process.Run(cmd); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() != missingNumpy {
			lines := strings.Split(strings.TrimSpace(said.String()), "\n")
			fail("%s: %s", where, lines[len(lines)-1])
		}
		missing := "a Python with numpy"
		if exit != nil {
			missing = "the Python package numpy"
		}
		panic(failure{fmt.Errorf("%s: %w", where, &toolchain.Missing{Tool: missing,
			Help: "the operator's reference needs it; " + process.PythonVariable + " names a Python that has it"})})
	}
	return out.Bytes()
}
