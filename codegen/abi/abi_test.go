package abi

import (
	"go/token"
	"math/rand"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/schema"
)

// Values of the XXH64 specification's test programs.
func TestHashVectors(t *testing.T) {
	for _, c := range []struct {
		text string
		want uint64
	}{
		{"", 0xEF46DB3751D8E999}, {"a", 0xD24EC4F1A98C6E5B}, {"abc", 0x44BC2CF5AD770999},
		{"Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1},
	} {
		h := NewHash()
		h.Write([]byte(c.text))
		if got := h.Sum64(); got != c.want {
			t.Errorf("%q hashes to %016x, want %016x", c.text, got, c.want)
		}
	}
}

func TestHashDoesNotDependOnCuts(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	data := make([]byte, 1000)
	rng.Read(data)
	whole := NewHash()
	whole.Write(data)
	for range 50 {
		h := NewHash()
		for rest := data; len(rest) > 0; {
			n := min(1+rng.Intn(70), len(rest))
			h.Write(rest[:n])
			rest = rest[n:]
		}
		if h.Sum64() != whole.Sum64() {
			t.Fatal("cuts change the hash")
		}
	}
}

func FuzzIdentifier(f *testing.F) {
	for _, s := range []string{"", "resnet50-v1.7", "7zip", "класс", "class", "a b\n", "_x", "int", "type", "numpy",
		"x_windows", "a_test", "string"} {
		f.Add(s)
	}
	ok := regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)
	f.Fuzz(func(t *testing.T, s string) {
		id := Identifier(s)
		if !ok.MatchString(id) || taken(id) || endsForGo(id) || token.IsKeyword(id) {
			t.Errorf("%q becomes %q", s, id)
		}
		if strings.Contains(id, "__") || strings.HasSuffix(id, "_") {
			t.Errorf("%q becomes %q, and with a suffix a name that C++ reserves", s, id)
		}
		if Identifier(id) != id {
			t.Errorf("%q becomes %q, which becomes %q", s, id, Identifier(id))
		}
	})
}

// TestNamesOfFiles: NAME.h, NAME.py and NAME.go stand in for nothing else, and mean nothing of themselves.
func TestNamesOfFiles(t *testing.T) {
	for name, want := range map[string]string{
		"numpy": "m_numpy", "os": "m_os", "errno": "m_errno", "C": "m_C", "string": "m_string", "init": "m_init",
		"a_test": "a_test_m", "x_windows": "x_windows_m", "net_linux_arm64": "net_linux_arm64_m", "386": "m_386_m",
		"test": "test", "windows": "windows", "c": "c", "resnet50": "resnet50", "x-linux": "x_linux_m",
	} {
		if got := Identifier(name); got != want || Identifier(got) != got {
			t.Errorf("%q becomes %q, which becomes %q; want %q", name, got, Identifier(got), want)
		}
	}
}

func TestHeaderNamesOnlyItsPrefix(t *testing.T) {
	h := Header("net")
	if strings.Contains(h, "@") {
		t.Error("a placeholder is left")
	}
	for code, name := range map[int]string{
		schema.StatusOk: "OK", schema.StatusBadArgument: "BAD_ARGUMENT", schema.StatusWeightsMissing: "WEIGHTS_MISSING",
		schema.StatusWeightsMismatch: "WEIGHTS_MISMATCH",
		schema.StatusDeviceUnfit:     "DEVICE_UNFIT", schema.StatusOutOfMemory: "OUT_OF_MEMORY",
		schema.StatusRunFailed: "RUN_FAILED", schema.StatusNotResident: "NOT_RESIDENT",
		schema.StatusInternal: "INTERNAL",
		schema.StatusStuck:    "STUCK", schema.StatusDeviceLost: "DEVICE_LOST", schema.StatusNoDevice: "NO_DEVICE",
	} {
		if !regexp.MustCompile(`\bnet_` + name + ` = ` + strconv.Itoa(code) + `\b`).MatchString(h) {
			t.Errorf("the header does not give net_%s the value %d", name, code)
		}
		if StatusText(code) == StatusText(99) {
			t.Errorf("status %d has no text", code)
		}
	}
}
