package commands

import (
	"encoding/json"
	"os"
	"strings"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/limits"
	"github.com/rammerc/rammerc/profiler/model"
	"github.com/rammerc/rammerc/roperator"
)

// profilePlan is what NAME.plan.json says of rTasks.
type profilePlan struct {
	Model   string
	Device  string
	Weights int64 `json:"weights_bytes"`
	Ops     []struct {
		Name       string
		Kernel     string `json:"rkernel"`
		Arithmetic string
		RTasks     int
		Threads    int
		Work       struct {
			Flops     float64
			Tensor    float64 `json:"tensor_flops"`
			Const     float64 `json:"const_bytes"`
			Read      float64 `json:"read_bytes"`
			Write     float64 `json:"write_bytes"`
			Shared    float64 `json:"shared_operand_bytes"`
			Constants float64 `json:"constants_bytes"`
			Ring      bool
		}
	}
}

// profileReport is what NAME.profile.json, the report of `rammerc profile --json`, says of rTasks.
type profileReport struct {
	Engine     string
	Device     string
	ROperators []struct {
		Name    string
		RTasks  int
		MeanUS  float64 `json:"mean_us"`  // of one rTask
		StallUS float64 `json:"stall_us"` // of all: waiting for streamed weights
	}
}

// profiled reads all X.profile.json in a folder that has X.plan.json beside it. Of each rOperator the mean of its rTasks
// is a sample: code was cold and neighbours were there, as in the program.
func profiled(dir string, spec *device.Spec) (map[string][]model.Sample, error) {
	files := limits.Matching(dir, "*.profile.json")
	if len(files) == 0 {
		return nil, &diag.Diagnostic{ID: "no-samples", File: dir, Message: "has no file X.profile.json"}
	}
	out := map[string][]model.Sample{}
	for _, file := range files {
		var p profilePlan
		var r profileReport
		if empty(file) {
			continue
		}
		if err := readJSON(file, &r); err != nil {
			return nil, err
		}
		if err := readJSON(strings.TrimSuffix(file, ".profile.json")+".plan.json", &p); err != nil {
			return nil, err
		}
		if p.Device != spec.Name || !strings.HasPrefix(r.Device, spec.Product) {
			continue
		}
		mean := map[string]float64{}
		for _, x := range r.ROperators {
			mean[x.Name] = 1000 * (x.MeanUS - x.StallUS/float64(max(1, x.RTasks)))
		}
		for _, op := range p.Ops {
			ns := mean[op.Name]
			if ns <= 0 || op.Kernel == "" {
				continue
			}
			w := &op.Work
			out[p.Model] = append(out[p.Model], model.Sample{
				NS: ns, Streamed: model.Streamed(spec, p.Weights),
				RTask: model.RTask{
					Kernel: model.Name(op.Kernel, op.Arithmetic), Tasks: op.RTasks, Threads: op.Threads, Ring: w.Ring, Constants: w.Constants,
					Work: roperator.Work{Flops: w.Flops, TensorFlops: w.Tensor, ConstBytes: w.Const, ReadBytes: w.Read,
						WriteBytes: w.Write, SharedBytes: w.Shared},
				},
			})
		}
	}
	return out, nil
}

// empty reports that a file is one of a run that failed.
func empty(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Size() == 0
}

func readJSON(file string, to any) error {
	data, err := limits.Read(file, limits.LargeText)
	if err == nil {
		err = json.Unmarshal(data, to)
	}
	if err != nil {
		return &diag.Diagnostic{ID: "cannot-read", File: file, Message: diag.Reason(err).Error()}
	}
	return nil
}
