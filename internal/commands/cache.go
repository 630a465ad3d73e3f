package commands

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/outdir"
	"github.com/rammerc/rammerc/internal/progress"
	"github.com/rammerc/rammerc/profiler/db"
)

// CacheOptions are the flags of `rammerc cache`.
type CacheOptions struct {
	File string // the database; "" for the user's
	GPU  string // only entries of this product; "" for all
	Args []string
}

// Cached is what `rammerc cache` reports.
type Cached struct {
	Schema  string     `json:"schema"`
	File    string     `json:"file"`
	Damaged int        `json:"damaged"` // lines that are no entries
	Shipped int        `json:"shipped"` // entries that come with rammerc
	Groups  []CacheRow `json:"groups,omitempty"`
	Entries []db.Entry `json:"entries,omitempty"`
	Before  int        `json:"lines_before,omitempty"` // of gc
	After   int        `json:"lines_after,omitempty"`
	Added   int        `json:"added,omitempty"`   // by merge
	Written string     `json:"written,omitempty"` // by export
	action  string
}

// CacheRow counts the entries of a machine.
type CacheRow struct {
	db.Machine
	Entries  int `json:"entries"`
	Problems int `json:"problems"` // candidates that are never used
}

// cacheAction is what `rammerc cache` can do.
type cacheAction struct {
	name, args, doc string
	least, most     int // arguments
	run             func(o *CacheOptions, r *Cached) error
}

// cacheActions is in the order in which the manual lists them.
func cacheActions() []cacheAction {
	return []cacheAction{
		{"ls", "", "count the entries of each machine", 0, 0, (*CacheOptions).list},
		{"show", "TEXT…", "show entries whose instance, operator, model or key contains all of the texts", 0, 1 << 10,
			(*CacheOptions).show},
		{"merge", "FILE…", "add what other databases have and this one has not", 1, 1 << 10, (*CacheOptions).merge},
		{"gc", "", "drop damaged lines, lines of other versions and all but the latest of equal keys; with --gpu those of " +
			"other GPUs too", 0, 0, (*CacheOptions).gc},
		{"export", "FILE", "write all entries, compressed if FILE ends in .gz", 1, 1, (*CacheOptions).export},
	}
}

// CacheManual describes the actions.
func CacheManual() string {
	var b strings.Builder
	for _, a := range cacheActions() {
		fmt.Fprintf(&b, "  %-15s %s\n", strings.TrimSpace(a.name+" "+a.args), a.doc)
	}
	return b.String()
}

// CacheActions lists their names.
func CacheActions() []string {
	var names []string
	for _, a := range cacheActions() {
		names = append(names, a.name)
	}
	return names
}

// Cache looks at the database of measurements, or changes it.
func Cache(o CacheOptions) (*Cached, error) {
	if o.File == "" {
		var err error
		if o.File, err = db.DefaultPath(); err != nil {
			return nil, err
		}
	}
	name, args := o.Args[0], o.Args[1:]
	actions := cacheActions()
	i := slices.IndexFunc(actions, func(a cacheAction) bool { return a.name == name })
	if i < 0 {
		return nil, diag.New("bad-argument", "%q: want one of %s", name, strings.Join(CacheActions(), ", "))
	}
	a := actions[i]
	if len(args) < a.least || len(args) > a.most {
		return nil, diag.New("bad-argument", "want cache %s", strings.TrimSpace(a.name+" "+a.args))
	}
	o.Args = args
	r := &Cached{Schema: "rammerc/cache/v1", File: o.File, action: name}
	shipped, err := db.Shipped()
	if err != nil {
		return nil, err
	}
	r.Shipped = len(shipped)
	if err := a.run(&o, r); err != nil {
		return nil, &diag.Diagnostic{ID: "bad-database", File: o.File, Message: diag.Reason(err).Error()}
	}
	return r, nil
}

// entries reads what is asked for.
func (o *CacheOptions) entries(r *Cached) (out []db.Entry, err error) {
	out, r.Damaged, err = db.ReadFile(o.File)
	out = slices.DeleteFunc(db.Latest(out), func(e db.Entry) bool { return o.GPU != "" && e.GPU != o.GPU })
	return out, err
}

