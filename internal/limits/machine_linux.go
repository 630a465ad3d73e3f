package limits

import "syscall"

// machineMemory is the bytes of the machine's memory; 0: it does not say.
func machineMemory() int64 {
	var info syscall.Sysinfo_t
	if syscall.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Totalram) * int64(max(info.Unit, 1))
}
