package device

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/limits"
)

//go:embed devices/*.yaml
var deviceFiles embed.FS

var builtin = sync.OnceValue(func() []*Spec {
	names, err := fs.Glob(deviceFiles, "devices/*.yaml")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	var out []*Spec
	for _, n := range names {
		data, err := deviceFiles.ReadFile(n)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		s, err := Parse(path.Base(n), data)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		out = append(out, s)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
})

// All lists the devices rammerc knows, sorted by name. The specs are the caller's own copies.
func All() []*Spec {
	var out []*Spec
	for _, s := range builtin() {
		c := *s
		out = append(out, &c)
	}
	return out
}

// Find returns the built-in device of that name, or reads a device file.
func Find(nameOrFile string) (*Spec, error) {
	var names []string
	for _, s := range All() {
		if s.Name == nameOrFile {
			return s, nil
		}
		names = append(names, s.Name)
	}
	if filepath.Ext(nameOrFile) == "" && filepath.Base(nameOrFile) == nameOrFile {
		return nil, &diag.Diagnostic{
			ID: "unknown-device", Message: fmt.Sprintf("there is no device called %q", nameOrFile),
			Help: "known devices are " + strings.Join(names, ", ") + "; a device file ends in .yaml",
		}
	}
	data, err := limits.Read(nameOrFile, limits.SmallText)
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return nil, &diag.Diagnostic{ID: "bad-device-file", File: nameOrFile, Message: "cannot read the device file: " +
			err.Error()}
	}
	return Parse(nameOrFile, data)
}

// Parse reads a device file. Every field that is not optional must be there and no other; file is for
// messages only.
func Parse(file string, data []byte) (*Spec, error) {
	var l diag.List
	lines := keyLines(data)
	s := &Spec{}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(s); err != nil {
		addYAMLErrors(&l, file, err)
		return nil, l.Err()
	}
	if err := dec.Decode(new(yaml.Node)); err != io.EOF {
		l.Add(&diag.Diagnostic{ID: "bad-device-file", File: file, Message: "want one YAML document, found more"})
	}
	optional := map[string]bool{} // and not there
	for _, d := range costDefaults {
		if _, present := lines["cost."+d.key]; !present {
			*d.at(&s.Cost) = d.value(&s.Cost)
			optional["cost."+d.key] = true
		}
	}
	if _, present := lines["clusters"]; !present {
		optional["clusters"] = true
	}
	for _, r := range specRules(s) {
		line, present := lines[r.key]
		switch {
		case optional[r.key]:
		case !present:
			l.Add(&diag.Diagnostic{ID: "bad-device-file", File: file, Message: r.key + " is missing", Help: "want " +
				r.want})
		case !r.ok:
			l.Add(&diag.Diagnostic{ID: "bad-device-file", File: file, Line: line,
				Message: fmt.Sprintf("%s is %v, want %s", r.key, r.got, r.want)})
		}
	}
	s.Fitted.check(&l, file, lines)
	s.checkTensor(&l, file, lines)
	checkKernels(&l, file, lines, "rkernels", s.Kernels)
	checkKernels(&l, file, lines, "rkernels_in_programs", s.InPrograms)
	checkFactors(&l, file, lines, "slower_in_programs", 1, s.Slower)
	checkFactors(&l, file, lines, "programs", 0, s.Programs.Modelled)
	checkFactors(&l, file, lines, "programs", 0, s.Programs.Measured)
	if err := l.Err(); err != nil {
		return nil, err
	}
	s.Measured, s.Cost = s.Cost, s.Fitted.Planned(s.Cost)
	return s, nil
}

// checkTensor reports rates of unknown operands, and such as are no rates.
func (s *Spec) checkTensor(l *diag.List, file string, lines map[string]int) {
	for _, key := range slices.Sorted(maps.Keys(s.Tensor)) {
		d := &diag.Diagnostic{ID: "bad-device-file", File: file, Line: lines["tensor_flops_per_ns."+key]}
		switch v := s.Tensor[key]; {
		case !slices.Contains(TensorTypes(), key):
			d.Message = fmt.Sprintf("tensor_flops_per_ns.%s: there is no such operand", key)
			d.Help = "want one of " + strings.Join(TensorTypes(), ", ")
		case !(v > 0) || math.IsInf(v, 0):
			d.Message = fmt.Sprintf("tensor_flops_per_ns.%s is %v, want a positive number", key, v)
		default:
			continue
		}
		l.Add(d)
	}
}

// checkKernels reports fits of rKernels that are none.
func checkKernels(l *diag.List, file string, lines map[string]int, section string, fits map[string]KernelFit) {
	for _, key := range slices.Sorted(maps.Keys(fits)) {
		f := fits[key]
		for _, v := range []float64{f.Latency, f.Arithmetic, f.Shared, f.Traffic,
			1 / (f.Latency + f.Arithmetic + f.Traffic)} {
			if !(v >= 0) || math.IsInf(v, 0) {
				l.Add(&diag.Diagnostic{ID: "bad-device-file", File: file, Line: lines[section+"."+key],
					Message: fmt.Sprintf(
						"%s.%s is %+v, want numbers not below 0, and not all of them 0", section, key, f)})
				break
			}
		}
	}
}

