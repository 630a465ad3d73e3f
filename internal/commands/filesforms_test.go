package commands

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/vdevice"
)

// against compares a value with a schema document and returns what is wrong, with where it is. A field that the
// document does not have is wrong, too: a document that lags behind what is written must be noticed.
func against(s map[string]any, v any, where string) []string {
	if want, is := s["const"]; is && v != want {
		return []string{fmt.Sprintf("%s is %v, want %v", where, v, want)}
	}
	switch v := v.(type) {
	case map[string]any:
		return append(ofType(s, where, "object"), objectAgainst(s, v, where)...)
	case []any:
		out := ofType(s, where, "array")
		items, _ := s["items"].(map[string]any)
		for i, x := range v {
			out = append(out, against(items, x, fmt.Sprintf("%s[%d]", where, i))...)
		}
		return out
	case string:
		return append(ofType(s, where, "string"), lineAgainst(s, v, where)...)
	case bool:
		return ofType(s, where, "boolean")
	case nil:
		return ofType(s, where, "null")
	case float64:
		if v == float64(int64(v)) {
			return ofType(s, where, "integer", "number")
		}
		return ofType(s, where, "number")
	case int:
		return ofType(s, where, "integer", "number")
	}
	panic(fmt.Sprintf("BUG: %T", v))
}

func ofType(s map[string]any, where string, is ...string) []string {
	var allowed []string
	switch t := s["type"].(type) {
	case nil:
		return nil
	case string:
		allowed = []string{t}
	case []string:
		allowed = t
	}
	if slices.ContainsFunc(is, func(x string) bool { return slices.Contains(allowed, x) }) {
		return nil
	}
	return []string{fmt.Sprintf("%s is of type %s, want %v", where, is[0], allowed)}
}

func objectAgainst(s map[string]any, v map[string]any, where string) (out []string) {
	properties, _ := s["properties"].(map[string]any)
	others, anyName := s["additionalProperties"].(map[string]any)
	for name, x := range v {
		inner, known := properties[name].(map[string]any)
		switch {
		case known:
			out = append(out, against(inner, x, where+"."+name)...)
		case anyName:
			out = append(out, against(others, x, where+"."+name)...)
		case properties != nil:
			out = append(out, where+"."+name+" is not in the document")
		}
	}
	required, _ := s["required"].([]string)
	for _, name := range required {
		if _, there := v[name]; !there {
			out = append(out, where+"."+name+" is missing")
		}
	}
	return out
}

func lineAgainst(s map[string]any, line, where string) []string {
	kinds, _ := s["anyOf"].([]map[string]any)
	if len(kinds) == 0 || slices.ContainsFunc(kinds, func(k map[string]any) bool { return kindOf(k).MatchString(line) }) {
		return nil
	}
	return []string{fmt.Sprintf("%s, %q, is of no kind", where, line)}
}

var kindsOfLines = map[string]*regexp.Regexp{}

func kindOf(kind map[string]any) *regexp.Regexp {
	pattern := kind["pattern"].(string)
	if kindsOfLines[pattern] == nil {
		kindsOfLines[pattern] = regexp.MustCompile(pattern)
	}
	return kindsOfLines[pattern]
}

