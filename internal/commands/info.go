package commands

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/progress"
)

// DeviceList is what `rammerc devices` shows.
type DeviceList struct {
	Schema  string         `json:"schema"`
	Devices []*device.Spec `json:"devices"`
}

// Devices lists the known devices.
func Devices() (*DeviceList, error) {
	return &DeviceList{"rammerc/devices/v1", device.All()}, nil
}

// Text prints the list.
func (l *DeviceList) Text(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "DEVICE\tPRODUCT\tARCH\tSMS\tVEUS\tTHREADS\tSHARED\tHOP\tDRAM\tFIGURES")
	for _, s := range l.Devices {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%d\t%s\t%.0f ns\t%.0f GB/s\t%s\n", s.Name, s.Product, s.Arch, s.SMs, s.VEUs(),
			s.Threads, progress.Bytes(int64(s.SharedPerVEU)), s.Cost.Hop, s.Cost.DRAM, s.Cost.Source)
	}
	t.Flush()
}
