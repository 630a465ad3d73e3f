package rkernels

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
)

// Formula is an integer expression over template parameters, written in a manifest: + - * / % and
// parentheses, max(a, b), min(a, b).
type Formula struct {
	text string
	expr ast.Expr
}

// ParseFormula parses text.
func ParseFormula(text string) (*Formula, error) {
	e, err := parser.ParseExpr(text)
	if err != nil {
		return nil, fmt.Errorf("formula %q: %v", text, err)
	}
	return &Formula{text, e}, nil
}

// Eval computes the formula. parameter says what a parameter is, and whether there is one of that name.
func (f *Formula) Eval(parameter func(name string) (int64, bool)) (int64, error) {
	return evalExpr(f.expr, parameter, f.text)
}

func evalExpr(e ast.Expr, parameter func(name string) (int64, bool), text string) (int64, error) {
	switch e := e.(type) {
	case *ast.BasicLit:
		return strconv.ParseInt(e.Value, 0, 64)
	case *ast.Ident:
		if v, ok := parameter(e.Name); ok {
			return v, nil
		}
		return 0, fmt.Errorf("formula %q: unknown parameter %s", text, e.Name)
	case *ast.ParenExpr:
		return evalExpr(e.X, parameter, text)
	case *ast.BinaryExpr:
		a, err := evalExpr(e.X, parameter, text)
		if err != nil {
			return 0, err
		}
		b, err := evalExpr(e.Y, parameter, text)
		if err != nil {
			return 0, err
		}
		return applyBinary(e.Op, a, b, text)
	case *ast.CallExpr:
		return evalCall(e, parameter, text)
	}
	return 0, fmt.Errorf("formula %q: cannot use %T", text, e)
}

func applyBinary(op token.Token, a, b int64, text string) (int64, error) {
	switch op {
	case token.ADD:
		return a + b, nil
	case token.SUB:
		return a - b, nil
	case token.MUL:
		return a * b, nil
	case token.QUO, token.REM:
		if b == 0 {
			return 0, fmt.Errorf("formula %q: division by zero", text)
		}
		if op == token.QUO {
			return a / b, nil
		}
		return a % b, nil
	}
	return 0, fmt.Errorf("formula %q: cannot use operator %s", text, op)
}

func evalCall(e *ast.CallExpr, parameter func(name string) (int64, bool), text string) (int64, error) {
	fn, ok := e.Fun.(*ast.Ident)
	if !ok || len(e.Args) != 2 || fn.Name != "max" && fn.Name != "min" {
		return 0, fmt.Errorf("formula %q: only max(a, b) and min(a, b) can be called", text)
	}
	a, err := evalExpr(e.Args[0], parameter, text)
	if err != nil {
		return 0, err
	}
	b, err := evalExpr(e.Args[1], parameter, text)
	if err != nil {
		return 0, err
	}
	if fn.Name == "max" {
		return max(a, b), nil
	}
	return min(a, b), nil
}

// isName reports whether the formula is a single name.
func (f *Formula) isName() bool {
	_, ok := f.expr.(*ast.Ident)
	return ok
}
