package runner

import (
	"encoding/binary"
	"math"
)

// AtOnce runs several contexts at once, each in a thread of the child, so many times. It returns how long all of them
// took together, and the time of each run, in milliseconds by the host's clock.
func (l *Lib) AtOnce(inputs [][]byte, contexts, runs int) (all float64, each []float64, err error) {
	ms, err := l.times(9, uint32(contexts), uint32(runs), inputs)
	if err != nil {
		return 0, nil, err
	}
	return ms[0], ms[1:], nil
}

// Copies times copies of all inputs from pageable host memory to the device, and of all outputs back, in milliseconds by
// the host's clock. It needs OnDevice.
func (l *Lib) Copies(inputs [][]byte, n int) (to, from []float64, err error) {
	ms, err := l.times(10, uint32(n), 0, inputs)
	if err != nil {
		return nil, nil, err
	}
	return ms[:n], ms[n:], nil
}

// times is a request whose reply holds milliseconds.
func (l *Lib) times(kind, a, b uint32, inputs [][]byte) ([]float64, error) {
	data, err := l.request(kind, a, b, inputs)
	if err != nil {
		return nil, err
	}
	ms := make([]float64, len(data)/8)
	for i := range ms {
		ms[i] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))
	}
	return ms, nil
}
