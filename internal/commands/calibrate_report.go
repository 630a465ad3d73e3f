package commands

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/calibrate"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/outdir"
	"github.com/rammerc/rammerc/profiler/db"
	"github.com/rammerc/rammerc/profiler/model"
)

// FitReport is what `rammerc calibrate --report` says: how far the cost model is from measured rTasks, with the device
// file as it is and with a section fitted anew: rkernels, or with profiles rkernels_in_programs and slower_in_programs.
// With a fit to one half of the models it says how far that is from the other half.
type FitReport struct {
	Schema  string        `json:"schema"`
	Device  string        `json:"device"`
	Source  string        `json:"source"` // of the samples: the database, or a folder of profiles
	Samples int           `json:"samples"`
	Now     []model.Error `json:"now"`
	Fitted  []model.Error `json:"fitted"`
	HeldOut *model.Error  `json:"held_out,omitempty"` // of all rKernels
	// Programs are errors of whole programs, with --programs. Samples are programs then.
	Programs []ProgramFit `json:"programs,omitempty"`
	File     string       `json:"file,omitempty"` // with the new fit
}

// ProgramFit says how far predictions of whole programs are from what they took: now, with factors fitted to them, and with
// factors fitted to the programs of all other models. The last two are empty where there are too few programs.
type ProgramFit struct {
	Costs   string      `json:"costs"` // modelled or measured
	Now     model.Error `json:"now"`
	Fitted  model.Error `json:"fitted"`
	HeldOut model.Error `json:"held_out"`
}

// ReportFit compares the model with the database and fits it. The device is the one of --base.
func ReportFit(o CalibrateOptions) (*FitReport, error) {
	if o.Base == "" {
		return nil, diag.New("bad-flag", "--report is about a device file: name it with --base")
	}
	spec, err := device.Find(o.Base)
	if err != nil {
		return nil, err
	}
	if o.Programs != "" {
		r := &FitReport{Schema: "rammerc/fit/v2", Device: spec.Name, Source: o.Programs}
		if err := r.fitPrograms(o.Programs, spec); err != nil {
			return nil, err
		}
		return r, r.write(o.Fit, spec)
	}
	source, byModel, err := o.samples(spec)
	if err != nil {
		return nil, err
	}
	var samples []model.Sample
	for _, name := range slices.Sorted(maps.Keys(byModel)) {
		samples = append(samples, byModel[name]...)
	}
	if len(samples) == 0 {
		return nil, diag.New("no-samples", "%s has nothing that was measured on %s", source, spec.Product)
	}
	fits := &spec.Kernels
	if o.Profiles != "" {
		fits = &spec.InPrograms
	}
	view := *spec
	view.Kernels = *fits
	r := &FitReport{
		Schema: "rammerc/fit/v2", Device: spec.Name, Source: source, Samples: len(samples),
		Now:     model.Errors(spec, samples),
		HeldOut: heldOut(spec, byModel),
	}
	*fits = model.Fit(spec, samples)
	if o.Profiles != "" {
		if _, alone, err := measuredSamples(spec); err != nil {
			return nil, err
		} else if len(alone) > 0 {
			spec.Slower = model.Slower(spec, samples, slices.Concat(slices.Collect(maps.Values(alone))...))
		}
	}
	view.Kernels = *fits
	r.Fitted = model.Errors(&view, samples)
	return r, r.write(o.Fit, spec)
}

// write writes the device file with the new fit, if one is wanted.
func (r *FitReport) write(file string, spec *device.Spec) error {
	if file == "" {
		return nil
	}
	text, err := calibrate.YAML(spec)
	if err != nil {
		return err
	}
	r.File = file
	return outdir.WriteFile(file, text)
}

// samples are what was measured on the device, by model: in profiles, or else in the database.
func (o *CalibrateOptions) samples(spec *device.Spec) (source string, byModel map[string][]model.Sample, err error) {
	if o.Profiles != "" {
		byModel, err = profiled(o.Profiles, spec)
		return o.Profiles, byModel, err
	}
	return measuredSamples(spec)
}

