package commands

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

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

// Devices lists the known devices.
func Devices() (*DeviceList, error) {
	list := &DeviceList{Schema: "rammerc/devices/v1", Devices: []DeviceRow{}}
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
	return "all but " + strings.Join(missing, ", ")
}

// Text prints the list.
func (l *DeviceList) Text(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "DEVICE\tPRODUCT\tARCH\tSMS\tVEUS\tTHREADS\tSHARED\tHOP\tDRAM\tPLANS\tFIGURES")
	for _, s := range l.Devices {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%d\t%s\t%.0f ns\t%.0f GB/s\t%s\t%s\n", s.Name, s.Product, s.Arch, s.SMs,
			s.VEUs(), s.Threads, progress.Bytes(int64(s.SharedPerVEU)), s.Cost.Hop, s.Cost.DRAM, s.plans(),
			s.Cost.Source)
	}
	t.Flush()
}
