package device

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rammerc/rammerc/internal/diag"
)

func TestDevices(t *testing.T) {
	var names []string
	for _, s := range All() {
		names = append(names, s.Name)
		if !strings.Contains(s.Cost.Source, "measured") && s.Name != "emu4" {
			t.Errorf("%s does not say what is measured: %q", s.Name, s.Cost.Source)
		}
	}
	if d := cmp.Diff([]string{"a100", "emu4", "h100", "h200", "rtx4090", "v100"}, names); d != "" {
		t.Error(d)
	}
	All()[0].SMs = 1
	if All()[0].SMs == 1 {
		t.Error("Devices hands out its own copy")
	}
}

func TestFindDevice(t *testing.T) {
	data, err := deviceFiles.ReadFile("devices/emu4.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(file, []byte(strings.Replace(string(data), "sms: 4", "sms: 9", 1)), 0o666); err != nil {
		t.Fatal(err)
	}
	if s, err := Find(file); err != nil || s.VEUs() != 9 {
		t.Errorf("%v, %v", s, err)
	}
	for _, c := range []struct{ name, want string }{
		{"h300", "h200, rtx4090"},
		{filepath.Join(t.TempDir(), "none.yaml"), "no such file"},
	} {
		if _, err := Find(c.name); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestBadDeviceFiles(t *testing.T) {
	// A file that no measurement will change.
	data, err := deviceFiles.ReadFile("devices/emu4.yaml")
	if err != nil {
		t.Fatal(err)
	}
	good := string(data)
	lineOf := func(part string) int {
		i := strings.Index(good, part)
		if i < 0 {
			t.Fatalf("no %q", part)
		}
		return 1 + strings.Count(good[:i], "\n")
	}
	for _, c := range []struct{ old, new, want string }{
		{"of_4: 1", "of_4: 2", "no more than there are SMs"},
		{"sms: 4", "sms: 0", "sms is 0, want a number from 1 to 4096"},
		{"sms: 4", "sms: many", "cannot unmarshal"},
		{"sms: 4", "sms: 99999999999999999999", "cannot unmarshal"},
		{"sms: 4", "smms: 4", "field smms not found in type a device"},
		{"hop_ns: 10000", "hop_ns: .nan", "cost.hop_ns is NaN"},
		{"hop_ns: 10000", "hop_ns: -1", "want a number not below 0"},
		{"dram_bytes_per_ns: 8", "dram_bytes_per_ns: 0", "want a positive number"},
		{"arch: emu", "arch: gfx90a", "want sm_NN or emu"},
		{"max_threads: 256", "max_threads: 100", "want a multiple of 32"},
		{"shared_per_veu: 131072", "shared_per_veu: 999999", "at most shared_bytes"},
		{"name: emu4", "name: ../x", "want letters"},
	} {
		_, err := Parse("d.yaml", []byte(strings.Replace(good, c.old, c.new, 1)))
		ds := diag.All(err)
		if len(ds) != 1 || !strings.Contains(ds[0].Message, c.want) || ds[0].Line != lineOf(c.old) ||
			ds[0].File != "d.yaml" {
			t.Errorf("%s: want %q on line %d, got %v", c.new, c.want, lineOf(c.old), err)
		}
	}
	_, err = Parse("d.yaml", []byte("name: x\nsms: 0\n"))
	if ds := diag.All(err); len(ds) != len(specRules(&Spec{}))-len(costDefaults)-2 { // clusters, too, are optional
		t.Errorf("want all that is missing or wrong, got %v", err)
	}
	for _, text := range []string{"", "[]", "\x00", "a: &a [*a]", strings.Repeat("[", 10_000),
		"name: x\n---\nname: y\n"} {
		if _, err := Parse("d.yaml", []byte(text)); err == nil {
			t.Errorf("%.20q is taken for a device", text)
		}
	}
}

// A device file of when launches of all kinds had one cost still means that, and costs of edges follow
// from the hop.
func TestOptionalCosts(t *testing.T) {
	data, err := deviceFiles.ReadFile("devices/emu4.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var old []string
	for _, line := range strings.Split(string(data), "\n") {
		key, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		if !slices.ContainsFunc(costDefaults, func(d costDefault) bool { return d.key == key }) {
			old = append(old, line)
		}
	}
	s, err := Parse("old.yaml", []byte(strings.Join(old, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	c := s.Cost
	if c.Node != c.Launch || c.PDL != c.Launch {
		t.Errorf("launches of all kinds cost %v ns, got %v and %v", c.Launch, c.Node, c.PDL)
	}
	if !(c.Tagged < c.Hop && c.Cluster < c.Hop && c.Hop < c.Counter && c.Hop < c.Barrier) {
		t.Errorf("edges out of proportion: %+v", c)
	}
	_, err = Parse("bad.yaml", []byte(strings.Replace(string(data), "  pdl_ns: ", "  pdl_ns: -", 1)))
	if err == nil || !strings.Contains(err.Error(), "cost.pdl_ns is -") {
		t.Errorf("want pdl_ns refused, got %v", err)
	}
}
