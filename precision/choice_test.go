package precision

import (
	"testing"

	"github.com/rammerc/rammerc/ir"
)

func TestParseRule(t *testing.T) {
	r, err := ParseRule("/a=b/*=tf32")
	if err != nil || r.Pattern != "/a=b/*" || r.Precision != TF32 || r.String() != "/a=b/*=tf32" {
		t.Errorf("got %+v, %v", r, err)
	}
	for _, bad := range []string{"", "conv", "=tf32", "conv=fp31", "conv="} {
		if r, err := ParseRule(bad); err == nil {
			t.Errorf("%q is read as %+v", bad, r)
		}
	}
}

func TestMatches(t *testing.T) {
	cases := []struct {
		pattern, name, op string
		want              bool
	}{
		{"/conv1/Conv", "/conv1/Conv", "Conv", true},
		{"Conv", "/conv1/Conv", "Conv", true},
		{"conv", "/conv1/Conv", "Conv", false},
		{"/conv1/*", "/conv1/a/b", "Conv", true},
		{"/conv?/*", "/conv12/a", "Conv", false},
		{"*/Conv", "/conv1/Conv", "Conv", true},
		{"*onv1*a*", "/conv1/b/a", "Conv", true},
		{"/conv1", "/conv1/Conv", "Conv", false},
		{"Co*", "/conv1/Conv", "Conv", false}, // wildcards are for names
	}
	for _, c := range cases {
		if got := (Rule{Pattern: c.pattern}).Matches(ir.Origin{Name: c.name, OpType: c.op}); got != c.want {
			t.Errorf("%q matches %s (%s): %t", c.pattern, c.name, c.op, got)
		}
	}
}

func rules(t *testing.T, list ...string) (out []Rule) {
	t.Helper()
	for _, text := range list {
		r, err := ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// TestOf: the last rule that names a node holds, and in a group one that names the anchor.
func TestOf(t *testing.T) {
	node := func(op, name string) *ir.Node {
		return &ir.Node{Op: op, Name: name, Origins: []ir.Origin{{Name: name, OpType: op}}}
	}
	conv, relu := node("Conv", "c1"), node("Relu", "r1")
	fused := &ir.Node{
		Op: "Fused", Domain: ir.InternalDomain, Origins: []ir.Origin{conv.Origins[0], relu.Origins[0]},
		Attrs: ir.Attrs{
			"anchor": ir.StringAttr("Conv"),
			"body":   {Kind: ir.AttrGraph, G: &ir.Graph{Nodes: []*ir.Node{conv, relu}}},
		},
	}
	cases := []struct {
		rules []string
		n     *ir.Node
		want  Precision
	}{
		{nil, conv, FP16},
		{[]string{"x=tf32"}, conv, FP16},
		{[]string{"Conv=tf32", "c1=strict"}, conv, Strict},
		{[]string{"c1=strict", "Conv=tf32"}, conv, TF32},
		{[]string{"Conv=tf32", "Relu=strict"}, fused, TF32},
		{[]string{"Relu=strict"}, fused, Strict},
	}
	for _, c := range cases {
		choice := Choice{FP16, rules(t, c.rules...)}
		if got := choice.Of(c.n); got != c.want {
			t.Errorf("%v: %s is %v, want %v", choice, c.n.Op, got, c.want)
		}
	}
}

func TestUnmatched(t *testing.T) {
	g := &ir.Graph{Nodes: []*ir.Node{{Op: "Conv", Origins: []ir.Origin{{Name: "c1", OpType: "Conv"}}}}}
	c := Choice{FP32, rules(t, "c?=tf32", "c2=tf32", "Gemm=fp16", "Conv=bf16")}
	got := c.Unmatched(g)
	if len(got) != 2 || got[0].Pattern != "c2" || got[1].Pattern != "Gemm" {
		t.Errorf("unmatched: %v", got)
	}
	if c.Coarsest() != BF16 || All(Strict).Coarsest() != Strict {
		t.Errorf("coarsest: %v, %v", c.Coarsest(), All(Strict).Coarsest())
	}
}
