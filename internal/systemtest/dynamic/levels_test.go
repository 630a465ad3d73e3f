package dynamic

import (
	"strings"
	"testing"

	"github.com/rammerc/rammerc/schedule"
)

// levelsBegin finds the boxes and the level of each.
const levelsBegin = `graph "levels" (%large: float32[1,8,8,8], %small: float32[1,8,4,4], %boxes: float32[40,4], %t: float32[]) {
  %zero = const int64[1] {0}
  %one = const int64[1] {1}
  %flat = const int64[1] {-1}
  %begin = const int64[] {0}
  %level = const float32[] {0}
  %window = const int64[3] {8, 4, 4}
  %last = const int64[1] {-9223372036854775807}
  %pairs = const int64[2] {-1, 2}
  %ends = const int64[2] {0, 0}
  %axes = const int64[2] {2, 3}
  %four = const int64[1] {4}
  %most = const int64[1] {40}
  %scores.column = Slice(%boxes, %zero, %one, %one)
  %scores = Squeeze(%scores.column, %one)
  %mask = Greater(%scores, %t)
  %first = NonZero(%mask)
  %first.at = Transpose(%first)
  %second = NonZero(%mask)
  %second.at = Squeeze(%second, %zero)
  %found = GatherND(%boxes, %first.at)
  %again = Gather(%boxes, %second.at)
  %twice = Add(%found, %again)
  %heights = Slice(%found, %one, %four, %one)
  %height = ReduceMax(%heights, %one) {keepdims = 0}
  %up = Greater(%height, %level)
  %down = Not(%up)
  %shape = Shape(%found)
  %n = Gather(%shape, %zero)
  %rows.shape = Concat(%n, %window) {axis = 0}
  %from = ConstantOfShape(%rows.shape) {value = float32[1] {0}}
`

// levelText puts the windows of a level into those of all boxes.
const levelText = `  %@.found = NonZero(%MASK)
  %@.at = Squeeze(%@.found, %zero)
  %@.boxes = Gather(%found, %@.at)
  %@.batch = Mul(%@.at, %zero)
  %@.windows = RoiAlign(%@, %@.boxes, %@.batch) {output_height = 4, output_width = 4, sampling_ratio = 1}
  %@.shape = Shape(%@.windows)
  %@.n = Gather(%@.shape, %zero)
  %@.whole = Concat(%@.n, %window) {axis = 0}
  %@.column = const int64[4] {-1, 1, 1, 1}
  %@.rows = Reshape(%@.at, %@.column)
  %@.indices = Expand(%@.rows, %@.whole)
  %@.all = ScatterElements(%FROM, %@.indices, %@.windows) {axis = 0}
`

// levelsEnd fills up the list.
const levelsEnd = `  %rest = Sub(%most, %n)
  %both = Concat(%ends, %zero, %rest) {axis = 0}
  %two = Reshape(%both, %pairs)
  %turned = Slice(%two, %flat, %last, %zero, %flat)
  %across = Transpose(%turned) {perm = [1, 0]}
  %pads = Reshape(%across, %flat)
  %list = Pad(%twice, %pads)
  return %means, %list
}
`

// levelsText is what exporters write behind the proposals of a detector: those with enough score, windows at them in one
// image of a pyramid or the other, put together in their order, and the list of boxes filled up to a fixed length.
func levelsText() string {
	b := &strings.Builder{}
	b.WriteString(levelsBegin)
	from := "from"
	for i, image := range []string{"large", "small"} {
		mask := []string{"up", "down"}[i]
		b.WriteString(strings.NewReplacer("@", image, "MASK", mask, "FROM", from).Replace(levelText))
		from = image + ".all"
	}
	b.WriteString("  %means = ReduceMax(%" + from + ", %axes) {keepdims = 0}\n" + levelsEnd)
	return b.String()
}

func TestLevels(t *testing.T) {
	findsAsEvaluator(t, levelsText(), schedule.PlanAuto, []float32{0, 9, -9})
}
