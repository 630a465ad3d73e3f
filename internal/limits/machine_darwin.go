package limits

import "golang.org/x/sys/unix"

// machineMemory is the bytes of the machine's memory; 0: it does not say.
func machineMemory() int64 {
	n, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0
	}
	return int64(n)
}
