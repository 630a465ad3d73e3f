package commands

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"go.yaml.in/yaml/v3"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/progress"
	"github.com/rammerc/rammerc/schedule"
)

// DeviceList is what `rammerc devices` shows.
type DeviceList struct {
	Schema  string      `json:"schema"`
	Devices []DeviceRow `json:"devices"`
}

// DeviceRow is a device with the kinds of plan that its hardware allows.
type DeviceRow struct {
	*device.Spec
	Plans []string
}

// MarshalJSON adds the plans to the figures.
func (r DeviceRow) MarshalJSON() ([]byte, error) {
	row, err := DeviceFigures{r.Spec}.fields()
	if err != nil {
		return nil, err
	}
	row["plans"] = r.Plans
	return json.Marshal(row)
}

// DeviceFigures is a device whose figures have the names in JSON that they have in device files.
type DeviceFigures struct{ *device.Spec }

func (f DeviceFigures) MarshalJSON() ([]byte, error) {
	row, err := f.fields()
	if err != nil {
		return nil, err
	}
	return json.Marshal(row)
}

func (f DeviceFigures) fields() (map[string]any, error) {
	text, err := yaml.Marshal(f.Spec)
	if err != nil {
		return nil, err
	}
	row := map[string]any{}
	return row, yaml.Unmarshal(text, &row)
}

// Devices lists the known devices.
func Devices() (*DeviceList, error) {
	list := &DeviceList{Schema: "rammerc/devices/v2", Devices: []DeviceRow{}}
	for _, s := range device.All() {
		list.Devices = append(list.Devices, DeviceRow{s, schedule.PlansFor(s)})
	}
	return list, nil
}

// plans names the kinds of plan that the device does not allow, since most allow all.
func (r DeviceRow) plans() string {
	var missing []string
	for _, p := range schedule.Plans() {
		if !slices.Contains(r.Plans, p) {
			missing = append(missing, p)
		}
	}
	if missing == nil {
		return "all"
	}
	return strings.ReplaceAll("all but "+strings.Join(missing, ", "), "clusters-8, clusters-4, clusters-2", "clusters")
}

// Text prints the list, and below it where the figures of each device come from.
func (l *DeviceList) Text(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "DEVICE\tPRODUCT\tARCH\tSMS\tVEUS\tTHREADS\tSHARED\tHOP\tDRAM\tPLANS")
	for _, s := range l.Devices {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%d\t%s\t%.0f ns\t%.0f GB/s\t%s\n", s.Name, s.Product, s.Arch, s.SMs,
			s.VEUs(), s.Threads, progress.Bytes(int64(s.SharedPerVEU)), s.Cost.Hop, s.Cost.DRAM, s.plans())
	}
	t.Flush()
	for _, s := range l.Devices {
		fmt.Fprintln(w)
		for i, line := range wrapped(s.Cost.Source, textWidth-figuresIndent) {
			name := ""
			if i == 0 {
				name = s.Name
			}
			fmt.Fprintf(w, "%-*s%s\n", figuresIndent, name, line)
		}
	}
}

const (
	textWidth     = 120 // columns of what people read
	figuresIndent = 9   // of what stands below the table of devices
)

// wrapped breaks a text into lines of at most so many columns, as far as its words allow.
func wrapped(text string, columns int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > columns {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
