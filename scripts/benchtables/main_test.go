package main

import (
	"os"
	"strings"
	"testing"
)

func TestGeneratedTables(t *testing.T) {
	for _, page := range pages {
		old, err := os.ReadFile("../../" + page)
		if err != nil {
			t.Fatal(err)
		}
		text, err := rewrite(string(old), "../../bench/results")
		if err != nil {
			t.Fatal(err)
		}
		if text != string(old) {
			t.Errorf("%s has other figures than bench/results: run go generate ./scripts/benchtables", page)
		}
	}
}

func TestRewrite(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("h200-models.json", `{"models": {
		"b": {"bench": {"p50_ms": 2}, "pytorch": {"fp32_graph_ms": 5, "tf32_graph_ms": 3}},
		"a": {"bench": {"p50_ms": 1}}}}`)
	const begin, end = "before\n<!-- bench: models -->\n", "<!-- end -->\nafter\n"
	got, err := rewrite(begin+"what was there"+end, dir)
	if err != nil {
		t.Fatal(err)
	}
	const want = begin + `
| model | rammerc fp32, ms | PyTorch graph fp32, ms | ratio | ratio to tf32 |
|---|---|---|---|---|
| b | 2.000 | 5.000 | 2.50 | 1.50 |

` + end
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if again, err := rewrite(got, dir); err != nil || again != got {
		t.Errorf("a second time: %v\n%s", err, again)
	}
	for text, want := range map[string]string{
		"<!-- bench: models -->\n":              "only 0 end",
		"<!-- bench: none -->\n<!-- end -->\n":  `no table "none"`,
		"<!-- bench: steps -->\n<!-- end -->\n": "h200-micro.json",
	} {
		if _, err := rewrite(text, dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	write("h200-models.json", `{"models": {"b": {"bench": {}, "pytorch": {"fp32_graph_ms": 5, "tf32_graph_ms": 3}}}}`)
	if _, err := rewrite(begin+end, dir); err == nil || !strings.Contains(err.Error(), "lacks figures") {
		t.Errorf("a figure is missing: %v", err)
	}
}

// The operators below leastRatio are listed, with what they reach of the peak; one of an unknown precision is refused.
func TestShortTable(t *testing.T) {
	dir := t.TempDir()
	for i, name := range familyNames {
		text := `{"rows": []}`
		if i == 0 {
			text = `{"rows": [
				{"name": "a", "precision": "tf32", "flops": 990e6, "ours_us": 4, "vendor_us": 3, "ratio": 0.75},
				{"name": "b", "precision": "fp16", "flops": 990e6, "ours_us": 4, "vendor_us": 4, "ratio": 1}]}`
		}
		if err := os.WriteFile(dir+"/h200-"+name+".json", []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got, err := shortTable(dir)
	if want := "| a | tf32 | 4.0 | 3.0 | 0.75 | 0.50 | 0.67 |\n"; err != nil || !strings.HasSuffix(got, want) ||
		strings.Contains(got, "| b |") {
		t.Errorf("%v\n%s", err, got)
	}
	text := `{"rows": [{"name": "c", "precision": "fp8", "flops": 1, "ours_us": 4, "vendor_us": 3, "ratio": 0.75}]}`
	if err := os.WriteFile(dir+"/h200-gemm.json", []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := shortTable(dir); err == nil {
		t.Error("a precision without a peak is taken")
	}
}

// A family's file has means by precision and batch; one that lacks a batch is refused.
func TestFamilyTable(t *testing.T) {
	dir := t.TempDir()
	write := func(family, batches string) {
		var rows []string
		for _, precision := range []string{"tf32", "fp16"} {
			for _, batch := range strings.Fields(batches) {
				rows = append(rows, `{"precision": "`+precision+`", "batch": `+batch+
					`, "rows": 9, "geometric_mean": 1.25, "least": 0.5}`)
			}
		}
		text := `{"summary": [` + strings.Join(rows, ",") + `]}`
		if err := os.WriteFile(dir+"/h200-"+family+".json", []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range familyNames {
		write(name, "1 8 32")
	}
	got, err := familyTable(dir)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(got), "\n")
	if len(lines) != 2+2*len(familyNames) || lines[2] != "| gemm | tf32 | 9 | 1.25 | 0.50 | 1.25 | 0.50 | 1.25 | 0.50 |" {
		t.Errorf("got\n%s", got)
	}
	write("conv", "1 8")
	if _, err := familyTable(dir); err == nil || !strings.Contains(err.Error(), "conv.json has no tf32 at batch 32") {
		t.Errorf("conv lacks a batch: %v", err)
	}
}
