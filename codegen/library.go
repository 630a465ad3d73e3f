package codegen

import (
	"embed"
	"fmt"
	"io"
	"strings"

	"github.com/rammerc/rammerc/codegen/abi"
	"github.com/rammerc/rammerc/internal/toolchain"
)

//go:embed templates/*
var templates embed.FS

type file struct {
	name  string
	write func(io.Writer) error
}

// files lists everything but the weights file, which is written first because its hash goes into others.
func files(l *layout) []file {
	n := l.opt.Name
	out := []file{
		{n + ".cu", l.writeSource},
		{n + ".h", text(l.header())},
		{n + ".plan.json", l.writePlan},
		{n + ".map", text(exportMap(n))},
		{"README.md", l.template("readme.md.in")},
		{"python/" + n + ".py", l.template("module.py.in")},
		{"go/" + n + ".go", l.template("module.go.in")},
		{"go/go.mod", text(fmt.Sprintf("module %s\n\ngo 1.21\n", n))},
		{"cmake/" + n + "-config.cmake", l.template("config.cmake.in")},
		{"cmake/" + n + "-config-version.cmake", l.template("version.cmake.in")},
		{"CMakeLists.txt", l.template("lists.cmake.in")},
		{n + ".pc", l.template("pkgconfig.pc.in")},
	}
	if l.general() {
		out = append(out, file{"go/" + n + "_dims.go", l.template("general.go.in")})
	}
	if l.keeps() {
		out = append(out, file{"go/" + n + "_states.go", l.template("states.go.in")})
	}
	if l.repeats() {
		out = append(out, file{"go/" + n + "_generate.go", l.template("generate.go.in")})
	}
	for _, p := range l.specials {
		out = append(out, file{p.planFile(), p.writePlan})
	}
	return append(out, besideHeaders()...)
}

// exportMap is a linker script that makes a shared library export its C interface and nothing else.
func exportMap(name string) string { return fmt.Sprintf("{ global: %s_*; local: *; };\n", name) }

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

// template fills in one of the templates.
func (l *layout) template(name string) func(io.Writer) error {
	data, err := templates.ReadFile("templates/" + name)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	arch, cuda := toolchain.CodeArch(l.plan.Spec.Arch), "ON"
	if !strings.HasPrefix(arch, "sm_") {
		arch, cuda = "native", "OFF"
	}
	major, _, _ := strings.Cut(abi.Version, ".")
	return text(strings.NewReplacer(
		"@NAME@", l.opt.Name,
		"@MODEL@", plain(l.opt.Model),
		"@VERSION@", plain(l.opt.Version),
		"@DEVICE@", plain(deviceName(l.plan.Spec)),
		"@ARCH@", arch,
		"@CUDA@", cuda,
		"@INTERFACE@", abi.Version,
		"@MAJOR@", major,
		"@PORTS@", l.portList(),
	).Replace(string(data)))
}

// plain keeps the characters of text that mean nothing special in prose, comments and docstrings of any language.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '.' || r == '-' || r == '_' || r == ' ' || r == '(' || r == ')' || r == '+' ||
			r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, s)
}

func (l *layout) portList() string {
	var b strings.Builder
	for _, side := range []struct {
		what  string
		ports []port
	}{{"input", l.inputs}, {"output", l.visible()}} {
		for i, p := range side.ports {
			name := strings.ReplaceAll(comment(p.Name), "`", "'")
			fmt.Fprintf(&b, "- %s %d: `%s`, %s%v\n", side.what, i, name, p.DType, p.Dims)
		}
	}
	if l.general() {
		b.WriteString("\nThese are the largest extents. The dims with ranges are:\n\n")
		for _, side := range []struct {
			what  string
			ports []port
		}{{"input", l.inputs}, {"output", l.visible()}} {
			for i, p := range side.ports {
				fmt.Fprintf(&b, "- %s %d: [%s]\n", side.what, i, strings.Join(l.dimTexts(p), ", "))
			}
		}
		b.WriteString(l.stateList())
		for _, r := range l.rangeTexts() {
			fmt.Fprintf(&b, "- `%s`\n", strings.ReplaceAll(comment(r), "`", "'"))
		}
	}
	return b.String()
}
