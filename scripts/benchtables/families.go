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
	Rows    []operator
}

// operator is a single operator beside the fastest call of the vendor's library. FLOPs are those of its products.
type operator struct {
	Name, Precision string
	FLOPs           float64
	Ours            float64 `json:"ours_us"`
	Vendor          float64 `json:"vendor_us"`
	Ratio           float64
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

// leastRatio is the ratio below which an operator is in the table of those that fall short.
const leastRatio = 0.9

// peaks are the products of an H200's tensor cores in a microsecond, in FLOPs, from its data sheet.
var peaks = map[string]float64{"tf32": 495e6, "fp16": 990e6}

// shortTable has a row for each operator that takes clearly longer than the vendor's, with the share of the tensor cores'
// peak that both reach.
func shortTable(results string) (string, error) {
	rows := [][]string{{"operator", "precision", "µs", "vendor, µs", "ratio", "share of peak", "the vendor's"}}
	for _, name := range familyNames {
		t, err := read[family](results, "h200-"+name+".json")
		if err != nil {
			return "", err
		}
		for _, r := range t.Rows {
			if r.Ratio < leastRatio {
				peak := r.FLOPs / peaks[r.Precision]
				rows = append(rows, []string{r.Name, r.Precision, f(r.Ours, 1), f(r.Vendor, 1), f(r.Ratio, 2),
					f(peak/r.Ours, 2), f(peak/r.Vendor, 2)})
			}
		}
	}
	out := markdown(rows)
	if strings.Contains(out, missing) {
		return "", fmt.Errorf("the results of operators lack figures:\n%s", out)
	}
	return out, nil
}
