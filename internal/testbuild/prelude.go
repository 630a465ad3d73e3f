package testbuild

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rammerc/rammerc/internal/toolchain"
)

// standardHeaders are those of the standard library that emulated programs include. They are a quarter of what a program
// takes to be compiled without optimisation, so tests have them precompiled once.
// A header that emitted sources forget shows where they are built without: in README's first command, and by nvcc.
var standardHeaders = strings.Fields(`algorithm atomic cerrno climits cmath concepts cstdarg cstddef cstdint cstdio cstdlib
	cstring ctime deque functional initializer_list limits map memory mutex new string system_error thread type_traits
	utility vector`)

// preludeDir is the folder of the precompiled header, if there is one.
var preludeDir string

// prelude precompiles the headers for libraries that are built with the given flag, and returns the flags with which the
// compiler takes them first. There are none where they cannot be precompiled. Only g++ looks for them where they are, and
// it reads the headers themselves where other flags make them useless.
func prelude(flag string) string {
	cxx, err := toolchain.FindCxx("")
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if !takesPrelude(ctx, cxx) {
		return ""
	}
	dir, err := os.MkdirTemp("", "rammer-prelude-")
	if err != nil {
		return ""
	}
	preludeDir = dir
	var text strings.Builder
	text.WriteString("#pragma once\n")
	for _, h := range standardHeaders {
		fmt.Fprintf(&text, "#include <%s>\n", h)
	}
	header := filepath.Join(dir, "prelude.h")
	if err := os.WriteFile(header, []byte(text.String()), 0o644); err != nil {
		return ""
	}
	// The flags are those of libraries (toolchain.Cxx.BuildLibrary).
	args := []string{"-std=c++20", "-O1", "-fPIC", "-pthread", flag, "-x", "c++-header", header, "-o", header + ".gch"}
	if err := exec.CommandContext(ctx, cxx.Path, args...).Run(); err != nil {
		return ""
	}
	return "-include " + header
}

// takesPrelude reports whether the compiler is g++.
func takesPrelude(ctx context.Context, cxx *toolchain.Cxx) bool {
	version, err := cxx.Version(ctx)
	return err == nil && !strings.Contains(version, "clang")
}

// removePrelude deletes the precompiled header.
func removePrelude() {
	if preludeDir == "" {
		return
	}
	if err := os.RemoveAll(preludeDir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	preludeDir = ""
}
