//go:build unix

package connbound

import "golang.org/x/sys/unix"

// OpenFiles returns how many files the process may open, or 0 if unknown.
func OpenFiles() int64 {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int64(min(limit.Cur, mostFiles))
}

// mostFiles replaces an unlimited value.
const mostFiles = 1 << 30
