package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/rammerc/rammerc/internal/commands"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/limits"
)

const defaultConfig = "rammerc.yaml"

// withConfig applies the configuration file to flags that the command line does not set, and serves
// --print-config.
//
// The file maps command names to flags:
//
//	compile:
//	  target: sm_90
//	  dim: [batch=1]
//	  precision: fp16
//	  precision-of:
//	    /layer4/*: tf32
//
// A flag that may be given several times takes a list, and if its values are pairs, KEY=VALUE, a map.
func (a *app) withConfig(runE func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := applyConfig(cmd); err != nil {
			return err
		}
		if show, _ := cmd.Flags().GetBool("print-config"); show {
			return a.printConfig(cmd)
		}
		a.job.Quiet, _ = cmd.Flags().GetBool("quiet")
		if text, _ := cmd.Flags().GetString("max-memory"); text != "" {
			n, err := limits.ParseBytes(text)
			if err != nil {
				return diag.New("bad-flag", "--max-memory: %v", err)
			}
			limits.SetMemory(n)
		}
		return runE(cmd, args)
	}
}

func applyConfig(cmd *cobra.Command) error {
	file, _ := cmd.Flags().GetString("config")
	named := file != ""
	if !named {
		file = defaultConfig
	}
	data, err := limits.Read(file, limits.SmallText)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return nil
	}
	if err != nil {
		message := "cannot read the configuration: " + diag.Reason(err).Error()
		return &diag.Diagnostic{ID: "bad-config", File: file, Message: message}
	}
	sections, err := readSections(file, data)
	if err != nil {
		return err
	}
	var l diag.List
	for _, name := range sortedKeys(sections) {
		if !isCommand(cmd.Root(), name) {
			l.Add(&diag.Diagnostic{
				ID: "bad-config", File: file, Message: fmt.Sprintf("%q is no command", name),
				Help: "map command names to flags",
			})
		}
	}
	for _, key := range sortedKeys(sections[cmd.Name()]) {
		node := sections[cmd.Name()][key]
		before := l.Errors()
		if why := onlyCommandLine(cmd, key); why != "" && cmd.Flags().Lookup(key) != nil {
			l.Add(&diag.Diagnostic{
				ID: "bad-config", File: file, Line: node.Line,
				Message: fmt.Sprintf("flag %q %s, so only the command line may set it", key, why),
			})
			continue
		}
		setFlag(&l, cmd, file, key, &node)
		if !named && l.Errors() == before {
			checkOutside(&l, cmd.Flags(), file, key, node.Line)
		}
	}
	return l.Err()
}

// readSections reads the flags of each command from a configuration.
func readSections(file string, data []byte) (map[string]map[string]yaml.Node, error) {
	var l diag.List
	bad := func(line int, format string, args ...any) {
		l.Add(&diag.Diagnostic{ID: "bad-config", File: file, Line: line, Message: fmt.Sprintf(format, args...),
			Help: "map command names to flags, such as compile: {target: sm_90}"})
	}
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		line, message := yamlProblem(err)
		bad(line, "%s", message)
		return nil, l.Err()
	}
	sections := map[string]map[string]yaml.Node{}
	if len(document.Content) == 0 { // nothing but comments
		return sections, nil
	}
	commands := document.Content[0]
	if commands.Kind != yaml.MappingNode {
		bad(commands.Line, "want a map of commands, found %s", yamlKinds[commands.Kind])
		return nil, l.Err()
	}
	for i := 0; i < len(commands.Content); i += 2 {
		name, flags := commands.Content[i], commands.Content[i+1]
		switch {
		case flags.Kind == yaml.MappingNode:
			section := map[string]yaml.Node{}
			if err := flags.Decode(&section); err != nil {
				line, message := yamlProblem(err)
				bad(line, "%q: %s", name.Value, message)
			}
			sections[name.Value] = section
		case flags.Tag == "!!null": // a command with nothing behind it
			sections[name.Value] = nil
		default:
			bad(flags.Line, "%q: want a map of flags, found %s", name.Value, yamlKinds[flags.Kind])
		}
	}
	return sections, l.Err()
}

