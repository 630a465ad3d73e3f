package rkernels

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/ir"
)

// Custom is what the manifest of a converted kernel says beside that of other rKernels: how the kernel is launched,
// what its arguments are, and which operator of ONNX it carries out, if any. All numbers are formulas over the dims of
// its inputs and over integer attributes.
type Custom struct {
	Launch    Geometry   `yaml:"launch"`
	Arguments []Argument `yaml:"arguments"`
	Operator  *Operator  `yaml:"operator,omitempty"`
	Reference *Reference `yaml:"reference,omitempty"`
	Example   *Example   `yaml:"example,omitempty"`
}

// Geometry is how a kernel is launched. Its blocks become rTasks, of which x is the innermost index.
type Geometry struct {
	Grid   []string `yaml:"grid"`             // 1 to 3 formulas
	Block  []int    `yaml:"block"`            // 1 to 3 numbers
	Shared string   `yaml:"shared,omitempty"` // bytes of dynamic shared memory; "" for none
}

// Role says what an argument of a kernel is.
type Role string

const (
	RoleInput     Role = "input"     // a tensor that the kernel reads
	RoleOutput    Role = "output"    // a tensor that the kernel writes
	RoleScratch   Role = "scratch"   // memory that the kernel uses between its blocks
	RoleValue     Role = "value"     // a number: a formula
	RoleAttribute Role = "attribute" // a number: an attribute of the node
)

// Argument is an argument of a kernel.
type Argument struct {
	Name string `yaml:"name"`
	Role Role   `yaml:"role"`
	// Type is the element type of a tensor, or the type of a number where the source does not tell.
	Type string `yaml:"type,omitempty"`
	// Shape of an input names dims, which formulas can then use; a name that ends in "..." stands for any number of dims,
	// and formulas take it for their product. Shape of another tensor is formulas, or a name with "...".
	Shape []string `yaml:"shape,omitempty,flow"`
	// Initial is what an output or scratch memory holds when the kernel begins: "0", or the name of an input of the same
	// shape. Where it is "", the kernel writes every element.
	Initial string `yaml:"initial,omitempty"`
	// Unpassed is an input that is no argument of the kernel: an output that the kernel changes in place begins with it.
	Unpassed bool `yaml:"unpassed,omitempty"`
	// Box says which elements the block (bx, by, bz) reads of an input: for each dim "from:to", where to is not included.
	// Without it any block may read any element.
	Box []string `yaml:"box,omitempty,flow"`
	// Value is the formula of a number.
	Value string `yaml:"value,omitempty"`
	// Default is the value of an attribute that a node does not have; nil where nodes must have it.
	Default *float64 `yaml:"default,omitempty"`
}

// Operator is the operator of ONNX that a kernel carries out. Its inputs and outputs are the kernel's, in the order of
// the arguments. What it computes is said by the model, if it has a function of ONNX of that name, or else by Reference.
type Operator struct {
	Domain string `yaml:"domain"`
	Name   string `yaml:"name"`
}

// Example is a case on which a converted kernel is compared with the original.
type Example struct {
	Dims map[string]int64 `yaml:"dims"`
	// Large are dims that keep a GPU busy, for its times; where there are none, Dims.
	Large map[string]int64 `yaml:"large,omitempty"`
	// Ranges has, for inputs, from which number on and up to which one their elements are; 0 and 1 for real numbers, else
	// 0 and 100.
	Ranges map[string][2]float64 `yaml:"ranges,omitempty"`
	// Attributes has the values of attributes without a default.
	Attributes map[string]float64 `yaml:"attributes,omitempty"`
	// Tolerance is how far results may be apart, relative to the largest of them, where atomic operations may come in any
	// order. 0 asks for equal bits.
	Tolerance float64 `yaml:"tolerance,omitempty"`
}

// Tensor reports whether an argument with this role is a pointer.
func (r Role) Tensor() bool { return r == RoleInput || r == RoleOutput || r == RoleScratch }

// Threads is the number of threads of a block.
func (g *Geometry) Threads() int {
	n := 1
	for _, b := range g.Block {
		n *= b
	}
	return n
}

// At is extent d of the block, 1 where it is not given.
func (g *Geometry) At(d int) int {
	if d < len(g.Block) {
		return g.Block[d]
	}
	return 1
}

// mostThreads is how many threads CUDA allows in a block.
const mostThreads = 1024

// Check lists what is wrong with c.
func (c *Custom) Check() []string {
	var out []string
	fault := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if n := len(c.Launch.Grid); n < 1 || n > 3 {
		fault("launch: grid has %d extents, want 1 to 3", n)
	}
	if n := len(c.Launch.Block); n < 1 || n > 3 {
		fault("launch: block has %d extents, want 1 to 3", n)
	}
	if n := c.Launch.Threads(); n < 1 || n > mostThreads {
		fault("launch: a block has %d threads, want 1 to %d", n, mostThreads)
	}
	for _, f := range append(slices.Clone(c.Launch.Grid), c.Launch.Shared) {
		if _, err := ParseFormula(f); f != "" && err != nil {
			fault("launch: %v", err)
		}
	}
	if c.Reference != nil {
		if problem := c.Reference.check(); problem != "" {
			fault("%s", problem)
		}
	}
	names := map[string]bool{}
	for i := range c.Arguments {
		a := &c.Arguments[i]
		if names[a.Name] {
			fault("argument %s is there twice", a.Name)
		}
		names[a.Name] = true
		if problem := c.checkArgument(a); problem != "" {
			fault("argument %s: %s", a.Name, problem)
		}
	}
	return out
}

