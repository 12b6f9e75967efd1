package store

import "syscall"

// totalMemory is the machine's memory in bytes: what accessMessageInMemoryMaxRatio is a share of.
func totalMemory() int64 {
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err != nil {
		return defaultMemory
	}
	return int64(uint64(info.Totalram) * uint64(info.Unit))
}
