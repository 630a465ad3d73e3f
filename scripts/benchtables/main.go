// Command benchtables writes the tables of measured figures in README.md and docs/PERFORMANCE.md from the results in
// bench/results. A table stands between a line "<!-- bench: NAME -->" and a line "<!-- end -->". Everything else in
// these pages stays as it is.
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

//go:generate go run . ../..

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	for _, page := range pages {
		if err := write(root, page); err != nil {
			fmt.Fprintf(os.Stderr, "benchtables: %s: %v\n", page, err)
			os.Exit(1)
		}
	}
}

// pages have tables.
var pages = []string{"README.md", "docs/PERFORMANCE.md"}

// write makes the tables of a page anew.
func write(root, page string) error {
	path := filepath.Join(root, page)
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, err := rewrite(string(old), filepath.Join(root, "bench", "results"))
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o666)
}

// tables makes each table that a page may have, from the folder of results.
var tables = map[string]func(results string) (string, error){
	"models": func(results string) (string, error) { return from(results, "h200-models.json", modelTable) },
	"precisions": func(results string) (string, error) {
		return from(results, "h200-latency.json", precisionTable)
	},
	"means": func(results string) (string, error) {
		return from(results, "h200-latency.json", meansTable)
	},
	"families": familyTable,
	"short":    shortTable,
	"floors":   func(results string) (string, error) { return from(results, "h200-floors.json", floorTable) },
	"chains":   func(results string) (string, error) { return from(results, "h200-micro.json", chainTable) },
	"steps":    func(results string) (string, error) { return from(results, "h200-micro.json", stepTable) },
	"auto":     func(results string) (string, error) { return from(results, "h200-micro.json", autoTable) },
	"plans":    func(results string) (string, error) { return from(results, "h200-plans.json", planTable) },
}

var place = regexp.MustCompile(`(?s)(<!-- bench: (\w+) -->\n).*?(<!-- end -->)`)

// rewrite returns the text with all of its tables made from the results.
func rewrite(text, results string) (string, error) {
	var failed error
	seen := 0
	out := place.ReplaceAllStringFunc(text, func(s string) string {
		m := place.FindStringSubmatch(s)
		table, ok := tables[m[2]]
		if !ok {
			failed = cmp.Or(failed, fmt.Errorf("there is no table %q; tables are %s", m[2],
				strings.Join(slices.Sorted(maps.Keys(tables)), ", ")))
			return s
		}
		seen++
		rows, err := table(results)
		if err != nil {
			failed = cmp.Or(failed, fmt.Errorf("table %s: %w", m[2], err))
		}
		return m[1] + "\n" + rows + "\n" + m[3]
	})
	if begun := strings.Count(text, "<!-- bench: "); failed == nil && begun != seen {
		failed = fmt.Errorf("of %d tables that begin only %d end", begun, seen)
	}
	return out, failed
}

// from reads a file of results and makes a table of it. It is an error if the file lacks a figure of the table.
func from[T any](results, file string, table func(*T) [][]string) (out string, err error) {
	t, err := read[T](results, file)
	if err != nil {
		return "", err
	}
	if out = markdown(table(t)); strings.Contains(out, missing) {
		return "", fmt.Errorf("%s lacks figures:\n%s", file, out)
	}
	return out, nil
}

func read[T any](results, file string) (*T, error) {
	data, err := os.ReadFile(filepath.Join(results, file))
	if err != nil {
		return nil, err
	}
	t := new(T)
	if err := json.Unmarshal(data, t); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return t, nil
}

// markdown is a table whose first row is its head.
func markdown(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			b.WriteString("|" + strings.Repeat("---|", len(row)) + "\n")
		}
	}
	return b.String()
}

const missing = "NaN"

// f prints a figure with so many digits. A figure that is 0 was not measured.
func f(x float64, digits int) string {
	if x == 0 || math.IsInf(x, 0) || math.IsNaN(x) {
		return missing
	}
	return fmt.Sprintf("%.*f", digits, x)
}

// models is a file of schema rammerc/gpu-check/v1. The table has the models that were measured with PyTorch too.
type models struct {
	Models map[string]struct {
		Bench struct {
			P50 float64 `json:"p50_ms"`
		}
		PyTorch struct {
			FP32 float64 `json:"fp32_graph_ms"`
			TF32 float64 `json:"tf32_graph_ms"`
		}
	}
}

