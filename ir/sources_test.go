package ir

import "testing"

func TestInputsBehind(t *testing.T) {
	g, err := ParseText("t", []byte(`graph "g" (%a: float32[2], %b: int64[1], %c: bool[], %d: float32[2]) {
  %k = const float32[2] {1, 2}
  %e: float32[2] = Add(%a, %k)
  %f: float32[2] = If(%c) {else_branch = graph "e" () {
    return %e
  }, then_branch = graph "t" () {
    %h: float32[2] = Reshape(%a, %b)
    return %h
  }}
  return %f, %d
}
`), ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, v := range InputsBehind(g.Outputs[0]) {
		got += v.Name
	}
	if got != "cab" {
		t.Errorf("got inputs %q, want cab", got)
	}
	if list := InputsBehind(g.Consts...); len(list) != 0 {
		t.Errorf("a constant comes from %v", list)
	}
}
