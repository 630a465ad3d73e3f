// Package trace reads what libraries built with RT_TRACE record (codegen/rt/trace/trace.cuh), joins it with the
// plan they were made from, and turns it into a timeline, a report, a trace for Perfetto and a web page.
package trace

import (
	"fmt"

	"github.com/rammerc/rammerc/schema"
)

// Raw is a trace as the library gives it, except that launches are numbered from 0.
type Raw struct {
	Steps    []schema.TraceStep
	Launches []schema.TraceLaunch
	Chunks   []schema.TraceChunk
}

// Decode reads the bytes that the library's function NAME_trace gives. Rows that nobody wrote are left out.
func Decode(data []byte) (*Raw, error) {
	if len(data) < schema.TraceHeaderBytes {
		return nil, fmt.Errorf("the library's trace has no header")
	}
	h := schema.DecodeTraceHeader(data)
	if string(h.Magic[:]) != schema.TraceMagic {
		return nil, fmt.Errorf("the library's trace has no header")
	}
	sizes := [...]uint32{h.HeaderBytes, h.StepBytes, h.LaunchBytes, h.ChunkBytes}
	want := [...]uint32{schema.TraceHeaderBytes, schema.TraceStepBytes, schema.TraceLaunchBytes, schema.TraceChunkBytes}
	if h.Version != schema.TraceVersion || sizes != want {
		return nil, fmt.Errorf("the library's trace has format version %d, want %d: compile the model again",
			h.Version, schema.TraceVersion)
	}
	data = data[schema.TraceHeaderBytes:]
	left := uint64(len(data))
	for i, rows := range [...]uint64{h.Steps, h.Launches, h.Chunks} {
		size := uint64(want[i+1])
		if rows > left/size {
			return nil, fmt.Errorf("the library's trace is cut short")
		}
		left -= rows * size
	}
	raw := &Raw{}
	raw.Steps, data = rows(data, h.Steps, schema.TraceStepBytes, schema.DecodeTraceStep,
		func(r *schema.TraceStep) *uint32 { return &r.Launch })
	raw.Launches, data = rows(data, h.Launches, schema.TraceLaunchBytes, schema.DecodeTraceLaunch,
		func(r *schema.TraceLaunch) *uint32 { return &r.Launch })
	raw.Chunks, _ = rows(data, h.Chunks, schema.TraceChunkBytes, schema.DecodeTraceChunk,
		func(r *schema.TraceChunk) *uint32 { return &r.Launch })
	return raw, nil
}

// rows decodes n rows and returns what stands behind them. The device writes a row's launch as one more than it is;
// rows whose launch is 0 were never written, and are left out.
func rows[T any](data []byte, n uint64, size int, decode func([]byte) T, launch func(*T) *uint32) (written []T,
	rest []byte) {
	for range n {
		row := decode(data)
		if at := launch(&row); *at > 0 {
			*at--
			written = append(written, row)
		}
		data = data[size:]
	}
	return written, data
}
