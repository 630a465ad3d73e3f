package main

import (
	"maps"
	"slices"
)

// plans is a file of schema rammerc/plans/v1.
type plans struct {
	Models map[string]struct {
		Measured map[string]float64 `json:"measured_us"`
	}
}

// planColumns are the plans of the table, with their names in the papers.
var planColumns = []struct{ plan, title string }{
	{"base", "RammerBase"}, {"opara", "Opara"}, {"wavefront", "Algorithm 1"}, {"critical-path", "critical-path"},
	{"model", "the cost model's choice"}, {"auto", "auto"},
}

// planTable has the times of the Rammer paper's models under the plans of several papers, and how many times as long as
// auto the others take. A dash stands for a plan that was not timed.
func planTable(p *plans) [][]string {
	rows := [][]string{{"model"}}
	for _, c := range planColumns {
		rows[0] = append(rows[0], c.title)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Models)) {
		row := []string{name}
		times := p.Models[name].Measured
		for _, c := range planColumns {
			text := "–"
			if us := times[c.plan]; us > 0 {
				text = f(us, 0)
				if auto := times["auto"]; auto > 0 && c.plan != "auto" {
					text += " (" + f(us/auto, 2) + ")"
				}
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	return rows
}