// checkFactors reports factors that are below the least, or are none. slower_in_programs has none that make rTasks faster
// in programs than by themselves.
func checkFactors(l *diag.List, file string, lines map[string]int, section string, least float64,
	factors map[string]float64) {
	for _, key := range slices.Sorted(maps.Keys(factors)) {
		v := factors[key]
		if v > 0 && v >= least && !math.IsInf(v, 0) {
			continue
		}
		want := "a positive number"
		if least > 0 {
			want = fmt.Sprintf("a number of at least %v", least)
		}
		line := lines[section+"."+key]
		if line == 0 {
			line = lines[section]
		}
		l.Add(&diag.Diagnostic{ID: "bad-device-file", File: file, Line: line,
			Message: fmt.Sprintf("%s.%s is %v, want %s", section, key, v, want)})
	}
}

// addYAMLErrors splits the decoder's error into one diagnostic a line.
func addYAMLErrors(l *diag.List, file string, err error) {
	texts := []string{strings.TrimPrefix(err.Error(), "yaml: ")}
	var te *yaml.TypeError
	if errors.As(err, &te) {
		texts = te.Errors
	}
	if err == io.EOF {
		texts = []string{"the file is empty"}
	}
	for _, t := range texts {
		d := &diag.Diagnostic{ID: "bad-device-file", File: file, Message: t}
		if m := yamlLine.FindStringSubmatch(t); m != nil {
			d.Line, _ = strconv.Atoi(m[1])
			d.Message = t[len(m[0]):]
		}
		d.Message = strings.NewReplacer("device.Spec", "a device", "device.Cost", "its cost").Replace(d.Message)
		l.Add(d)
	}
}

var yamlLine = regexp.MustCompile(`^line (\d+): `)

// keyLines maps "sms", "cost.hop_ns", … to the line each stands on. Files the decoder refuses are
// reported there.
func keyLines(data []byte) map[string]int {
	lines := map[string]int{}
	var doc yaml.Node
	if yaml.Unmarshal(data, &doc) != nil || len(doc.Content) == 0 {
		return lines
	}
	addKeyLines(lines, "", doc.Content[0])
	return lines
}

func addKeyLines(lines map[string]int, prefix string, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := prefix + n.Content[i].Value
		lines[key] = n.Content[i].Line
		if prefix == "" {
			addKeyLines(lines, key+".", n.Content[i+1])
		}
	}
}

type specRule struct {
	key  string
	got  any
	ok   bool
	want string
}

var (
	specName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	specArch = regexp.MustCompile(`^(emu|sm_[0-9]{2,3}[af]?)$`)
)

func specRules(s *Spec) []specRule {
	c := &s.Cost
	return []specRule{
		{"name", s.Name, specName.MatchString(s.Name), "letters, digits, dots, dashes and underscores"},
		{"product", s.Product, s.Product != "", "the product's name"},
		{"arch", s.Arch, specArch.MatchString(s.Arch), "sm_NN or emu"},
		intRule("sms", s.SMs, 1, 4096),
		intRule("veus_per_sm", s.VEUsPerSM, 1, 32),
		{"max_threads", s.Threads, s.Threads >= 32 && s.Threads <= 1024 && s.Threads%32 == 0,
			"a multiple of 32 up to 1024"},
		intRule("shared_bytes", s.Shared, 1<<10, 1<<24),
		{"shared_per_veu", s.SharedPerVEU, s.SharedPerVEU >= 1<<10 && s.SharedPerVEU <= s.Shared,
			"at least 1024 and at most shared_bytes"},
		intRule("registers", s.Registers, 1<<10, 1<<24),
		{"clusters", s.Clusters, s.clustersFit(), "no more than there are SMs, with one vEU on each"},
		{"l2_bytes", s.L2Bytes, s.L2Bytes > 0, "a positive number"},
		{"memory_bytes", s.Memory, s.Memory > 0, "a positive number"},
		costRule("launch_ns", c.Launch, true), costRule("node_ns", c.Node, true), costRule("pdl_ns", c.PDL, true),
		costRule("cold_launch_ns", c.Cold, true), costRule("publish_ns", c.Publish, true),
		costRule("beside_share", c.Beside, true),
		costRule("hop_ns", c.Hop, true), costRule("wait_each_ns", c.WaitEach, true),
		costRule("barrier_ns", c.Barrier, true), costRule("counter_ns", c.Counter, true),
		costRule("tagged_ns", c.Tagged, true), costRule("tagged_root_ns", c.TaggedRoot, true),
		costRule("cluster_ns", c.Cluster, true),
		costRule("step_ns", c.Step, true), costRule("latency_ns", c.Latency, true),
		costRule("l2_bytes_per_ns", c.L2PerSM, false), costRule("l2_total_bytes_per_ns", c.L2Total, false),
		costRule("dram_bytes_per_ns", c.DRAM, false), costRule("fp32_flops_per_ns", c.FlopsPerSM, false),
		{"cost.source", c.Source, c.Source != "", "words saying where the figures come from"},
	}
}

func intRule(key string, got, lo, hi int) specRule {
	return specRule{key, got, got >= lo && got <= hi, fmt.Sprintf("a number from %d to %d", lo, hi)}
}

func costRule(key string, got float64, zero bool) specRule {
	want := "a positive number"
	if zero {
		want = "a number not below 0"
	}
	ok := !math.IsNaN(got) && !math.IsInf(got, 0) && (got > 0 || zero && got == 0)
	return specRule{"cost." + key, got, ok, want}
}

func (s *Spec) clustersFit() bool {
	for _, size := range ClusterSizes() {
		if n := s.Clusters.Of(size); n < 0 || s.SMs > 0 && n > s.SMs/size {
			return false
		}
	}
	return s.VEUsPerSM <= 1 || s.Clusters == Clusters{}
}
