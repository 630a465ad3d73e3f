package commands

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/driver"
)

// eachName calls visit for every property in a schema document.
func eachName(s map[string]any, visit func(name string)) {
	for _, key := range []string{"items", "additionalProperties"} {
		if inner, ok := s[key].(map[string]any); ok {
			eachName(inner, visit)
		}
	}
	if properties, ok := s["properties"].(map[string]any); ok {
		for name, inner := range properties {
			visit(name)
			eachName(inner.(map[string]any), visit)
		}
	}
}

// Every form that commands print has a schema document, and all names in it are in snake case.
func TestForms(t *testing.T) {
	snake := regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	for _, form := range Forms() {
		s, err := JSONSchema(form)
		if err != nil {
			t.Fatal(err)
		}
		eachName(s, func(name string) {
			if !snake.MatchString(name) {
				t.Errorf("%s: the field %s is not in snake case", form, name)
			}
		})
	}
	if _, err := JSONSchema("rammerc/nothing/v1"); err == nil {
		t.Error("a form that is not there has a schema")
	}
	named := regexp.MustCompile(`"rammerc/[a-z-]+/v[0-9]+"`)
	for _, folder := range []string{".", "../driver", "../trace", "../report", "../../cmd/rammerc"} {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range named.FindAllString(string(text), -1) {
				name = strings.Trim(name, `"`)
				if !strings.HasSuffix(file, "_test.go") && !slices.Contains(Forms(), name) {
					t.Errorf("%s prints %s, which has no schema document", file, name)
				}
			}
		}
	}
}

// A schema document says what is printed.
func TestJSONSchema(t *testing.T) {
	s, err := JSONSchema(driver.Version().Schema)
	if err != nil {
		t.Fatal(err)
	}
	properties := s["properties"].(map[string]any)
	if got := properties["dirty"].(map[string]any)["type"]; got != "boolean" {
		t.Errorf("dirty is %v", got)
	}
	if got := s["required"]; !slices.Equal(got.([]string), []string{"schema", "version", "go", "os", "arch"}) {
		t.Errorf("required are %v", got)
	}
	bench, err := JSONSchema(benchSchema)
	if err != nil {
		t.Fatal(err)
	}
	libraries := bench["properties"].(map[string]any)["libraries"].(map[string]any)["items"].(map[string]any)
	if got := libraries["properties"].(map[string]any)["p50_ms"].(map[string]any)["type"]; got != "number" {
		t.Errorf("p50_ms is %v", got)
	}
}
