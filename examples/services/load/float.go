package main

import (
	"encoding/binary"
	"math"
)

func float32At(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }
