package gemv

import (
	"encoding/binary"
	"math"
	"testing"
)

// TestHalvesServeColumns asks about matrices whose numbers float16 has, has not, or has with too few digits.
func TestHalvesServeColumns(t *testing.T) {
	for _, c := range []struct {
		name    string
		weights [3][2]float64 // [k][n]
		want    bool
	}{
		{"usual", [3][2]float64{{0.1, -0.02}, {1e-7, 0.3}, {0, 2}}, true},
		{"a column of zeros", [3][2]float64{{0, 1}, {0, 1}, {0, 1}}, true},
		{"a column of small numbers", [3][2]float64{{1e-4, 1}, {-1e-4, 1}, {1e-5, 1}}, false},
		{"a number that is too large", [3][2]float64{{1, 1}, {65536, 1}, {1, 1}}, false},
		{"the largest number", [3][2]float64{{1, 1}, {-65504, 1}, {1, 1}}, true},
		{"infinity", [3][2]float64{{1, 1}, {math.Inf(-1), 1}, {1, 1}}, false},
		{"NaN", [3][2]float64{{1, math.NaN()}, {1, 1}, {1, 1}}, false},
	} {
		rows, columns := make([]byte, 24), make([]byte, 24)
		for i, row := range c.weights {
			for j, x := range row {
				bits := math.Float32bits(float32(x))
				binary.LittleEndian.PutUint32(rows[4*(2*i+j):], bits)
				binary.LittleEndian.PutUint32(columns[4*(3*j+i):], bits)
			}
		}
		if got := matrixFitsHalves(rows, 3, 2, 2, 1); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if got := matrixFitsHalves(columns, 3, 2, 1, 3); got != c.want {
			t.Errorf("%s, transposed: %v, want %v", c.name, got, c.want)
		}
	}
}
