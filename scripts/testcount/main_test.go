package main

import (
	"strings"
	"testing"
)

func TestCount(t *testing.T) {
	in := `{"Action":"run","Package":"p","Test":"A"}
{"Action":"pass","Package":"p","Test":"A"}
{"Action":"output","Package":"p","Test":"B","Output":"=== RUN B\n"}
{"Action":"output","Package":"p","Test":"B","Output":"    b_test.go:7: no GPU\n"}
{"Action":"skip","Package":"p","Test":"B"}
{"Action":"output","Package":"p","Test":"C","Output":"got 1, want 2\n"}
{"Action":"fail","Package":"p","Test":"C"}
not json
`
	var out strings.Builder
	passed, failed, skipped := count(strings.NewReader(in), &out)
	if passed != 1 || failed != 1 || skipped != 1 {
		t.Errorf("counted %d, %d, %d, want 1, 1, 1", passed, failed, skipped)
	}
	for _, want := range []string{"skip  1: no GPU (B)", "got 1, want 2", "not json"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("report lacks %q:\n%s", want, out.String())
		}
	}
}
