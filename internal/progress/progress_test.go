package progress

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestLeft(t *testing.T) {
	for _, c := range []struct {
		took        time.Duration
		done, total int
		want        string
	}{
		{10 * time.Second, 0, 80, ""},
		{10 * time.Second, 80, 80, ""},
		{12 * time.Second, 12, 80, ", about 2 min left"},
		{10 * time.Second, 40, 80, ", about 10 s left"},
		{100 * time.Millisecond, 79, 80, ", about 1 s left"},
		{time.Hour, 1, 3, ", about 2.0 h left"},
	} {
		if got := Left(c.took, c.done, c.total); got != c.want {
			t.Errorf("%v for %d of %d: %q, want %q", c.took, c.done, c.total, got, c.want)
		}
	}
}

// Where standard error is no terminal, long work says every ten seconds how far it is and what time is left.
func TestLongWorkShowsTimeLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shown strings.Builder
		u := UI{W: &shown}
		step := u.Progress("timing plans")
		for i := range 30 {
			time.Sleep(time.Second)
			step(i+1, 30)
		}
		want := "  timing plans 11 of 30, about 19 s left\n  timing plans 22 of 30, about 8 s left\n"
		if got := shown.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestBuildingShowsPartsAndTimeLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shown strings.Builder
		u := UI{W: &shown}
		built, end := u.Building("building 3 plans", 3)
		time.Sleep(14 * time.Second)
		built()
		time.Sleep(7 * time.Second)
		built()
		end()
		want := "  building 3 plans: 10 s so far, 0 of 3\n  building 3 plans: 20 s so far, 1 of 3, about 40 s left\n"
		if got := shown.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// Of work in one part nothing is known but how long it has taken, and quiet commands show nothing.
func TestWaitingShowsTimeSoFar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shown, quiet strings.Builder
		u, q := UI{W: &shown}, UI{W: &quiet, Quiet: true}
		end, silent := u.Waiting("nvcc"), q.Waiting("nvcc")
		time.Sleep(11 * time.Second)
		end()
		silent()
		if got := shown.String(); got != "  nvcc: 10 s so far\n" || quiet.String() != "" {
			t.Errorf("got %q, and %q of a quiet command", got, quiet.String())
		}
	})
}

// On a terminal a bar grows in one line, which is gone in the end.
func TestBarOnATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shown strings.Builder
		u := UI{W: &shown, TTY: true}
		step := u.Progress("timing")
		for i := range 4 {
			time.Sleep(time.Second)
			step(i+1, 4)
			step(i+1, 4) // drawn once: the second comes too early
			if i == 2 {
				break
			}
		}
		want := "\r  timing  [=====>              ] 1 of 4, about 3 s left\x1b[K" +
			"\r  timing  [==========>         ] 2 of 4, about 2 s left\x1b[K" +
			"\r  timing  [===============>    ] 3 of 4, about 1 s left\x1b[K"
		if got := shown.String(); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
		time.Sleep(time.Second)
		step(4, 4)
		if got := shown.String(); !strings.HasSuffix(got, "[====================] 4 of 4\x1b[K\r\x1b[K") {
			t.Errorf("the line stays: %q", got)
		}
	})
}

func TestSpinnerOnATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shown strings.Builder
		u := UI{W: &shown, TTY: true}
		end := u.Waiting("nvcc")
		time.Sleep(1050 * time.Millisecond)
		end()
		got := shown.String()
		if !strings.Contains(got, "nvcc  / 0 s so far") || !strings.HasSuffix(got, "1 s so far\x1b[K\r\x1b[K") {
			t.Errorf("shown is %q", got)
		}
	})
}
