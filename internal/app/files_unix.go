//go:build unix

package app

import "golang.org/x/sys/unix"

// openFiles returns how many files the process may open; 0 if that is not known.
func openFiles() int64 {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int64(min(limit.Cur, mostFiles))
}

// mostFiles stands for no limit.
const mostFiles = 1 << 30
