package toolchain

import "testing"

func TestParseArch(t *testing.T) {
	for in, want := range map[string]string{"9.0": "sm_90", "12.1": "sm_121", "": "", "[N/A]": "", "9": ""} {
		if got := parseArch(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