// yamlKinds are what a user calls the kinds of nodes.
var yamlKinds = map[yaml.Kind]string{
	yaml.SequenceNode: "a list", yaml.ScalarNode: "a single value", yaml.MappingNode: "a map", yaml.AliasNode: "an alias",
}

var yamlPlace = regexp.MustCompile(`^(?:yaml: )?(?:unmarshal errors:\s*)?(?:line (\d+): )?(?s:(.*))$`)

// yamlProblem is the line, or 0, and the text of an error of package yaml.
func yamlProblem(err error) (line int, message string) {
	m := yamlPlace.FindStringSubmatch(err.Error())
	line, _ = strconv.Atoi(m[1])
	first, _, _ := strings.Cut(m[2], "\n")
	return line, first
}

func isCommand(root *cobra.Command, name string) bool {
	for _, c := range root.Commands() {
		if c.Name() == name {
			return true
		}
	}
	return false
}

// setFlag sets a flag unless the command line has set it. A list sets it once for each element, a map once for each pair.
func setFlag(l *diag.List, cmd *cobra.Command, file, key string, node *yaml.Node) {
	bad := func(n *yaml.Node, format string, args ...any) {
		l.Add(&diag.Diagnostic{ID: "bad-config", File: file, Line: n.Line, Message: fmt.Sprintf(format, args...)})
	}
	flags := cmd.Flags()
	f := flags.Lookup(key)
	if f == nil || unconfigurable[key] {
		bad(node, "there is no flag %q to configure; there are %s", key, strings.Join(configurable(cmd), ", "))
		return
	}
	if f.Changed {
		return
	}
	f.Annotations = map[string][]string{fromConfig: {"true"}}
	values, ok := flagValues(f, node)
	if !ok {
		bad(node, "flag %q: want a value or a list of values", key)
		return
	}
	for _, v := range values {
		set := func() error { return flags.Set(key, v.Value) }
		if p, ok := f.Value.(placedFlag); ok {
			f.Changed = true
			set = func() error { return p.SetAt(v.Value, file, v.Line) }
		}
		if err := set(); err != nil {
			bad(v, "flag %q: %v", key, plainFlagError(err))
		}
	}
}

// wanted says for types of flags whose errors speak of Go's functions what their values are.
var wanted = map[string]string{
	"bool": "true or false", "int": "a whole number", "int64": "a whole number", "uint64": "a whole number that is not negative",
	"float64": "a number", "duration": "a duration such as 20s or 10m",
}

// plainFlagError is err in words for people who do not know Go.
func plainFlagError(err error) error {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) || wanted[bad.GetFlag().Value.Type()] == "" {
		return err
	}
	f := bad.GetFlag()
	return fmt.Errorf("--%s %q: want %s", f.Name, bad.GetValue(), wanted[f.Value.Type()])
}

func configurable(cmd *cobra.Command) []string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !unconfigurable[f.Name] && onlyCommandLine(cmd, f.Name) == "" {
			names = append(names, f.Name)
		}
	})
	return names
}

// flagValues lists the values that node has for a flag. It is not ok if one of them is no scalar.
func flagValues(f *pflag.Flag, node *yaml.Node) (values []*yaml.Node, ok bool) {
	switch _, list := f.Value.(pflag.SliceValue); {
	case node.Kind == yaml.SequenceNode:
		values = node.Content
	case node.Kind == yaml.MappingNode && list:
		for i := 0; i < len(node.Content); i += 2 {
			k, v := node.Content[i], node.Content[i+1]
			if k.Kind != yaml.ScalarNode || v.Kind != yaml.ScalarNode {
				return nil, false
			}
			values = append(values, &yaml.Node{Kind: yaml.ScalarNode, Value: k.Value + "=" + v.Value, Line: k.Line})
		}
	default:
		values = []*yaml.Node{node}
	}
	return values, !slices.ContainsFunc(values, func(v *yaml.Node) bool { return v.Kind != yaml.ScalarNode })
}

