package main

import (
	"cmp"
	"maps"
	"slices"
)

// precisions is a file of schema rammerc/gpu-precision/v2. The table has the models that both sides were measured with.
type precisions struct {
	Ratios map[string]map[string]struct { // by group of models, and by what is over what
		Mean  float64 `json:"geometric_mean"`
		Least float64
	}
	Models map[string]struct {
		FP32        float64 `json:"fp32_ms"`
		TF32        float64 `json:"tf32_ms"`
		FP16        float64 `json:"fp16_ms"`
		PyTorchFP32 float64 `json:"pytorch_fp32_ms"`
		PyTorchTF32 float64 `json:"pytorch_tf32_ms"`
		PyTorchFP16 float64 `json:"pytorch_fp16_ms"`
		// The better ones of PyTorch's CUDA graph and of Inductor's program; 0 where there is none of the latter.
		BestTF32 float64 `json:"best_tf32_ms"`
		BestFP16 float64 `json:"best_fp16_ms"`
	}
}

func precisionTable(p *precisions) [][]string {
	rows := [][]string{{
		"model", "fp32, ms", "PyTorch", "ratio", "tf32, ms", "PyTorch", "ratio", "fp16, ms", "PyTorch", "ratio",
	}}
	for _, name := range slices.Sorted(maps.Keys(p.Models)) {
		if x := p.Models[name]; x.PyTorchFP32 > 0 && x.FP32 > 0 {
			tf32, fp16 := cmp.Or(x.BestTF32, x.PyTorchTF32), cmp.Or(x.BestFP16, x.PyTorchFP16)
			rows = append(rows, []string{
				name, f(x.FP32, 3), f(x.PyTorchFP32, 3), f(x.PyTorchFP32/x.FP32, 2),
				f(x.TF32, 3), f(tf32, 3), f(tf32/x.TF32, 2),
				f(x.FP16, 3), f(fp16, 3), f(fp16/x.FP16, 2),
			})
		}
	}
	return rows
}

// meansTable has the geometric means of the table of models, and the least ratios.
func meansTable(p *precisions) [][]string {
	rows := [][]string{{"precision", "batch 1", "least", "batch 8 and 32", "least"}}
	for _, r := range []struct{ precision, over, otherwise string }{
		{"fp32", "pytorch_fp32_over_fp32", ""},
		{"tf32", "best_tf32_over_tf32", "pytorch_tf32_over_tf32"},
		{"fp16", "best_fp16_over_fp16", "pytorch_fp16_over_fp16"},
	} {
		row := []string{r.precision}
		for _, group := range []string{"batch_1", "batched"} {
			m, ok := p.Ratios[group][r.over]
			if !ok {
				m = p.Ratios[group][r.otherwise]
			}
			row = append(row, f(m.Mean, 2), f(m.Least, 2))
		}
		rows = append(rows, row)
	}
	return rows
}
