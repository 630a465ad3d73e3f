package ir

import "testing"

func TestDimCanonical(t *testing.T) {
	b, s := Sym("batch"), Sym("seq")
	for _, c := range []struct {
		got  Dim
		want string
	}{
		{b.Add(D(2)).Sub(D(2)), "batch"},
		{b.Mul(D(4)).FloorDiv(D(4)), "batch"},
		{b.Mul(s).Sub(s.Mul(b)), "0"},
		{b.Mul(s).Mul(D(6)).FloorDiv(s.Mul(D(2))), "3*batch"},
		{s.Sub(D(3)).FloorDiv(D(2)).Add(D(1)), "(seq-3)/(2)+1"},
		{s.Max(s.Add(D(1))), "seq+1"},
		{s.Broadcast(b), "broadcast(batch,seq)"},
		{b.Broadcast(s).Broadcast(Sym("c")).Broadcast(s), "broadcast(batch,broadcast(c,seq))"},
		{b.Broadcast(D(1)), "batch"},
		{b.Broadcast(D(0)).Broadcast(s), "0"},
		{Sym("broadcast"), `"broadcast"`},
		{D(7).CeilDiv(D(2)), "4"},
		{D(1 << 62).Mul(D(1 << 62)), "9223372036854775807"},
	} {
		if c.got.String() != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
	if got := s.Sub(D(3)).FloorDiv(D(2)).Bind(map[string]int64{"seq": 8}); !got.Equal(D(2)) {
		t.Errorf("bound: got %s, want 2", got)
	}
}

// TestBroadcastBound binds the symbols of a broadcast extent to all values that broadcast.
func TestBroadcastBound(t *testing.T) {
	for _, c := range [][3]int64{{0, 0, 0}, {0, 1, 0}, {1, 0, 0}, {1, 1, 1}, {1, 7, 7}, {7, 1, 7}, {7, 7, 7}} {
		shape, err := BroadcastShapes(Shape{Sym("a")}, Shape{Sym("b")})
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := ParseDim(shape[0].String())
		if err != nil || !parsed.Equal(shape[0]) {
			t.Fatalf("%s reads back as %s, %v", shape[0], parsed, err)
		}
		if got, ok := parsed.Bind(map[string]int64{"a": c[0], "b": c[1]}).Const(); !ok || got != c[2] {
			t.Errorf("%d against %d gives %d, want %d", c[0], c[1], got, c[2])
		}
	}
}
