package limits

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// memory is what SetMemory has set, in bytes; 0 before.
var memory atomic.Int64

// Memory is how many bytes the tensors of one stage may take together, such as the constants of a model or the values
// of an evaluation. It is what SetMemory has set, or else half of what the process can have.
func Memory() int64 {
	if n := memory.Load(); n > 0 {
		return n
	}
	n := available() / 2
	memory.CompareAndSwap(0, n)
	return n
}

// SetMemory sets what Memory returns, in bytes, for the whole process.
func SetMemory(bytes int64) { memory.Store(bytes) }

// CheckMemory returns an error if what takes more bytes than Memory allows.
func CheckMemory(what string, bytes int64) error {
	if limit := Memory(); bytes > limit || bytes < 0 {
		return fmt.Errorf("%s would take %s, more than the %s that --max-memory allows", what, Bytes(bytes), Bytes(limit))
	}
	return nil
}

// Bytes prints a number of bytes with a unit: "2.0 GiB". A negative number stands for more than an int64 holds.
func Bytes(n int64) string {
	const units = "KMGTPE"
	switch {
	case n < 0:
		return "over 8 EiB"
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	}
	x, unit := float64(n)/1024, 0
	for x >= 1024 && unit < len(units)-1 {
		x, unit = x/1024, unit+1
	}
	return fmt.Sprintf("%.1f %ciB", x, units[unit])
}

// ParseBytes reads a number of bytes such as 500000000, 512M, 2GiB or 1.5G; K, M, G and T are powers of 1024.
func ParseBytes(text string) (int64, error) {
	number := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(text), "B"), "I")
	factor := 1.0
	if i := strings.IndexAny(number, "KMGT"); i >= 0 && i == len(number)-1 {
		factor = float64(int64(1) << (10 * (1 + strings.IndexByte("KMGT", number[i]))))
		number = number[:i]
	}
	x, err := strconv.ParseFloat(number, 64)
	if err != nil || !(x*factor >= 1 && x*factor < 1<<62) {
		return 0, fmt.Errorf("%q is not a number of bytes such as 512M or 2GiB", text)
	}
	return int64(x * factor), nil
}

// available is the least of the machine's memory, the limit of the process's control group, and its limit on address
// space; of the latter a part that Go needs for itself is taken off.
func available() int64 {
	n := machineMemory()
	if n <= 0 {
		n = 8 << 30 // where the machine does not say
	}
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		if text, err := os.ReadFile(file); err == nil {
			if limit, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64); err == nil && limit > 0 {
				n = min(n, limit)
			}
		}
	}
	var address syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_AS, &address) == nil && address.Cur < 1<<62 {
		const own = 512 << 20
		n = min(n, max(int64(address.Cur)-own, 64<<20))
	}
	return n
}