// unconfigurable are flags that cannot stand in a configuration, because they say what to do with one.
var unconfigurable = map[string]bool{"config": true, "print-config": true, "help": true}

// commandLineOnly are flags that only the command line may set, with the reason; "COMMAND FLAG" is one of a command
// alone. A configuration file may lie in a folder that somebody else has filled, and whoever works there must not run
// that person's programs.
var commandLineOnly = map[string]string{
	"run-under":     "names a program to run",
	"python":        "names a program to run",
	"built":         "names a folder of programs to run",
	"kernels":       "names a folder of programs to run",
	"baseline":      "may name a library, which is a program to run",
	"spec":          "names a program to run",
	"convert check": "runs what the specification names",
	"max-memory":    "protects from the files at hand",
}

// onlyCommandLine is why only the command line may set a flag, "" if others may.
func onlyCommandLine(cmd *cobra.Command, flag string) string {
	return cmp.Or(commandLineOnly[flag], commandLineOnly[cmd.Name()+" "+flag])
}

// writing are flags that name files or folders to write. The configuration file of the current folder, which nobody has
// named, may set them only to places in that folder.
var writing = map[string]bool{
	"out": true, "output": true, "dump": true, "html": true, "perfetto": true, "raw": true, "fit": true, "file": true,
	"extract": true, "save": true, "save-inputs": true,
}

// checkOutside reports a flag that the configuration has set to a place outside of the current folder.
func checkOutside(l *diag.List, flags *pflag.FlagSet, file, key string, line int) {
	f := flags.Lookup(key)
	if !writing[key] || f.Annotations[fromConfig] == nil || inThisFolder(f.Value.String()) {
		return
	}
	l.Add(&diag.Diagnostic{
		ID: "bad-config", File: file, Line: line,
		Message: fmt.Sprintf("flag %q: %s is not in this folder", key, f.Value),
		Help:    "give it on the command line, or name the file with --config",
	})
}

// inThisFolder reports whether a path leads to a place in the current folder, whatever links there are.
func inThisFolder(path string) bool {
	if !filepath.IsLocal(path) {
		return false
	}
	root, err := os.OpenRoot(".")
	if err != nil {
		return false
	}
	defer root.Close()
	_, err = root.Stat(path)
	return err == nil || errors.Is(err, fs.ErrNotExist)
}

// fromConfig annotates flags that the configuration file set.
const fromConfig = "from-config"

// given reports whether the command line itself sets a flag.
func given(cmd *cobra.Command, name string) bool {
	f := cmd.Flags().Lookup(name)
	return f != nil && f.Changed && f.Annotations[fromConfig] == nil
}

// printConfig prints the flags in force in the form that applyConfig reads.
func (a *app) printConfig(cmd *cobra.Command) error {
	values := map[string]any{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !unconfigurable[f.Name] && onlyCommandLine(cmd, f.Name) == "" {
			values[f.Name] = flagValue(f)
		}
	})
	section := map[string]map[string]any{cmd.Name(): values}
	if a.wantsJSON(cmd) {
		printJSON(a.stdout, commands.Config{Schema: "rammerc/config/v1", Config: section})
		return nil
	}
	enc := yaml.NewEncoder(a.stdout)
	enc.SetIndent(2)
	return enc.Encode(section)
}

// flagValue is a flag's value in the type that YAML and JSON have for it.
func flagValue(f *pflag.Flag) any {
	if s, ok := f.Value.(pflag.SliceValue); ok {
		return s.GetSlice()
	}
	var v any
	if f.Value.Type() != "string" && yaml.Unmarshal([]byte(f.Value.String()), &v) == nil {
		return v
	}
	return f.Value.String()
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
