// Package trace reads what libraries built with RT_TRACE record (codegen/rt/trace/trace.cuh), joins it with the
// plan they were made from, and turns it into a timeline, a report, a trace for Perfetto and a web page.
package trace

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Points in the life of a step, as in codegen/rt/trace/trace.cuh.
const (
	begun     = 0 // the vEU turns to it
	loaded    = 1 // what it keeps on chip for the steps that follow is there
	ready     = 2 // all that it waits for has come
	started   = 3 // its operands are where it wants them
	computed  = 4 // all threads are done
	published = 5 // the others can know
	points    = 6
)

// Raw is a trace as the library gives it: clocks in cycles of the multiprocessor, times in nanoseconds of
// the device.
type Raw struct {
	Steps    []StepRow
	Launches []LaunchRow
	Chunks   []ChunkRow
}

// StepRow is one step that ran.
type StepRow struct {
	Clock         [points]uint64 // 0 for points that did not occur
	Time          uint64         // at Clock[begun]
	SM            uint32
	Launch        uint32 // of the inference, from 0
	Segment, Step uint32 // row of the segment's steps
	Op, RTask     uint32
}

// LaunchRow is one launch as one vEU saw it.
type LaunchRow struct {
	Begun, Ready, Ended uint64 // the first instruction; all launches before have ended; the last instruction
	BegunTime           uint64
	EndedTime           uint64
	SM                  uint32
	Launch              uint32
	Segment, InSegment  uint32 // number among the segment's launches
	VEU                 uint32
	Dropped             uint32 // steps that found no row
	DroppedChunks       uint32
	Unused              uint32
}

// ChunkRow is a chunk of streamed weights, with the clocks of its vEU's multiprocessor.
type ChunkRow struct {
	Asked, Issued       uint64 // the loader wants a free stage, starts the copy
	Landed              uint64 // the loader has seen that all is there
	Wanted, Full, Freed uint64 // the rTask's first thread wants the chunk, has it, gives it back
	Launch              uint32
	Segment, Step, VEU  uint32
	Number, Bytes       uint32 // number among the vEU's in the launch
}

// header is rt::TraceHeader.
type header struct {
	Magic                  [8]byte
	Version, HeaderBytes   uint32
	StepBytes, LaunchBytes uint32
	ChunkBytes, Unused     uint32
	Steps, Launches        uint64
	Chunks, UnusedToo      uint64
}

const (
	magic       = "RMRTRACE"
	version     = 3
	headerBytes = 64
	stepBytes   = 80
	launchBytes = 72
	chunkBytes  = 72
)

// Decode reads the bytes of NAME_trace. Rows that nobody wrote are left out.
func Decode(data []byte) (*Raw, error) {
	var h header
	r := bytes.NewReader(data)
	if err := binary.Read(r, binary.LittleEndian, &h); err != nil || string(h.Magic[:]) != magic {
		return nil, fmt.Errorf("the library's trace has no header")
	}
	if h.Version != version || h.HeaderBytes != headerBytes || h.StepBytes != stepBytes || h.LaunchBytes != launchBytes || h.ChunkBytes != chunkBytes {
		return nil, fmt.Errorf("the library's trace has format version %d, want %d: compile the model again", h.Version, version)
	}
	left := uint64(len(data) - headerBytes)
	for _, part := range [][2]uint64{{h.Steps, stepBytes}, {h.Launches, launchBytes}, {h.Chunks, chunkBytes}} {
		if part[0] > left/part[1] {
			return nil, fmt.Errorf("the library's trace is cut short")
		}
		left -= part[0] * part[1]
	}
	raw := &Raw{}
	steps := make([]StepRow, h.Steps)
	launches := make([]LaunchRow, h.Launches)
	chunks := make([]ChunkRow, h.Chunks)
	for _, rows := range []any{steps, launches, chunks} {
		if err := binary.Read(r, binary.LittleEndian, rows); err != nil {
			return nil, err
		}
	}
	for _, s := range steps {
		if s.Launch > 0 { // written as 1 more
			s.Launch--
			raw.Steps = append(raw.Steps, s)
		}
	}
	for _, l := range launches {
		if l.Launch > 0 {
			l.Launch--
			raw.Launches = append(raw.Launches, l)
		}
	}
	for _, c := range chunks {
		if c.Launch > 0 {
			c.Launch--
			raw.Chunks = append(raw.Chunks, c)
		}
	}
	return raw, nil
}
