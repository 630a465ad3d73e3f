package commands

import (
	"encoding"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/codegen/abi"
	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/calibrate"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/trace"
	"github.com/rammerc/rammerc/vdevice"
)

// DeviceForm names the form of device files.
const DeviceForm = "rammerc/device/v1"

// forms are the forms of JSON that commands print with --json, by the values of their schema fields, with a value of the
// Go type that is printed; and those of files, of which plans and launch lists have a schema field.
var forms = map[string]any{
	"rammerc/bench/v2": BenchResult{}, "rammerc/cache/v1": Cached{},
	"rammerc/calibrate/v2": Calibrated{}, "rammerc/calibrate-raw/v1": rawMeasurements{Result: &calibrate.Result{}},
	"rammerc/check/v1": CheckReport{}, "rammerc/config/v1": Config{},
	"rammerc/collect/v1": driver.Collected{}, "rammerc/compile/v1": driver.Compiled{}, "rammerc/convert/v1": ConvertResult{},
	"rammerc/devices/v2": DeviceList{},
	"rammerc/error/v1":   ErrorResult{}, "rammerc/fit/v2": FitReport{}, "rammerc/inspect/v1": Inspection{},
	"rammerc/inspect-library/v1": LibraryInspection{}, "rammerc/inspect-plan/v1": LibraryInspection{},
	"rammerc/man/v1": ManPages{}, "rammerc/ops/v1": OpList{}, "rammerc/profile/v1": Profile{Report: &trace.Report{}},
	"rammerc/report/v1": ReportResult{}, "rammerc/run/v1": RunResult{}, "rammerc/tune/v1": driver.Tuned{},
	"rammerc/verify/v1": VerifyResult{}, "rammerc/version/v1": driver.VersionInfo{},
	abi.LaunchListSchema: abi.LaunchList{}, codegen.PlanSchema: codegen.PlanFile{}, DeviceForm: device.Spec{}, vdevice.TextForm: nil,
}

// ErrorResult is what commands print with --json when they fail.
type ErrorResult struct {
	Schema      string             `json:"schema"`
	ExitCode    int                `json:"exit_code"`
	Error       string             `json:"error"`
	Diagnostics []*diag.Diagnostic `json:"diagnostics,omitempty"`
}

// Config is what commands print with --print-config and --json: the flags in force, by their names, as a configuration
// file has them in a section of the command's name.
type Config struct {
	Schema string                    `json:"schema"`
	Config map[string]map[string]any `json:"config"`
}

// ManPages is what `rammerc man` prints with --json.
type ManPages struct {
	Schema string `json:"schema"`
	Dir    string `json:"dir"` // where the pages are
}

// OpList is what `rammerc ops` prints with --json.
type OpList struct {
	Schema string   `json:"schema"`
	Ops    []OpInfo `json:"operators"`
}

// Forms lists the forms that have a schema document.
func Forms() []string { return slices.Sorted(maps.Keys(forms)) }

// JSONSchema is the schema document of a form, in JSON Schema of draft 2020-12. Fields may be added to a form; what else
// changes gives it another name.
func JSONSchema(form string) (map[string]any, error) {
	v, known := forms[form]
	if !known {
		return nil, diag.New("unknown-form", "there is no form %q; there are %s", form, strings.Join(Forms(), ", "))
	}
	var s map[string]any
	switch form {
	case vdevice.TextForm:
		s = linesSchema()
	case DeviceForm:
		s = deviceSchema()
		s["description"] = "a device file, which is YAML"
	default:
		s = describer{tag: "json"}.schemaOf(reflect.TypeOf(v), nil)
		s["properties"].(map[string]any)["schema"] = map[string]any{"const": form}
	}
	s["$schema"], s["$id"] = "https://json-schema.org/draft/2020-12/schema", form
	return s, nil
}

// deviceSchema describes a device's figures.
func deviceSchema() map[string]any {
	s := describer{tag: "yaml"}.schemaOf(reflect.TypeFor[device.Spec](), nil)
	cost := s["properties"].(map[string]any)["cost"].(map[string]any)
	cost["required"] = slices.DeleteFunc(cost["required"].([]string), func(name string) bool {
		return slices.Contains(device.OptionalCosts(), name)
	})
	return s
}

// linesSchema describes the text form of plans as an array of its lines.
func linesSchema() map[string]any {
	var kinds []map[string]any
	for _, f := range vdevice.LineForms() {
		kinds = append(kinds, map[string]any{"description": f.Doc, "pattern": f.Pattern})
	}
	return map[string]any{
		"description": "the lines of a .rprog file, without comments, which # starts, and without empty lines",
		"type":        "array", "items": map[string]any{"type": "string", "anyOf": kinds},
	}
}

// describer describes Go types by what they become in a file; tag is the key of the struct tags that say how.
type describer struct{ tag string }

// schemaOf describes what a Go type becomes. Types inside of themselves, outer has those around, may be anything where
// they come again.
func (d describer) schemaOf(t reflect.Type, outer []reflect.Type) map[string]any {
	if t.Kind() == reflect.Pointer {
		return d.schemaOf(t.Elem(), outer)
	}
	own := reflect.PointerTo(t)
	switch {
	case t == reflect.TypeFor[DeviceFigures]():
		return deviceSchema()
	case t == reflect.TypeFor[DeviceRow]():
		s := deviceSchema()
		s["properties"].(map[string]any)["plans"] = d.schemaOf(reflect.TypeFor[[]string](), outer)
		s["required"] = append(s["required"].([]string), "plans")
		return s
	case slices.Contains(outer, t), own.Implements(reflect.TypeFor[json.Marshaler]()):
		return map[string]any{}
	case own.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return map[string]any{"type": "string"}
	case t == reflect.TypeFor[[]byte]():
		return map[string]any{"type": "string", "contentEncoding": "base64"}
	}
	switch t.Kind() {
	case reflect.Struct:
		s := map[string]any{"type": "object", "properties": map[string]any{}}
		required := d.addFields(s["properties"].(map[string]any), t, append(outer, t))
		if len(required) > 0 {
			s["required"] = required
		}
		return s
	case reflect.Slice, reflect.Array:
		// A nil slice is null.
		return map[string]any{"type": []string{"array", "null"}, "items": d.schemaOf(t.Elem(), outer)}
	case reflect.Map:
		return map[string]any{"type": []string{"object", "null"}, "additionalProperties": d.schemaOf(t.Elem(), outer)}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Interface:
		return map[string]any{}
	}
	return map[string]any{"type": "integer"}
}

// addFields adds the fields of a struct, those of embedded structs too, and returns the names of those that are always
// there.
func (d describer) addFields(properties map[string]any, t reflect.Type, outer []reflect.Type) (required []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get(d.tag), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case f.Anonymous && name == "" && inner.Kind() == reflect.Struct:
			required = append(required, d.addFields(properties, inner, outer)...)
			continue
		case !f.IsExported() || name == "-":
			continue
		case name == "":
			name = f.Name
		}
		properties[name] = d.schemaOf(f.Type, outer)
		if !strings.Contains(options, "omit") && f.Type.Kind() != reflect.Pointer {
			required = append(required, name)
		}
	}
	return required
}
