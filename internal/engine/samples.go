package engine

import (
	"fmt"
	"path/filepath"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/limits"
	"github.com/rammerc/rammerc/internal/tensorio"
)

// Sample is one inference with what should come out of it.
type Sample struct {
	In   Tensors
	Want Tensors // nil when the evaluator is to say
	// Keep is how many rows along the first axis of outputs count, 0 for all. In the last batch of a series, the
	// rows behind them are padding.
	Keep int64
	// Reset says that the states which the library keeps are to be emptied first.
	Reset bool
}

// Samples is a sequence of inferences, each made when it is asked for.
type Samples struct {
	N        int
	Expected bool // samples say what should come out
	At       func(i int) Sample
}

// RandomSamples draws n samples. Sample i has the seed seed + i; integers lie in [0, limit).
func RandomSamples(inputs []Port, n int, seed uint64, limit int64) *Samples {
	return &Samples{N: n, At: func(i int) Sample {
		return Sample{In: RandomInputs(inputs, seed+uint64(i), limit)}
	}}
}

// DataSets reads test data in the layout of the ONNX project: input_0.pb … and output_0.pb … in dir, or in each of
// its test_data_set_* folders.
func DataSets(dir string, inputs, outputs []Port) (*Samples, error) {
	sets := limits.Matching(dir, "test_data_set_*")
	if len(sets) == 0 {
		sets = []string{dir}
	}
	var all []Sample
	var l diag.List
	for _, set := range sets {
		x := Sample{In: Tensors{}, Want: Tensors{}}
		readDataSet(&l, set, "input", inputs, x.In)
		readDataSet(&l, set, "output", outputs, x.Want)
		all = append(all, x)
	}
	return &Samples{len(all), true, func(i int) Sample { return all[i] }}, l.Err()
}

func readDataSet(l *diag.List, dir, what string, ports []Port, to Tensors) {
	for i, p := range ports {
		file := filepath.Join(dir, fmt.Sprintf("%s_%d.pb", what, i))
		t, err := tensorio.Read(file, p.Name, p.accepts)
		if err != nil {
			l.Add(badInput(file, what+" "+p.Name, err))
			continue
		}
		to[p.Name] = t
	}
}