func (c *Custom) checkArgument(a *Argument) string {
	switch a.Role {
	case RoleInput, RoleOutput, RoleScratch:
		if _, ok := ir.ParseDType(a.Type); !ok {
			return fmt.Sprintf("type: %q is no element type; float32, float16, int32 and int64 are some", a.Type)
		}
		if a.Shape == nil {
			return "shape: is missing"
		}
		if len(a.Box) > 0 && len(a.Box) != len(a.Shape) {
			return fmt.Sprintf("box: has %d dims, the shape has %d", len(a.Box), len(a.Shape))
		}
		return c.checkInitial(a)
	case RoleValue:
		if _, err := ParseFormula(a.Value); err != nil {
			return fmt.Sprintf("value: %v", err)
		}
	case RoleAttribute:
	default:
		return fmt.Sprintf("role: %q is none of input, output, scratch, value, attribute", a.Role)
	}
	return ""
}

func (c *Custom) checkInitial(a *Argument) string {
	switch {
	case a.Initial == "" || a.Role != RoleInput && a.Initial == "0":
		return ""
	case a.Role == RoleInput:
		return "initial: an input has the elements that it has"
	}
	i := slices.IndexFunc(c.Arguments, func(b Argument) bool { return b.Name == a.Initial })
	if i < 0 || c.Arguments[i].Role != RoleInput {
		return fmt.Sprintf("initial: %q is neither 0 nor the name of an input", a.Initial)
	}
	if c.Arguments[i].Type != a.Type {
		return fmt.Sprintf("initial: %s is of another type", a.Initial)
	}
	return ""
}

// Passed lists the arguments that the kernel takes, in order.
func (c *Custom) Passed() []*Argument {
	var out []*Argument
	for i := range c.Arguments {
		if !c.Arguments[i].Unpassed {
			out = append(out, &c.Arguments[i])
		}
	}
	return out
}

// Tensors lists the arguments with a role, in order.
func (c *Custom) Tensors(role Role) []*Argument {
	var out []*Argument
	for i := range c.Arguments {
		if c.Arguments[i].Role == role {
			out = append(out, &c.Arguments[i])
		}
	}
	return out
}

// BindDims finds what the names in the shapes of the inputs stand for: shapes has those of the inputs of a node. A name
// with "..." also has its dims in rest.
func (c *Custom) BindDims(shapes [][]int64) (env map[string]int64, rest map[string][]int64, err error) {
	env, rest = map[string]int64{}, map[string][]int64{}
	inputs := c.Tensors(RoleInput)
	if len(shapes) != len(inputs) {
		return nil, nil, fmt.Errorf("has %d inputs, the kernel takes %d", len(shapes), len(inputs))
	}
	for i, a := range inputs {
		if err := bindShape(a, shapes[i], env, rest); err != nil {
			return nil, nil, err
		}
	}
	return env, rest, nil
}

func bindShape(a *Argument, dims []int64, env map[string]int64, rest map[string][]int64) error {
	mismatch := fmt.Errorf("input %s has the shape %v, the kernel takes %v", a.Name, dims, a.Shape)
	at := 0
	for i, name := range a.Shape {
		n := 1
		if many, ok := strings.CutSuffix(name, "..."); ok {
			if n = len(dims) - len(a.Shape) + 1; n < 0 || at+n > len(dims) {
				return mismatch
			}
			name = many
			if old, known := rest[name]; known && !slices.Equal(old, dims[at:at+n]) {
				return mismatch
			}
			rest[name] = dims[at : at+n]
		}
		if at+n > len(dims) {
			return mismatch
		}
		extent := ir.Count(dims[at : at+n])
		f, err := ParseFormula(name)
		if err != nil {
			return err
		}
		if _, known := env[name]; !known && f.isName() {
			env[name] = extent
		} else if want, err := evalIn(f, env); err != nil || want != extent {
			return fmt.Errorf("dim %d of %v: %s", i, mismatch, name)
		}
		at += n
	}
	if at != len(dims) {
		return mismatch
	}
	return nil
}

// ShapeOf computes the shape of a tensor that is not an input.
func (c *Custom) ShapeOf(a *Argument, env map[string]int64, rest map[string][]int64) ([]int64, error) {
	out := []int64{}
	for _, text := range a.Shape {
		if many, ok := strings.CutSuffix(text, "..."); ok {
			dims, known := rest[many]
			if !known {
				return nil, fmt.Errorf("%s: no input has dims %s", a.Name, text)
			}
			out = append(out, dims...)
			continue
		}
		n, err := FormulaValue(text, env)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.Name, err)
		}
		if n < 0 {
			return nil, fmt.Errorf("%s: the dim %s is %d", a.Name, text, n)
		}
		out = append(out, n)
	}
	return out, nil
}

// FormulaValue computes a formula in text form.
func FormulaValue(text string, env map[string]int64) (int64, error) {
	f, err := ParseFormula(text)
	if err != nil {
		return 0, err
	}
	return evalIn(f, env)
}

// Blocks computes the extents of the grid.
func (c *Custom) Blocks(env map[string]int64) (grid [3]int64, err error) {
	grid = [3]int64{1, 1, 1}
	for d, text := range c.Launch.Grid {
		if grid[d], err = FormulaValue(text, env); err != nil {
			return grid, err
		}
		if grid[d] < 0 {
			return grid, fmt.Errorf("the grid has the extent %s = %d", text, grid[d])
		}
	}
	return grid, nil
}

// DynamicBytes computes the bytes of dynamic shared memory.
func (c *Custom) DynamicBytes(env map[string]int64) (int64, error) {
	if c.Launch.Shared == "" {
		return 0, nil
	}
	return FormulaValue(c.Launch.Shared, env)
}

// evalIn computes a formula with the numbers that names stand for.
func evalIn(f *Formula, env map[string]int64) (int64, error) {
	return f.Eval(func(name string) (int64, bool) {
		v, ok := env[name]
		return v, ok
	})
}
