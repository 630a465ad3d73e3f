package toolchain

import "testing"

func TestParseArch(t *testing.T) {
	for in, want := range map[string]string{"9.0": "sm_90", "12.1": "sm_121", "": "", "[N/A]": "", "9": ""} {
		if got := parseArch(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestParseGPU(t *testing.T) {
	got := parseGPU("NVIDIA H200, 9.0, 580.159.04, 1980 MHz, 3201 MHz")
	if want := (GPU{"NVIDIA H200", "sm_90", "580.159.04", "1980/3201"}); got == nil || *got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, bad := range []string{"", "NVIDIA H200, 9.0", "NVIDIA X, [N/A], 580, 1980 MHz, 3201 MHz"} {
		if got := parseGPU(bad); got != nil {
			t.Errorf("%q: got %+v", bad, got)
		}
	}
}
