package driver

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
)

// VersionInfo is what `rammerc version` shows.
type VersionInfo struct {
	Schema  string `json:"schema"`
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Time    string `json:"time,omitempty"` // of the commit, RFC 3339
	Dirty   bool   `json:"dirty,omitempty"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

// Version reads the build information of the running binary.
func Version() VersionInfo {
	v := VersionInfo{
		Schema: "rammerc/version/v1", Version: "(devel)", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.time":
			v.Time = s.Value
		case "vcs.modified":
			v.Dirty = s.Value == "true"
		}
	}
	return v
}

// Text prints the version.
func (v VersionInfo) Text(w io.Writer) {
	fmt.Fprintf(w, "rammerc %s", v.Version)
	if v.Commit != "" {
		fmt.Fprintf(w, " (%.12s", v.Commit)
		if v.Dirty {
			fmt.Fprint(w, ", modified")
		}
		fmt.Fprint(w, ")")
	}
	fmt.Fprintf(w, " %s %s/%s\n", v.Go, v.OS, v.Arch)
}
