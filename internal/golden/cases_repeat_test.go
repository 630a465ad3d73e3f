package golden

import (
	"testing"
)

// Loops of a single turn that carry a value, take chunks of sequences and collect rows, forwards and backwards, along
// both axes and of several types. The host repeats turns, which these tests have none of: loops of several turns are
// compiled by cmd/rammerc's script long_recurrence.
func TestLoops(t *testing.T) {
	Check(t, []Case{
		{Name: "forwards", In: "%x: float32[12,3], %h: float32[12,3]", Out: "%last, %all",
			Body: `%k, %c, %part = rammer.RepeatBegin(%h, %x) {loop = 0, trips = 1, carried = 1, axes = [0], reverse = [0]}
%next = Add(%c, %part)
%rows = Mul(%part, %c)
%last, %all = rammer.RepeatEnd(%k, %next, %rows) {loop = 0, trips = 1, carried = 1, axes = [0], reverse = [0]}`},
		{Name: "backwards", In: "%x: float32[2,20,8], %h: float32[2,20,8]", Out: "%last, %all",
			Body: `%k, %c, %part = rammer.RepeatBegin(%h, %x) {loop = 0, trips = 1, carried = 1, axes = [1], reverse = [1]}
%next = Sub(%part, %c)
%last, %all = rammer.RepeatEnd(%k, %next, %next) {loop = 0, trips = 1, carried = 1, axes = [1], reverse = [1]}`},
		{Name: "turns", In: "%x: int64[6]", Out: "%all",
			Body: `%k, %part = rammer.RepeatBegin(%x) {loop = 0, trips = 1, axes = [0], reverse = [1]}
%sum = Add(%part, %k)
%all = rammer.RepeatEnd(%k, %sum) {loop = 0, trips = 1, axes = [0], reverse = [0]}`},
	})
}