// linesOf are the lines of a plan's text as the schema document describes them.
func linesOf(text string) []any {
	var out []any
	for line := range strings.Lines(text) {
		// A name may have a # in it, but not behind a space.
		line, _, _ = strings.Cut(line, " # ")
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}

func document(t *testing.T, form string) map[string]any {
	t.Helper()
	s, err := JSONSchema(form)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The files that the compiler writes are what the schema documents say, and the kinds of lines that these have occur.
func TestPlanFilesHaveTheirForms(t *testing.T) {
	plans, lines := document(t, codegen.PlanSchema), document(t, vdevice.TextForm)
	seen := map[string]bool{}
	for _, c := range []struct{ model, target, plan, dim string }{
		{"digits_branchy", "sm_90", "parallel", ""}, {"digits_branchy", driver.TargetEmu, "rprogram", ""},
		{"digits_attention", "sm_90", "waves", ""}, {"digits_lstm", "sm_90", "clusters-8", ""},
		{"digits_lstm", "sm_90", "rprogram", ""}, {"digits_branchy_dyn", driver.TargetEmu, "auto", "batch=1..4"},
	} {
		o := driver.CompileOptions{Out: filepath.Join(t.TempDir(), "lib"), Target: c.target, Plan: c.plan, Offline: true,
			Emit: driver.EmitSources, Dump: filepath.Join(t.TempDir(), "dump")}
		o.Path = filepath.Join("../../testdata/models", c.model+".onnx")
		if c.dim != "" {
			o.Dims = []string{c.dim}
		}
		if _, err := driver.Compile(&driver.Job{}, o); err != nil {
			t.Fatal(err)
		}
		for _, file := range files(t, o.Out, "*.plan.json") {
			var plan any
			if err := json.Unmarshal(file, &plan); err != nil {
				t.Fatal(err)
			}
			for _, wrong := range against(plans, plan, "plan") {
				t.Errorf("%v: %s", c, wrong)
			}
		}
		for _, text := range files(t, o.Dump, "*.rprog") {
			list := linesOf(string(text))
			for _, wrong := range against(lines, list, "lines") {
				t.Errorf("%v: %s", c, wrong)
			}
			note(seen, lines, list)
		}
	}
	for _, kind := range lines["items"].(map[string]any)["anyOf"].([]map[string]any) {
		if !seen[kind["pattern"].(string)] {
			t.Errorf("no plan has a line of the kind %s", kind["pattern"])
		}
	}
}

// note marks the kinds that lines have.
func note(seen map[string]bool, schema map[string]any, lines []any) {
	for _, kind := range schema["items"].(map[string]any)["anyOf"].([]map[string]any) {
		pattern := kind["pattern"].(string)
		if !seen[pattern] && slices.ContainsFunc(lines, func(l any) bool { return kindOf(kind).MatchString(l.(string)) }) {
			seen[pattern] = true
		}
	}
}

func files(t *testing.T, dir, pattern string) (out [][]byte) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(names) == 0 {
		t.Fatalf("no %s in %s: %v", pattern, dir, err)
	}
	for _, n := range names {
		text, err := os.ReadFile(n)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, text)
	}
	return out
}

func TestDeviceFilesHaveTheirForm(t *testing.T) {
	s := document(t, DeviceForm)
	for _, text := range files(t, "../../device/devices", "*.yaml") {
		var v map[string]any
		if err := yaml.Unmarshal(text, &v); err != nil {
			t.Fatal(err)
		}
		for _, wrong := range against(s, v, v["name"].(string)) {
			t.Error(wrong)
		}
	}
}

// What is wrong in a file is wrong by its document, too.
func TestFormsRefuse(t *testing.T) {
	for _, c := range []struct {
		form string
		v    any
		want string
	}{
		{vdevice.TextForm, []any{"rprogram 3"}, `"rprogram 3", is of no kind`},
		{vdevice.TextForm, []any{"veu -1"}, "is of no kind"},
		{vdevice.TextForm, []any{"0.5 wave 0 wait 1.0"}, "is of no kind"},
		{vdevice.TextForm, []any{"0.5 wave 0 signal adds 0 crooked"}, "is of no kind"},
		{DeviceForm, map[string]any{"name": 5}, "x.name is of type integer"},
		{DeviceForm, map[string]any{"name": "a", "speed": 5}, "x.speed is not in the document"},
		{DeviceForm, map[string]any{"cost": map[string]any{}}, "x.cost.launch_ns is missing"},
		{codegen.PlanSchema, map[string]any{"schema": 2}, "x.schema is 2, want " + codegen.PlanSchema},
		{codegen.PlanSchema, map[string]any{}, "x.segments is missing"},
	} {
		if got := against(document(t, c.form), c.v, "x"); !strings.Contains(strings.Join(got, "\n"), c.want) {
			t.Errorf("%v: %q, want %q", c.v, got, c.want)
		}
	}
}
