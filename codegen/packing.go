package codegen

import "encoding/binary"

// Program tables of special programs stand packed in the weights file, because a library has several of them and a run
// needs one. rt/host/unpack.h unpacks them. A packed table is
//
//	words    uint32             how many words of 32 bits the table has
//	period   uint32             all words but the first `period` ones are differences to the word so many words before
//	tokens   until the end      how many bytes follow, these bytes; how many bytes to copy, from how far back
//
// where numbers have seven bits in each byte, the low ones first, and the eighth bit says that more follow. The steps of
// a vEU resemble those of the vEU before, with other numbers of rTasks. So with the words of one vEU as the period most
// differences repeat, and copies are long.

// mostPeriod is the largest period that is tried, in words.
const mostPeriod = 4096

// leastCopy is the shortest copy that is worth its token, in bytes.
const leastCopy = 6

// packTables packs a table, whose length is a multiple of 4.
func packTables(data []byte) []byte {
	words := make([]uint32, len(data)/4)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	var best []byte
	for _, period := range likelyPeriods(words) {
		if p := packWith(words, period); best == nil || len(p) < len(best) {
			best = p
		}
	}
	return best
}

// likelyPeriods are the periods with which most differences equal the one before, and the whole table, which leaves the
// words as they are.
func likelyPeriods(words []uint32) []int {
	const tried = 4
	out, counts := []int{len(words)}, []int{-1}
	sample := min(len(words), 1<<16)
	for period := 4; period <= min(mostPeriod, sample/2); period += 4 {
		n := 0
		for i := 2 * period; i < sample; i++ {
			if words[i]-words[i-period] == words[i-period]-words[i-2*period] {
				n++
			}
		}
		at := len(counts)
		for at > 1 && counts[at-1] < n {
			at--
		}
		out = append(out[:at], append([]int{period}, out[at:]...)...)
		counts = append(counts[:at], append([]int{n}, counts[at:]...)...)
		out, counts = out[:min(tried, len(out))], counts[:min(tried, len(counts))]
	}
	return out
}

func packWith(words []uint32, period int) []byte {
	data := make([]byte, 0, 4*len(words))
	for i, w := range words {
		if i >= period {
			w -= words[i-period]
		}
		data = binary.LittleEndian.AppendUint32(data, w)
	}
	out := binary.LittleEndian.AppendUint32(nil, uint32(len(words)))
	out = binary.LittleEndian.AppendUint32(out, uint32(period))
	return appendTokens(out, data)
}

// appendTokens finds copies greedily, by the places at which the same bytes were seen last.
func appendTokens(out, data []byte) []byte {
	last := map[[leastCopy]byte]int{}
	key := func(i int) [leastCopy]byte { return [leastCopy]byte(data[i:]) }
	begin, i := 0, 0 // of the bytes that are not copied; where we are
	for i+leastCopy <= len(data) {
		k := key(i)
		from, known := last[k]
		last[k] = i
		if !known {
			i++
			continue
		}
		n := leastCopy
		for i+n < len(data) && data[from+n] == data[i+n] {
			n++
		}
		out = appendToken(out, data[begin:i], n, i-from)
		for j := i + 1; j < i+n && j+leastCopy <= len(data); j++ {
			last[key(j)] = j
		}
		i += n
		begin = i
	}
	return appendToken(out, data[begin:], 0, 0)
}

func appendToken(out, plain []byte, copied, back int) []byte {
	out = binary.AppendUvarint(out, uint64(len(plain)))
	out = append(out, plain...)
	out = binary.AppendUvarint(out, uint64(copied))
	return binary.AppendUvarint(out, uint64(back))
}
