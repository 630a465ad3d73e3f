package toolchain

import (
	"context"
	"strings"
)

// LocalArch is the architecture of this machine's first GPU, such as "sm_90", or "" if there is none.
func LocalArch(ctx context.Context) string {
	return parseArch(query(ctx, "compute_cap"))
}

// LocalDriver is the version of the GPU driver, such as "580.95.05", or "" if there is none.
func LocalDriver(ctx context.Context) string { return query(ctx, "driver_version") }

// query asks nvidia-smi, which is installed with every driver.
func query(ctx context.Context, field string) string {
	r, err := run(ctx, "", "nvidia-smi", "--query-gpu="+field, "--format=csv,noheader")
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(r.Output, "\n")
	return strings.TrimSpace(line)
}

// parseArch turns a compute capability, "9.0", into an architecture.
func parseArch(capability string) string {
	major, minor, ok := strings.Cut(capability, ".")
	if !ok || strings.Trim(major+minor, "0123456789") != "" {
		return ""
	}
	return "sm_" + major + minor
}

// GPU is what nvidia-smi says of this machine's first GPU.
type GPU struct {
	Product string // "NVIDIA H200"
	Arch    string // "sm_90"
	Driver  string // "580.95.05"
	Clocks  string // the most that multiprocessors and memory reach, in MHz: "1980/3201"
}

// LocalGPU describes this machine's first GPU; nil if there is none.
func LocalGPU(ctx context.Context) *GPU {
	return parseGPU(query(ctx, "name,compute_cap,driver_version,clocks.max.sm,clocks.max.memory"))
}

func parseGPU(line string) *GPU {
	f := strings.Split(line, ",")
	if len(f) != 5 {
		return nil
	}
	for i := range f {
		f[i] = strings.TrimSuffix(strings.TrimSpace(f[i]), " MHz")
	}
	arch := parseArch(f[1])
	if arch == "" {
		return nil
	}
	return &GPU{Product: f[0], Arch: arch, Driver: f[2], Clocks: f[3] + "/" + f[4]}
}