func (o *CacheOptions) list(r *Cached) error {
	entries, err := o.entries(r)
	for _, e := range entries {
		i := slices.IndexFunc(r.Groups, func(g CacheRow) bool { return g.Machine == e.Machine })
		if i < 0 {
			i = len(r.Groups)
			r.Groups = append(r.Groups, CacheRow{Machine: e.Machine})
		}
		r.Groups[i].Entries++
		if e.Problem != "" {
			r.Groups[i].Problems++
		}
	}
	return err
}

func (o *CacheOptions) show(r *Cached) error {
	entries, err := o.entries(r)
	for _, e := range entries {
		text := strings.Join([]string{e.Instance, e.Op, e.Model, e.ID(), e.Problem}, " ")
		if !slices.ContainsFunc(o.Args, func(want string) bool { return !strings.Contains(text, want) }) {
			r.Entries = append(r.Entries, e)
		}
	}
	return err
}

func (o *CacheOptions) merge(r *Cached) (err error) {
	r.Added, err = db.Merge(o.File, o.Args...)
	return err
}

func (o *CacheOptions) gc(r *Cached) (err error) {
	r.Before, r.After, err = db.Collect(o.File, func(e *db.Entry) bool { return o.GPU == "" || e.GPU == o.GPU })
	return err
}

func (o *CacheOptions) export(r *Cached) error {
	entries, err := o.entries(r)
	if err != nil {
		return err
	}
	text, err := db.Format(entries)
	if err != nil {
		return err
	}
	if strings.HasSuffix(o.Args[0], ".gz") {
		var packed bytes.Buffer
		z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		if _, err := z.Write(text); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		text = packed.Bytes()
	}
	r.Written, r.After = o.Args[0], len(entries)
	if _, err := os.Stat(r.Written); err == nil {
		return fmt.Errorf("%s exists", r.Written)
	}
	return outdir.WriteFile(r.Written, text)
}

// Text prints what was found or done.
func (r *Cached) Text(w io.Writer) {
	switch r.action {
	case "merge":
		fmt.Fprintf(w, "%s added to %s\n", progress.Count(r.Added, "measurement"), r.File)
	case "gc":
		fmt.Fprintf(w, "%s: %s became %d\n", r.File, progress.Count(r.Before, "line"), r.After)
	case "export":
		fmt.Fprintf(w, "%s: %d entries\n", r.Written, r.After)
	case "show":
		r.entryTable(w)
	default:
		fmt.Fprintf(w, "%s; %d damaged lines; %d entries ship with rammerc\n", r.File, r.Damaged, r.Shipped)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "ENTRIES\tPROBLEMS\tGPU\tCLOCKS\tDRIVER\tNVCC\tRUN TIME")
		for _, g := range r.Groups {
			fmt.Fprintf(t, "%d\t%d\t%s\t%s\t%s\t%s\t%s\n", g.Entries, g.Problems, g.GPU, g.Clocks, g.Driver, g.NVCC,
				g.RunTime)
		}
		t.Flush()
	}
}

func (r *Cached) entryTable(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "RTASKS\tALONE\tWAVE\tCOLD\tDRAM\tMEMORY\tARITHMETIC\tMODELLED\tREGISTERS\tSPILLS\tCODE\t"+
		"  INSTANCE (OPERATOR, MODEL), TIMES OF AN RTASK IN ns")
	for _, e := range r.Entries {
		label := fmt.Sprintf("%s (%s, %s)", e.Instance, e.Op, e.Model)
		if e.Problem != "" {
			label += ": " + e.Problem
		}
		n := e.Times
		fmt.Fprintf(t, "%d\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%d\t%d\t%d\t  %s\n", e.Tasks, n.Alone,
			n.Wave, n.Cold,
			n.DRAM, n.BesideMemory, n.BesideArithmetic, e.Modelled, e.Code.Registers, e.Code.Spills,
			e.Code.Bytes, label)
	}
	t.Flush()
}
