package rkernels

import (
	"fmt"
	"go/ast"
	"go/token"
	"path/filepath"
	"strings"

	"github.com/rammerc/rammerc/ir"
)

// Reference is a function in Python that says what an operator computes, for models that have no function for it. It
// takes an array of numpy for each input, and the attributes by name, and returns an array for each output.
type Reference struct {
	Python   string `yaml:"python"`   // a file beside the manifest
	Function string `yaml:"function"` // its name there
}

func (r *Reference) check() string {
	if !filepath.IsLocal(r.Python) || filepath.Ext(r.Python) != ".py" {
		return fmt.Sprintf("reference: python: %q is no file name.py beside the specification", r.Python)
	}
	if r.Function == "" {
		return "reference: function: is missing"
	}
	return ""
}

// Reference is the node's meaning by the reference of a kernel that a user has brought: the attributes of a node of the
// operator Reference. values are the numbers among the attributes of the model's node. ok is false if the kernel has no
// reference.
func (k *Kernel) Reference(values map[string]float64) (attrs ir.Attrs, ok bool, err error) {
	c := k.Custom
	if c.Reference == nil {
		return nil, false, nil
	}
	all, env, err := c.Attributes(values)
	if err != nil {
		return nil, true, err
	}
	names, numbers := []string{}, []float64{}
	for _, a := range c.Tensors(RoleAttribute) {
		names, numbers = append(names, a.Name), append(numbers, all[a.Name])
	}
	file, function := k.ReferenceFunction()
	attrs = ir.Attrs{
		"file": ir.StringAttr(file), "function": ir.StringAttr(function),
		"value_names": ir.StringsAttr(names...), "values": ir.FloatsAttr(numbers...),
	}
	var inputs, outputs, types []string
	for _, a := range c.Tensors(RoleInput) {
		text, err := dimsText(a, env)
		if err != nil {
			return nil, true, err
		}
		inputs = append(inputs, text)
	}
	for _, a := range c.Tensors(RoleOutput) {
		text, err := dimsText(a, env)
		if err != nil {
			return nil, true, err
		}
		outputs, types = append(outputs, text), append(types, a.Type)
	}
	attrs["inputs"], attrs["outputs"] = ir.StringsAttr(inputs...), ir.StringsAttr(outputs...)
	attrs["types"] = ir.StringsAttr(types...)
	return attrs, true, nil
}

// ReferenceFunction is the file and the name of the function in Python that is the kernel's reference, "" for none.
func (k *Kernel) ReferenceFunction() (file, function string) {
	if k.Custom.Reference == nil {
		return "", ""
	}
	return filepath.Join(k.folder, k.Custom.Reference.Python), k.Custom.Reference.Function
}

// Attributes are the kernel's attributes, with their defaults, and the integers among them as formulas know them.
func (c *Custom) Attributes(values map[string]float64) (all map[string]float64, env map[string]int64, err error) {
	all, env = map[string]float64{}, map[string]int64{}
	for _, a := range c.Tensors(RoleAttribute) {
		v, given := values[a.Name]
		if !given && a.Default == nil {
			return nil, nil, fmt.Errorf("the attribute %s is missing", a.Name)
		}
		if !given {
			v = *a.Default
		}
		if all[a.Name] = v; v == float64(int64(v)) {
			env[a.Name] = int64(v)
		}
	}
	return all, env, nil
}

// dimsText is a shape as the operator Reference has it.
func dimsText(a *Argument, env map[string]int64) (string, error) {
	var out []string
	for _, text := range a.Shape {
		if strings.HasSuffix(text, "...") {
			out = append(out, text)
			continue
		}
		f, err := ParseFormula(text)
		if err != nil {
			return "", err
		}
		d, err := dimOf(f.expr, env, text)
		if err != nil {
			return "", err
		}
		out = append(out, d.String())
	}
	return strings.Join(out, ";"), nil
}

// dimOf is a formula as a dim, of which the names that env lacks are symbols.
func dimOf(e ast.Expr, env map[string]int64, text string) (ir.Dim, error) {
	var a, b ir.Dim
	var err error
	operands := func(x, y ast.Expr) {
		if a, err = dimOf(x, env, text); err == nil {
			b, err = dimOf(y, env, text)
		}
	}
	switch e := e.(type) {
	case *ast.Ident:
		if n, ok := env[e.Name]; ok {
			return ir.D(n), nil
		}
		return ir.ParseDim(e.Name)
	case *ast.ParenExpr:
		return dimOf(e.X, env, text)
	case *ast.BinaryExpr:
		if operands(e.X, e.Y); err != nil {
			return a, err
		}
		switch e.Op {
		case token.ADD:
			return a.Add(b), nil
		case token.SUB:
			return a.Sub(b), nil
		case token.MUL:
			return a.Mul(b), nil
		}
		if n, known := b.Const(); known && n == 0 {
			return a, fmt.Errorf("formula %q: division by zero", text)
		}
		if e.Op == token.QUO {
			return a.FloorDiv(b), nil
		}
		return a.Sub(a.FloorDiv(b).Mul(b)), nil
	case *ast.CallExpr:
		if _, err := evalCall(e, func(string) (int64, bool) { return 1, true }, text); err != nil {
			return a, err
		}
		if operands(e.Args[0], e.Args[1]); err != nil {
			return a, err
		}
		if e.Fun.(*ast.Ident).Name == "max" {
			return a.Max(b), nil
		}
		return a.Min(b), nil
	}
	n, err := evalExpr(e, func(string) (int64, bool) { return 0, false }, text)
	return ir.D(n), err
}
