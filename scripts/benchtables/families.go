package main

import (
	"fmt"
	"slices"
	"strings"
)

// familyNames are the families of operators, each of which has a file h200-NAME.json.
var familyNames = []string{"gemm", "gemv", "conv", "depthwise", "attention"}

// family is a file of schema rammerc/families/v1.
type family struct {
	Summary []ratios
}

// ratios are how many times faster than the vendor's library the operators of one batch are in one precision.
type ratios struct {
	Precision string
	Batch     int
	Rows      int
	Mean      float64 `json:"geometric_mean"`
	Least     float64
}

// familyTable has a row for each family and precision, with the geometric mean and the least ratio at each batch.
func familyTable(results string) (string, error) {
	batches := []int{1, 8, 32}
	rows := [][]string{{"operators", "precision", "shapes"}}
	for _, b := range batches {
		rows[0] = append(rows[0], fmt.Sprintf("batch %d", b), "least")
	}
	for _, name := range familyNames {
		t, err := read[family](results, "h200-"+name+".json")
		if err != nil {
			return "", err
		}
		for _, precision := range []string{"tf32", "fp16"} {
			row := []string{name, precision, ""}
			for _, b := range batches {
				i := slices.IndexFunc(t.Summary, func(r ratios) bool { return r.Precision == precision && r.Batch == b })
				if i < 0 {
					return "", fmt.Errorf("h200-%s.json has no %s at batch %d", name, precision, b)
				}
				r := t.Summary[i]
				if row[2] == "" {
					row[2] = fmt.Sprint(r.Rows)
				}
				row = append(row, f(r.Mean, 2), f(r.Least, 2))
			}
			rows = append(rows, row)
		}
	}
	out := markdown(rows)
	if strings.Contains(out, missing) {
		return "", fmt.Errorf("the results of families lack figures:\n%s", out)
	}
	return out, nil
}
