package calibrate

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rammerc/rammerc/device"
)

// sourceWidth is the greatest width of the lines of the text "source".
const sourceWidth = 108

// YAML is the device file of s, in the form that device.Parse reads.
func YAML(s *device.Spec) ([]byte, error) {
	bare := *s
	bare.Cost, bare.Cost.Source = s.Measured, ""
	var n yaml.Node
	if err := n.Encode(&bare); err != nil {
		return nil, err
	}
	if cost := child(&n, "cost"); cost == nil || !dropKey(cost, "source") {
		panic("BUG: a device has no cost.source")
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s.\n", s.Product)
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(&n); err != nil {
		return nil, err
	}
	if err := enc.Close(); err != nil {
		return nil, err
	}
	// The encoder would write the text in one line. It is written by hand, which is possible at the end, because cost
	// is the last key of the file and source the last key of cost.
	b.WriteString("  source: >-\n")
	for _, line := range wrapped(s.Measured.Source, sourceWidth-4) {
		fmt.Fprintf(&b, "    %s\n", line)
	}
	if back, err := device.Parse("the measured device", b.Bytes()); err != nil {
		return nil, err
	} else if !reflect.DeepEqual(back, s) {
		return nil, fmt.Errorf("BUG: the device file says %+v, not %+v", *back, *s)
	}
	return b.Bytes(), nil
}

// child is the value that a mapping has for a key.
func child(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

func dropKey(n *yaml.Node, key string) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content = append(n.Content[:i], n.Content[i+2:]...)
			return true
		}
	}
	return false
}

func wrapped(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