// measuredSamples are those of the database.
func measuredSamples(spec *device.Spec) (source string, byModel map[string][]model.Sample, err error) {
	path, err := db.DefaultPath()
	if err != nil {
		return "", nil, err
	}
	entries, _, err := db.ReadFile(path)
	if err != nil {
		return "", nil, &diag.Diagnostic{ID: "bad-database", File: path, Message: diag.Reason(err).Error()}
	}
	shipped, err := db.Shipped()
	if err != nil {
		return "", nil, err
	}
	return path, samplesOf(db.Latest(append(shipped, entries...)), spec.Product), nil
}

// heldOut fits each half of the models and compares the fit with the other half; nil if there is only one model.
func heldOut(spec *device.Spec, byModel map[string][]model.Sample) *model.Error {
	var halves [2][]model.Sample
	for i, name := range slices.Sorted(maps.Keys(byModel)) {
		halves[i%2] = append(halves[i%2], byModel[name]...)
	}
	if len(halves[1]) == 0 {
		return nil
	}
	var pairs []model.Pair
	for i := range halves {
		fitted := *spec
		fitted.Kernels = model.Fit(&fitted, halves[i])
		pairs = append(pairs, model.Pair{Spec: &fitted, Samples: halves[1-i]})
	}
	e := model.ErrorsOf(pairs...)[0]
	return &e
}

// samplesOf are the entries of a GPU as the model sees them, by model: with constants in L2, and where there are
// constants once more with them in DRAM.
func samplesOf(entries []db.Entry, product string) map[string][]model.Sample {
	out := map[string][]model.Sample{}
	for _, e := range entries {
		if e.GPU != product || e.Problem != "" || e.Times.Cold <= 0 {
			continue
		}
		s := model.Sample{NS: e.Times.Cold, RTask: driver.RTaskOf(&e)}
		out[e.Model] = append(out[e.Model], s)
		if e.Work.Constants > 0 && e.Times.DRAM > 0 && !s.Ring {
			s.NS, s.Streamed = e.Times.DRAM, true
			out[e.Model] = append(out[e.Model], s)
		}
	}
	return out
}

// Text prints a line for each rKernel, all together first, or a line for the programs of each kind of costs.
func (r *FitReport) Text(w io.Writer) {
	if r.Programs != nil {
		r.programText(w)
		return
	}
	fmt.Fprintf(w, "%s: the cost model against %d samples of %s\n", r.Device, r.Samples, r.Source)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "N\tMEDIAN\tP90\tWORST\tRATIO\tFITTED: MEDIAN\tP90\tWORST\t  RKERNEL; |PREDICTED / MEASURED - 1|")
	for i, e := range r.Now {
		f, name := r.Fitted[i], e.Kernel
		if name == "" {
			name = "all"
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%.2f\t%s\t%s\t%s\t  %s\n", e.N, percent(e.Median), percent(e.P90),
			percent(e.Worst),
			e.Ratio, percent(f.Median), percent(f.P90), percent(f.Worst), name)
	}
	t.Flush()
	if e := r.HeldOut; e != nil {
		fmt.Fprintf(w, "fitted to one half of the models, the other half: median %s, p90 %s, ratio %.2f\n",
			percent(e.Median),
			percent(e.P90), e.Ratio)
	}
	if r.File != "" {
		fmt.Fprintln(w, r.File)
	}
}

func (r *FitReport) programText(w io.Writer) {
	fmt.Fprintf(w, "%s: predictions against %d programs of %s\n", r.Device, r.Samples, r.Source)
	for _, p := range r.Programs {
		fmt.Fprintf(w, "%s costs: %d programs, %s\n", p.Costs, p.Now.N, errorText(p.Now))
		if p.Fitted.N > 0 {
			fmt.Fprintf(w, "  fitted: %s\n  fitted without the model: %s\n", errorText(p.Fitted), errorText(p.HeldOut))
		}
	}
	if r.File != "" {
		fmt.Fprintln(w, r.File)
	}
}

func errorText(e model.Error) string {
	return fmt.Sprintf("|predicted / measured - 1| median %s, p90 %s, worst %s, ratio %.2f", percent(e.Median), percent(e.P90),
		percent(e.Worst), e.Ratio)
}
