package commands

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/profiler/model"
)

// compiledReport is what X.compile.json, the report of `rammerc compile --json`, says of a prediction.
type compiledReport struct {
	Device  string
	Summary struct {
		ROperators    int                `json:"roperators"`
		PredictedUS   float64            `json:"predicted_us"`
		Parts         map[string]float64 `json:"predicted_parts_us"`
		MeasuredCosts int                `json:"measured_costs"`
	}
}

// benchReport is what X.bench.json or X.bench.N.json, the report of `rammerc bench --json`, says.
type benchReport struct {
	Libraries []struct {
		Device string
		P50    float64 `json:"p50_ms"`
	}
}

// timedPrograms are programs that were compiled and timed.
type timedPrograms struct {
	modelled, measured []model.Program // by the costs that they were predicted with
}

// readTimed reads all MODEL.PRECISION.compile.json of a folder beside which the program's times are, MODEL.PRECISION.bench.json
// or several MODEL.PRECISION.bench.N.json. Predictions say what the factors of spec made of them; they are undone.
func readTimed(dir string, spec *device.Spec) (*timedPrograms, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.compile.json"))
	if err != nil || len(files) == 0 {
		return nil, &diag.Diagnostic{ID: "no-samples", File: dir, Message: "has no file X.compile.json"}
	}
	out := &timedPrograms{}
	for _, file := range files {
		path := strings.TrimSuffix(file, ".compile.json")
		var r compiledReport
		if err := readJSON(file, &r); err != nil {
			return nil, err
		}
		ms, err := benched(path, spec)
		if err != nil {
			return nil, err
		}
		if ms == 0 || r.Device != spec.Name || len(r.Summary.Parts) == 0 {
			continue
		}
		name := filepath.Base(path)
		p := model.Program{Model: name, Measured: 1e6 * ms, Predicted: 1e3 * r.Summary.PredictedUS,
			Parts: map[string]float64{}}
		if i := strings.LastIndexByte(name, '.'); i > 0 {
			p.Model, p.Precision = name[:i], name[i+1:]
		}
		list, factor := &out.modelled, func(kernel string) float64 { return cmp.Or(spec.Programs.Modelled[kernel], 1) }
		if r.Summary.MeasuredCosts > r.Summary.ROperators/2 {
			list, factor = &out.measured, spec.MeasuredInPrograms
		}
		for kernel, us := range r.Summary.Parts {
			p.Parts[kernel] = 1e3 * us / factor(kernel)
			p.Predicted += p.Parts[kernel] - 1e3*us
		}
		*list = append(*list, p)
	}
	return out, nil
}

// benched is the median of what a program took in milliseconds, 0 if it was not timed on the device.
func benched(path string, spec *device.Spec) (float64, error) {
	files, err := filepath.Glob(path + ".bench*.json")
	if err != nil {
		return 0, err
	}
	var all []float64
	for _, file := range files {
		if empty(file) {
			continue
		}
		var r benchReport
		if err := readJSON(file, &r); err != nil {
			return 0, err
		}
		if len(r.Libraries) > 0 && strings.HasPrefix(r.Libraries[0].Device, spec.Product) {
			all = append(all, r.Libraries[0].P50)
		}
	}
	if len(all) == 0 {
		return 0, nil
	}
	slices.Sort(all)
	return all[len(all)/2], nil
}

// fewestPrograms is how many programs a fit needs.
const fewestPrograms = 8

// fitPrograms compares predictions of whole programs with what they took, and fits the section programs to them. Programs
// with modelled and with measured costs are fitted apart, where there are enough of them.
func (r *FitReport) fitPrograms(dir string, spec *device.Spec) error {
	t, err := readTimed(dir, spec)
	if err != nil {
		return err
	}
	for _, x := range []struct {
		costs    string
		programs []model.Program
		factors  *map[string]float64
	}{{"modelled", t.modelled, &spec.Programs.Modelled}, {"measured", t.measured, &spec.Programs.Measured}} {
		if len(x.programs) == 0 {
			continue
		}
		p := ProgramFit{Costs: x.costs}
		p.Now, _ = model.ProgramErrors(x.programs, *x.factors)
		if len(x.programs) >= fewestPrograms {
			factors := model.FitPrograms(x.programs)
			p.Fitted, p.HeldOut = model.ProgramErrors(x.programs, factors)
			*x.factors = factors
		}
		r.Samples += len(x.programs)
		r.Programs = append(r.Programs, p)
	}
	if r.Samples == 0 {
		return diag.New("no-samples", "%s has no program that was predicted for %s and timed on it", dir, spec.Name)
	}
	return nil
}
