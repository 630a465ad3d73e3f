package rows

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/rammerc/rammerc/internal/golden"
)

// So many tiles that teams of warp groups take several in turn: of one head, of several, and of whole batch entries, with
// results whose heads lie apart, and side by side in whole rows and in parts of rows.
func TestAttentionInTurns(t *testing.T) {
	joined := func(name, in string) golden.Case {
		return golden.Case{Name: name, In: in, Out: "%z", Body: "%y = rammer.Attention(%q, %k, %v) " +
			"{scale = 0.2}\n%t = Transpose(%y) {perm = [0, 2, 1, 3]}\n%z = Relu(%t)"}
	}
	cases := []golden.Case{
		attention("windows", halfHeads("bfloat16", "8,3,", 49, 49, 32, 32), "%q, %k, %v", "scale = 0.2"),
		attention("two tiles a head", halfHeads("float16", "4,6,", 66, 70, 64, 64), "%q, %k, %v", "scale = 0.125"),
		attention("parts of a head", halfHeads("float16", "4,", 500, 30, 64, 56), "%q, %k, %v", "scale = 0.125"),
		attention("causal with heads of 128",
			"%q: float16[2,2,4,100,128], %k: float16[2,2,1,100,128], %v: float16[2,2,1,100,128]", "%q, %k, %v",
			"scale = 0.09, before = -1000, behind = 0"),
		attention("causal, two of four heads in a tile",
			"%q: float16[1,2,4,150,128], %k: float16[1,2,1,150,128], %v: float16[1,2,1,150,128]", "%q, %k, %v",
			"scale = 0.09, before = -1000, behind = 0"),
		{Name: "a window of keys, joined groups",
			In: "%q: bfloat16[4,2,2,130,120], %k: bfloat16[4,2,1,130,120], %v: bfloat16[4,2,1,130,120]", Out: "%z",
			Body: "%y = rammer.Attention(%q, %k, %v) {scale = 0.09, before = -50, behind = 3}\n" +
				"%t = Transpose(%y) {perm = [0, 3, 1, 2, 4]}\n%z = Relu(%t)"},
		{Name: "groups side by side, only rounded",
			In: "%q: float16[4,2,4,130,128], %k: float16[4,2,1,130,128], %v: float16[4,2,1,130,128]", Out: "%t",
			Body: "%y = rammer.Attention(%q, %k, %v) {scale = 0.09, before = -50, behind = 3}\n" +
				"%t = Transpose(%y) {perm = [0, 3, 1, 2, 4]}"},
		attention("causal, eight queries of sixteen heads",
			"%q: float16[4,2,16,101,128], %k: float16[4,2,1,101,128], %v: float16[4,2,1,101,128]", "%q, %k, %v",
			"scale = 0.09, before = -1000, behind = 0"),
		attention("causal, sixteen queries of eight heads",
			"%q: bfloat16[4,2,8,106,120], %k: bfloat16[4,2,1,106,120], %v: bfloat16[4,2,1,106,120]", "%q, %k, %v",
			"scale = 0.09, before = -1000, behind = 0"),
		attention("tiles and rows without keys", halfHeads("float16", "4,6,", 140, 140, 64, 64), "%q, %k, %v",
			"scale = 0.125, before = -1000, behind = -100, nan_to_zero = 1"),
		attention("heads of 256", halfHeads("bfloat16", "4,6,", 70, 90, 256, 248), "%q, %k, %v", "scale = 0.06"),
		joined("whole rows of heads", halfHeads("float16", "4,6,", 66, 70, 64, 64)),
		joined("parts of rows of heads", halfHeads("float16", "1,24,", 40, 50, 64, 64)),
		joined("rows of several batch entries", halfHeads("float16", "12,2,", 40, 50, 32, 32)),
	}
	for _, c := range cases {
		c.SMs, c.Of = 4, "attention_wgmma"
		t.Run(c.Name, func(t *testing.T) { golden.Check(t, []golden.Case{c}) }) // all candidates of each
	}
}

// Few rows that share many keys, of which warps bring some each: tiles of up to 8 and of up to 16 rows, several tiles of an
// rTask, tiles without keys for some warps, and keys that no query attends to.
func TestAttentionByWarps(t *testing.T) {
	grouped := func(d string, b string, group, queries, keys, depth, cols int) string {
		return fmt.Sprintf("%%q: %[1]s[%[2]s%[3]d,%[4]d,%[6]d], %%k: %[1]s[%[2]s1,%[5]d,%[6]d], "+
			"%%v: %[1]s[%[2]s1,%[5]d,%[7]d]", d, b, group, queries, keys, depth, cols)
	}
	masked := attention("hidden keys and rows", grouped("float16", "5,", 4, 2, 150, 64, 64)+", %m: float16[2,150]",
		"%q, %k, %v, %m", "scale = 0.125, nan_to_zero = 1")
	masked.Set = map[string][]float64{"m": slices.Repeat([]float64{-math.Inf(1)}, 170)}
	joined := golden.Case{Name: "joined groups", In: grouped("float16", "6,2,", 4, 1, 140, 64, 64), Out: "%z",
		Body: "%y = rammer.Attention(%q, %k, %v) {scale = 0.2}\n%t = Transpose(%y) {perm = [0, 3, 1, 2, 4]}\n%z = Relu(%t)"}
	cases := []golden.Case{
		attention("one token", grouped("float16", "9,", 4, 1, 256, 128, 128), "%q, %k, %v", "scale = 0.09"),
		attention("sixteen rows", grouped("bfloat16", "7,", 8, 2, 300, 64, 56), "%q, %k, %v", "scale = 0.125"),
		attention("nine rows, small heads", grouped("float16", "4,", 3, 3, 129, 32, 24), "%q, %k, %v", "scale = -0.2"),
		attention("a window of keys", grouped("float16", "4,", 4, 3, 200, 128, 120), "%q, %k, %v",
			"scale = 0.09, before = 20, behind = 131"),
		attention("no keys in the window", grouped("float16", "8,", 4, 2, 140, 64, 64), "%q, %k, %v",
			"scale = 0.09, before = 300, behind = 400, nan_to_zero = 1"),
		joined, masked,
	}
	for _, c := range cases {
		c.SMs, c.Of = 4, "attention_warps"
		t.Run(c.Name, func(t *testing.T) { golden.Check(t, []golden.Case{c}) }) // all candidates of each
	}
	split := attention("parts of the keys", grouped("float16", "2,", 4, 4, 2100, 64, 64), "%q, %k, %v", "scale = 0.125")
	golden.Check(t, []golden.Case{split})
}
