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

// TestIsData: a condition and a shape are no data, unless an output is computed from them, too.
func TestIsData(t *testing.T) {
	g, err := ParseText("t", []byte(`graph "g" (%x: float32[2], %shape: int64[1], %rate: int64[], %both: int64[1]) {
  %k = const int64[] {16000}
  %is: bool[] = Equal(%rate, %k)
  %f: float32[unk__0] = If(%is) {else_branch = graph "e" () {
    return %x
  }, then_branch = graph "t" () {
    %h: float32[unk__0] = Expand(%x, %shape)
    return %h
  }}
  %e: float32[unk__1] = Expand(%x, %both)
  %n: int64[1] = Add(%both, %both)
  return %f, %e, %n
}
`), ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{"x": true, "shape": false, "rate": false, "both": true}
	for _, v := range g.Inputs {
		if got := IsData(g, v); got != want[v.Name] {
			t.Errorf("%s: got %v, want %v", v.Name, got, want[v.Name])
		}
	}
}
