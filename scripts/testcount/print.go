package main

import (
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"time"
)

// writeSkips writes a line for each reason for which tests were skipped, with the names of the first five.
func (r *report) writeSkips(w io.Writer) {
	var reasons []string
	for why := range r.reasons {
		reasons = append(reasons, why)
	}
	sort.Strings(reasons)
	for _, why := range reasons {
		names, more := r.reasons[why], ""
		if len(names) > 5 {
			more = fmt.Sprintf(" and %d more", len(names)-5)
			names = names[:5]
		}
		fmt.Fprintf(w, "skip  %d: %s (%s%s)\n", len(r.reasons[why]), why, strings.Join(names, ", "), more)
	}
}

// writeTimes writes the ten packages that took longest.
func (r *report) writeTimes(w io.Writer) {
	for _, p := range slowest(r.packages, 10) {
		fmt.Fprintf(w, "time  %6.1f s  %s\n", p.seconds, p.name)
	}
}

// writeSlow writes the packages that took longer than limit, each with its slowest tests.
func (r *report) writeSlow(w io.Writer, limit time.Duration) {
	for _, p := range slowest(r.packages, len(r.packages)) {
		if p.seconds <= limit.Seconds() {
			break
		}
		fmt.Fprintf(w, "SLOW  %s took %.0f s, more than %.0f s\n", p.name, p.seconds, limit.Seconds())
		for _, t := range slowest(r.tests[p.name], 10) {
			fmt.Fprintf(w, "      %6.1f s  %s\n", t.seconds, t.name)
		}
	}
}

// slowest is the at most n entries of all that took longest, the longest first.
func slowest(all []timed, n int) []timed {
	all = slices.Clone(all)
	sort.SliceStable(all, func(i, j int) bool { return all[i].seconds > all[j].seconds })
	return all[:min(n, len(all))]
}
