package schedule

import (
	"fmt"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/vdevice"
)

// mostSlotWords is the most words of its shared memory that a vEU gives for slots.
const mostSlotWords = 8192

func noClusters(spec *device.Spec, size int) error {
	d := &diag.Diagnostic{ID: "no-clusters", Message: fmt.Sprintf("%s has no clusters of %d vEUs", spec.Name, size)}
	for _, n := range device.ClusterSizes() {
		if spec.Clusters.Of(n) == 0 {
			continue
		}
		if d.Help == "" {
			d.Help = "it has those of"
		}
		d.Help += fmt.Sprintf(" %d", n)
	}
	return d
}

// inClusters makes the scheduler plan for vEUs in clusters of the given size. There are fewer vEUs then, because
// clusters do not fill a device.
func (s *scheduler) inClusters(size int) {
	if size == 0 {
		return
	}
	spec := *s.spec
	spec.SMs = size * spec.Clusters.Of(size)
	s.spec, s.cluster = &spec, size
}

// placeSlots makes tagged data that stay in a cluster travel through shared memory, as far as there is room beside
// what the rTasks need. A program without slots has no clusters.
func (s *scheduler) placeSlots(p *vdevice.Program) {
	p.Cluster = s.cluster
	needs := p.Needs()
	if room := needs.SlotRoom(s.spec); room > 0 {
		vdevice.PlaceSlots(p, min(room, mostSlotWords))
	}
	if len(p.Slots) == 0 {
		p.Cluster = 0
	}
}

// fitClusters chooses, for each group, the narrowest slices of the weights of which there are no more than a cluster
// has vEUs. Groups for which even the widest slices are too many are left as they are.
func (r *residence) fitClusters() {
	if r.cluster == 0 {
		return
	}
	for _, s := range r.groups {
		for w, ch := range s.widths[0] {
			if ch.c.Tasks <= r.cluster {
				s.width = w
				break
			}
		}
	}
}

// groupRange is the range of vEUs in which to look for room for a group: the first cluster that has enough of it, or
// else all vEUs.
func (r *residence) groupRange(s *stationary, until []int) (from, to int) {
	if r.cluster == 0 {
		return 0, len(until)
	}
	for from := 0; from+r.cluster <= len(until); from += r.cluster {
		free := 0
		for _, u := range until[from : from+r.cluster] {
			if u <= s.first {
				free++
			}
		}
		if free >= s.tasks() {
			return from, from + r.cluster
		}
	}
	return 0, len(until)
}
