package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"gopkg.in/yaml.v3"

	"github.com/rammerc/rammerc/internal/diag"
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
func withConfig(runE func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := applyConfig(cmd); err != nil {
			return err
		}
		if show, _ := cmd.Flags().GetBool("print-config"); show {
			return printConfig(cmd)
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
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return nil
	}
	if err != nil {
		return &diag.Diagnostic{ID: "bad-config", File: file, Message: "cannot read the configuration: " + err.Error()}
	}
	var sections map[string]map[string]yaml.Node
	if err := yaml.Unmarshal(data, &sections); err != nil {
		return &diag.Diagnostic{ID: "bad-config", File: file, Message: err.Error(), Help: "map command names to flags"}
	}
	var l diag.List
	for _, name := range sortedKeys(sections) {
		if !isCommand(cmd.Root(), name) {
			l.Add(&diag.Diagnostic{ID: "bad-config", File: file, Message: fmt.Sprintf("%q is no command", name)})
		}
	}
	for _, key := range sortedKeys(sections[cmd.Name()]) {
		node := sections[cmd.Name()][key]
		if err := setFlag(cmd.Flags(), key, &node); err != nil {
			l.Add(&diag.Diagnostic{ID: "bad-config", File: file, Line: node.Line, Message: err.Error()})
		}
	}
	return l.Err()
}

func isCommand(root *cobra.Command, name string) bool {
	for _, c := range root.Commands() {
		if c.Name() == name {
			return true
		}
	}
	return false
}

// setFlag sets a flag that the command line left alone; lists set it once an element.
func setFlag(flags *pflag.FlagSet, key string, node *yaml.Node) error {
	f := flags.Lookup(key)
	if f == nil {
		var names []string
		flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		return fmt.Errorf("there is no flag %q; there are %s", key, strings.Join(names, ", "))
	}
	if f.Changed {
		return nil
	}
	values := []*yaml.Node{node}
	if node.Kind == yaml.SequenceNode {
		values = node.Content
	}
	for _, v := range values {
		if v.Kind != yaml.ScalarNode {
			return fmt.Errorf("flag %q: want a value or a list of values", key)
		}
		if err := flags.Set(key, v.Value); err != nil {
			return fmt.Errorf("flag %q: %v", key, err)
		}
	}
	return nil
}

func printConfig(cmd *cobra.Command) error {
	values := map[string]any{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		switch f.Name {
		case "config", "print-config", "help":
			return
		}
		if s, ok := f.Value.(pflag.SliceValue); ok {
			values[f.Name] = s.GetSlice()
			return
		}
		values[f.Name] = f.Value.String()
	})
	enc := yaml.NewEncoder(cmd.OutOrStdout())
	enc.SetIndent(2)
	return enc.Encode(map[string]any{cmd.Name(): values})
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
