package codegen

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/rammerc/rammerc/schema"
)

// unpackTables is what rt/host/unpack.h does.
func unpackTables(t *testing.T, packed []byte) []byte {
	t.Helper()
	words, period := binary.LittleEndian.Uint32(packed), binary.LittleEndian.Uint32(packed[4:])
	at, out := packed[8:], []byte{}
	number := func() int {
		n, size := binary.Uvarint(at)
		if size <= 0 {
			t.Fatal("a number is cut short")
		}
		at = at[size:]
		return int(n)
	}
	for len(at) > 0 {
		plain := number()
		out, at = append(out, at[:plain]...), at[plain:]
		copied, back := number(), number()
		for range copied {
			out = append(out, out[len(out)-back])
		}
	}
	if len(out) != 4*int(words) {
		t.Fatalf("%d bytes, want %d words", len(out), words)
	}
	for i := 4 * int(period); i < len(out); i += 4 {
		w := binary.LittleEndian.Uint32(out[i:]) + binary.LittleEndian.Uint32(out[i-4*int(period):])
		binary.LittleEndian.PutUint32(out[i:], w)
	}
	return out
}

// Packed tables are the same when they are unpacked, and steps that resemble those of the vEU before take a small part
// of their length.
func TestPackTables(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var steps []byte
	const veus, each = 132, 19
	for v := range uint32(veus) {
		for i := range uint32(each) {
			row := schema.Step{Op: i, RTask: v, Instance: uint16(i % 5), Stream: v*96 + i*7000, StreamWords: 96,
				ChunkWords: 24, Chunks: 4}
			steps = row.Append(steps)
		}
	}
	random := make([]byte, 4000)
	for i := range random {
		random[i] = byte(rng.Uint32())
	}
	var counting []byte // whose first words are not 0
	for i := range uint32(5000) {
		counting = binary.LittleEndian.AppendUint32(counting, 3*i+1000)
	}
	for _, c := range []struct {
		what string
		data []byte
		most int
	}{
		{"counting", counting, 200},
		{"nothing", nil, 100}, {"a word", []byte{1, 2, 3, 4}, 100}, {"noise", random, len(random) + 100},
		{"zeros", make([]byte, 40000), 100}, {"steps", steps, len(steps) / 50},
		{"steps and noise", append(bytes.Clone(steps), random...), len(random) + len(steps)/20},
	} {
		packed := packTables(c.data)
		if got := unpackTables(t, packed); !bytes.Equal(got, c.data) {
			t.Errorf("%s: other bytes come out", c.what)
		}
		if len(packed) > c.most {
			t.Errorf("%s: %d bytes are packed in %d, want at most %d", c.what, len(c.data), len(packed), c.most)
		}
	}
}
