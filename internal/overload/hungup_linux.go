package overload

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// hungUp reports whether the peer has closed the connection, even if there is unread data. A peer
// that has closed only its side counts as gone, as in net/http.
func hungUp(rc syscall.RawConn) (gone bool) {
	err := rc.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}} //nolint:gosec // G115: a file descriptor
		_, err := unix.Poll(fds, 0)
		gone = err == nil && fds[0].Revents != 0
	})
	return gone || err != nil
}