func modelTable(m *models) [][]string {
	rows := [][]string{{"model", "rammerc fp32, ms", "PyTorch graph fp32, ms", "ratio", "ratio to tf32"}}
	for _, name := range slices.Sorted(maps.Keys(m.Models)) {
		if x := m.Models[name]; x.PyTorch.FP32 > 0 {
			ms := x.Bench.P50
			rows = append(rows, []string{name, f(ms, 3), f(x.PyTorch.FP32, 3), f(x.PyTorch.FP32/ms, 2),
				f(x.PyTorch.TF32/ms, 2)})
		}
	}
	return rows
}

// micro is a file of schema rammerc/micro/v1.
type micro struct {
	StepUS  map[string]map[string]float64 `json:"step_us"`
	ChainUS map[string]map[string]float64 `json:"chain_step_us"`
	Peers   map[string]struct{ Median float64 }
	Models  map[string]map[string]struct {
		Bench struct {
			P50 float64 `json:"p50_ms"`
		}
		Tried []struct {
			Plan   string
			Chosen bool
		}
	}
}

func chainTable(m *micro) [][]string {
	rows := [][]string{{"N", "rProgram", "waves", "cuBLAS, rows", "cuBLAS, columns", "ratio to rows",
		"ratio to the faster"}}
	for _, n := range []string{"512", "1024", "2048", "4096"} {
		whole, waves := m.ChainUS["chain_"+n]["rprogram"], m.ChainUS["chain_"+n]["waves"]
		byRows, byColumns := m.Peers["cublas_rows_"+n].Median/1e3, m.Peers["cublas_columns_"+n].Median/1e3
		best := min(whole, waves)
		rows = append(rows, []string{n, f(whole, 2), f(waves, 2), f(byRows, 2), f(byColumns, 2), f(byRows/best, 2),
			f(min(byRows, byColumns)/best, 2)})
	}
	return rows
}

// steps are the rows of the table of steps: patterns of bench/models.py.
var steps = []struct{ pattern, what, plan, node string }{
	{"sparse_1", "132 rows of 1 value, from two rows each", "rprogram", "node_sparse_1"},
	{"sparse_8", "132 rows of 8 values", "rprogram", "node_sparse_8"},
	{"sparse_64", "132 rows of 64 values", "rprogram", "node_sparse_64"},
	{"sparse_256", "132 rows of 256 values", "rprogram", "node_sparse_256"},
	{"dense", "132 rows of 256 values, from 16 rows each", "waves", "node_dense"},
	{"group_8", "8 rows of 256 values, from all 8", "clusters-8", "node_group_8"},
}

func stepTable(m *micro) [][]string {
	rows := [][]string{{"step", "plan", "rammerc", "graph node", "ratio"}}
	for _, s := range steps {
		us, node := m.StepUS[s.pattern][s.plan], m.Peers[s.node].Median/1e3
		rows = append(rows, []string{s.what, s.plan, f(us, 2), f(node, 2), f(us/node, 2)})
	}
	both := m.StepUS["edge"]
	edge, hop := both["two-veus"]-both["one-veu"], m.Peers["hop"].Median/1e3
	return append(rows, []string{"a step's wait for another vEU, beside a flag's way between two", "rprogram",
		f(edge, 2), f(hop, 2), f(edge/hop, 2)})
}

func autoTable(m *micro) [][]string {
	rows := [][]string{{"graph", "auto takes", "µs", "the fastest of those asked for by name", "µs", "ratio"}}
	for _, name := range slices.Sorted(maps.Keys(m.Models)) {
		auto, ok := m.Models[name]["auto"]
		if !ok {
			continue
		}
		chosen, best := missing, ""
		for _, t := range auto.Tried {
			if t.Chosen {
				chosen = t.Plan
			}
		}
		for _, plan := range slices.Sorted(maps.Keys(m.Models[name])) {
			if plan != "auto" && (best == "" || m.Models[name][plan].Bench.P50 < m.Models[name][best].Bench.P50) {
				best = plan
			}
		}
		us, other := 1e3*auto.Bench.P50, 1e3*m.Models[name][best].Bench.P50
		rows = append(rows, []string{name, chosen, f(us, 1), best, f(other, 1), f(us/other, 2)})
	}
	return rows
}
