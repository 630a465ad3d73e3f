package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestCount(t *testing.T) {
	in := `{"Action":"run","Package":"p","Test":"A"}
{"Action":"pass","Package":"p","Test":"A"}
{"Action":"output","Package":"p","Test":"B","Output":"=== RUN B\n"}
{"Action":"output","Package":"p","Test":"B","Output":"    b_test.go:7: no GPU\n"}
{"Action":"skip","Package":"p","Test":"B"}
{"Action":"output","Package":"p","Test":"C","Output":"got 1, want 2\n"}
{"Action":"fail","Package":"p","Test":"C"}
{"Action":"skip","Package":"without tests"}
not json
`
	var out strings.Builder
	r := read(strings.NewReader(in), &out)
	r.writeSkips(&out)
	if r.passed != 1 || r.failed != 1 || r.skipped != 1 {
		t.Errorf("counted %d, %d, %d, want 1, 1, 1", r.passed, r.failed, r.skipped)
	}
	for _, want := range []string{"skip  1: no GPU (B)", "got 1, want 2", "not json"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("report lacks %q:\n%s", want, out.String())
		}
	}
}

// Twelve packages took 10, 20, … 120 s; the limit is 115 s.
func TestSlowPackages(t *testing.T) {
	var in strings.Builder
	for i := 1; i <= 12; i++ {
		fmt.Fprintf(&in, `{"Action":"pass","Package":"p%d","Test":"Short","Elapsed":1}`+"\n", i)
		fmt.Fprintf(&in, `{"Action":"pass","Package":"p%d","Test":"Long","Elapsed":%d}`+"\n", i, 10*i-1)
		fmt.Fprintf(&in, `{"Action":"pass","Package":"p%d","Elapsed":%d}`+"\n", i, 10*i)
	}
	r := read(strings.NewReader(in.String()), &strings.Builder{})
	var times, slow strings.Builder
	r.writeTimes(&times)
	lines := strings.Split(strings.TrimSpace(times.String()), "\n")
	if len(lines) != 10 || !strings.HasSuffix(lines[0], " 120.0 s  p12") ||
		!strings.HasSuffix(lines[9], " 30.0 s  p3") {
		t.Errorf("want the times of p12 to p3, got\n%s", times.String())
	}
	want := "SLOW  p12 took 120 s, more than 115 s\n       119.0 s  Long\n         1.0 s  Short\n"
	r.writeSlow(&slow, 115*time.Second)
	r.writeSlow(&slow, 2*time.Minute) // nothing: the longest took as long
	if slow.String() != want {
		t.Errorf("slow packages are reported as\n%s\nwant\n%s", slow.String(), want)
	}
}
