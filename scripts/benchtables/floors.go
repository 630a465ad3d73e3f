package main

import (
	"maps"
	"slices"
)

// floors is a file of schema rammerc/floors/v1, by model and precision.
type floors struct {
	Models map[string]map[string]struct {
		Microseconds float64 `json:"us"`
		By           string
		Share        float64 `json:"floor_share"`
	}
}

// floorTable has, for each model and precision, the largest floor as a share of the measured time, and which it is.
func floorTable(t *floors) [][]string {
	precisions := []string{"fp32", "tf32", "fp16"}
	rows := [][]string{{"model"}}
	for _, p := range precisions {
		rows[0] = append(rows[0], p+", µs", "floor", "share")
	}
	for _, name := range slices.Sorted(maps.Keys(t.Models)) {
		row := []string{name}
		for _, p := range precisions {
			x := t.Models[name][p]
			row = append(row, f(x.Microseconds, 0), x.By, f(x.Share, 2))
		}
		rows = append(rows, row)
	}
	return rows
}
