package commands

import "slices"

// AtOnce is what several contexts do at the same time, each in a thread of its own of one process, by the host's clock.
type AtOnce struct {
	Contexts   int     `json:"contexts"`
	N          int     `json:"n"` // runs of all contexts together
	Throughput float64 `json:"inferences_per_s"`
	P50        float64 `json:"p50_ms"`
	P99        float64 `json:"p99_ms"`
	Max        float64 `json:"max_ms"`
}

// Copies are medians, in milliseconds of the host's clock: all inputs from pageable host memory to the device, and all
// outputs back. The times of inferences do not include them, unless with Transfers.
type Copies struct {
	ToDevice float64 `json:"host_to_device_ms"`
	ToHost   float64 `json:"device_to_host_ms"`
}

// mostContexts bounds the contexts, each with a thread and an arena of its own, that are timed at once.
const mostContexts = 256

// timeApart times what the runs of one context do not show: copies, and several contexts at once.
func (o *BenchOptions) timeApart(t *timed) error {
	if t.library.OnDevice {
		to, from, err := t.library.Copies(t.raw, min(o.Runs, mostCopies))
		if err != nil {
			return err
		}
		t.copies = &Copies{median(to), median(from)}
	}
	if o.Contexts == 0 {
		return nil
	}
	all, each, err := t.library.AtOnce(t.raw, o.Contexts, o.Runs)
	if err != nil {
		return err
	}
	slices.Sort(each)
	t.atOnce = &AtOnce{
		Contexts: o.Contexts, N: len(each), Throughput: 1000 * float64(len(each)) / all,
		P50: quantile(each, 0.5), P99: quantile(each, 0.99), Max: each[len(each)-1],
	}
	return nil
}

// mostCopies is how often copies are timed at most; they vary less than inferences.
const mostCopies = 50

// quantile is the part q of sorted values.
func quantile(sorted []float64, q float64) float64 {
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// round carries out the runs of one round, in parts of about a second between which it shows how far it is.
func (t *timed) round(warmUp, runs int, show func()) (all []float64, err error) {
	const part = 1000 // ms
	guess := t.first
	for len(all) < runs {
		n := max(1, min(runs-len(all), int(part/max(guess, 1e-3))))
		ms, err := t.library.Bench(t.raw, warmUp, n)
		if err != nil {
			return nil, err
		}
		warmUp, guess = 0, median(ms)
		all, t.ms = append(all, ms...), append(t.ms, ms...)
		show()
	}
	return all, nil
}
