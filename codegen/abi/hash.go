package abi

import (
	"encoding/binary"
	"math/bits"
)

// Hash is XXH64 with seed 0 over what is written to it. The zero value is not ready; use NewHash.
type Hash struct {
	lane  [4]uint64
	block [32]byte
	held  int
	total uint64
}

const (
	prime1 = 0x9E3779B185EBCA87
	prime2 = 0xC2B2AE3D27D4EB4F
	prime3 = 0x165667B19E3779F9
	prime4 = 0x85EBCA77C2B2AE63
	prime5 = 0x27D4EB2F165667C5
)

// NewHash starts a hash.
func NewHash() *Hash {
	p1, p2 := uint64(prime1), uint64(prime2)
	return &Hash{lane: [4]uint64{p1 + p2, p2, 0, -p1}}
}

// Write adds p; it never fails.
func (h *Hash) Write(p []byte) (int, error) {
	n := len(p)
	h.total += uint64(n)
	if h.held > 0 {
		k := copy(h.block[h.held:], p)
		h.held += k
		p = p[k:]
		if h.held < len(h.block) {
			return n, nil
		}
		h.stripe(h.block[:])
		h.held = 0
	}
	for ; len(p) >= 32; p = p[32:] {
		h.stripe(p)
	}
	h.held = copy(h.block[:], p)
	return n, nil
}

func (h *Hash) stripe(p []byte) {
	for i := range h.lane {
		h.lane[i] = mixLane(h.lane[i], binary.LittleEndian.Uint64(p[8*i:]))
	}
}

func mixLane(lane, x uint64) uint64 { return bits.RotateLeft64(lane+x*prime2, 31) * prime1 }

// Sum64 is the hash of everything written so far.
func (h *Hash) Sum64() uint64 {
	x := uint64(prime5)
	if h.total >= 32 {
		x = bits.RotateLeft64(h.lane[0], 1) + bits.RotateLeft64(h.lane[1], 7) +
			bits.RotateLeft64(h.lane[2], 12) + bits.RotateLeft64(h.lane[3], 18)
		for _, lane := range h.lane {
			x = (x^mixLane(0, lane))*prime1 + prime4
		}
	}
	x += h.total
	p := h.block[:h.held]
	for ; len(p) >= 8; p = p[8:] {
		x = bits.RotateLeft64(x^mixLane(0, binary.LittleEndian.Uint64(p)), 27)*prime1 + prime4
	}
	for ; len(p) >= 4; p = p[4:] {
		x = bits.RotateLeft64(x^uint64(binary.LittleEndian.Uint32(p))*prime1, 23)*prime2 + prime3
	}
	for _, c := range p {
		x = bits.RotateLeft64(x^uint64(c)*prime5, 11) * prime1
	}
	x = (x ^ x>>33) * prime2
	x = (x ^ x>>29) * prime3
	return x ^ x>>32
}
