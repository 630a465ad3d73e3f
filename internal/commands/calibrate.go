package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/calibrate"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/outdir"
	"github.com/rammerc/rammerc/internal/progress"
	"github.com/rammerc/rammerc/internal/toolchain"
	"github.com/rammerc/rammerc/profiler/timing"
)

// CalibrateOptions are the flags of `rammerc calibrate`.
type CalibrateOptions struct {
	Out   string // device file to write
	Base  string // device whose name and vEUs are kept; "" for none
	Raw   string // file for every sample; "" for none
	Force bool   // replace files
	// Of ReportFit: the device file to write, with a new fit, "" for none; and a folder of profiles or of programs that were
	// timed, both "" for the database.
	Fit, Profiles, Programs string
}

// Calibrated is what `rammerc calibrate` reports.
type Calibrated struct {
	Schema       string           `json:"schema"`
	File         string           `json:"file"`
	Raw          string           `json:"raw,omitempty"`
	Spec         DeviceFigures    `json:"spec"`
	Device       calibrate.Device `json:"device"`
	Measurements []Figure         `json:"measurements"`
}

// Figure sums up the samples of a measurement.
type Figure struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit"`
	P10    float64 `json:"p10"`
	Median float64 `json:"median"`
	P90    float64 `json:"p90"`
	N      int     `json:"n"`
}

// rawMeasurements is the file of --raw.
type rawMeasurements struct {
	Schema string `json:"schema"`
	Driver string `json:"driver"`
	*calibrate.Result
}

// Calibrate measures this machine's GPU and writes a device file.
func Calibrate(job *driver.Job, o CalibrateOptions) (r *Calibrated, err error) {
	defer job.Guard(&err)
	base, err := o.validate()
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	measured, err := measure(ctx, job)
	if err != nil {
		return nil, err
	}
	driver := toolchain.LocalDriver(ctx)
	spec, err := calibrate.Spec(measured, base, driver)
	if err != nil {
		return nil, err
	}
	text, err := calibrate.YAML(spec)
	if err != nil {
		return nil, err
	}
	if err := outdir.WriteFile(o.Out, text); err != nil {
		return nil, err
	}
	if o.Raw != "" {
		raw, err := json.Marshal(rawMeasurements{"rammerc/calibrate-raw/v1", driver, measured})
		if err != nil {
			return nil, err
		}
		if err := outdir.WriteFile(o.Raw, append(raw, '\n')); err != nil {
			return nil, err
		}
	}
	r = &Calibrated{
		Schema: "rammerc/calibrate/v2", File: o.Out, Raw: o.Raw, Spec: DeviceFigures{spec}, Device: measured.Device,
		Measurements: []Figure{},
	}
	for i := range measured.Measurements {
		m := &measured.Measurements[i]
		r.Measurements = append(r.Measurements, Figure{
			Name: m.Name, Unit: m.Unit, P10: m.Quantile(0.1), Median: m.Median(), P90: m.Quantile(0.9),
			N: len(m.Samples),
		})
	}
	return r, nil
}

// validate finds what is wrong with the flags before a minute is spent on measuring. It returns the device of --base,
// nil without that.
func (o *CalibrateOptions) validate() (*device.Spec, error) {
	var l diag.List
	var base *device.Spec
	if o.Base != "" {
		var err error
		if base, err = device.Find(o.Base); err != nil {
			for _, d := range diag.All(err) {
				l.Add(d)
			}
		}
	}
	switch {
	case o.Out == "":
		l.Add(diag.New("bad-flag", "--out names no file"))
	case filepath.Ext(o.Out) != ".yaml":
		l.Add(diag.New("bad-flag", "--out %q: the name of a device file ends in .yaml", o.Out))
	case o.Raw == o.Out:
		l.Add(diag.New("bad-flag", "--out and --raw name the same file"))
	}
	for _, file := range []string{o.Out, o.Raw} {
		if file == "" {
			continue
		}
		if d := o.refuses(file); d != nil {
			l.Add(d)
		}
	}
	return base, l.Err()
}

// refuses returns a diagnostic that says why a file cannot be written, nil if it can.
func (o *CalibrateOptions) refuses(file string) *diag.Diagnostic {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		dir := filepath.Dir(file)
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return &diag.Diagnostic{ID: "cannot-write", File: file, Message: dir + " is no directory"}
		}
		return nil
	case err != nil:
		return &diag.Diagnostic{ID: "cannot-write", File: file, Message: diag.Reason(err).Error()}
	case info.IsDir():
		return &diag.Diagnostic{ID: "cannot-write", File: file, Message: "is a directory, a file is wanted"}
	case !o.Force:
		return &diag.Diagnostic{
			ID: "not-empty", File: file, Message: "is there already",
			Help: "name another file, or replace it with --force",
		}
	}
	return nil
}

// measure builds and runs the measuring program.
func measure(ctx context.Context, job *driver.Job) (*calibrate.Result, error) {
	arch := toolchain.LocalArch(ctx)
	if arch == "" {
		return nil, &toolchain.Missing{
			Tool: "a GPU", Help: "calibrate measures the GPU of the machine it runs on, and nvidia-smi tells of none",
		}
	}
	nvcc, err := toolchain.FindNVCC("")
	if err != nil {
		return nil, err
	}
	dir, remove, err := job.Folders.Make("", "rammerc-calibrate-")
	if err != nil {
		return nil, err
	}
	defer remove()
	done := job.Stage("nvcc")
	end := job.Waiting("nvcc")
	program, err := calibrate.Build(ctx, nvcc, dir, arch)
	end()
	if err != nil {
		return nil, err
	}
	done("the measuring program, for %s", arch)
	defer timing.Alone(job.Waiting)()
	done = job.Stage("measure")
	measured, err := calibrate.Run(ctx, program, job.Progress("measure"))
	if err != nil {
		return nil, err
	}
	done("%s, %s", measured.Device.Product, progress.Count(len(measured.Measurements), "measurement"))
	return measured, nil
}

// Lines is the table of measurements, for standard error.
func (r *Calibrated) Lines() []string {
	out := []string{fmt.Sprintf("%-20s %12s %12s %12s", "", "p10", "median", "p90")}
	for _, f := range r.Measurements {
		out = append(out, fmt.Sprintf("%-20s %12.4g %12.4g %12.4g %s", f.Name, f.P10, f.Median, f.P90, f.Unit))
	}
	return out
}

// Text prints the files that were written.
func (r *Calibrated) Text(w io.Writer) {
	fmt.Fprintln(w, r.File)
	if r.Raw != "" {
		fmt.Fprintln(w, r.Raw)
	}
}
