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
