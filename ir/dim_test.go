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
