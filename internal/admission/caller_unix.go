//go:build unix

package admission

import (
	"errors"
	"syscall"
)

// hungUp reports whether the peer has closed the connection. What it may have sent before stays to be read.
func hungUp(rc syscall.RawConn) (gone bool) {
	err := rc.Control(func(fd uintptr) {
		var next [1]byte
		n, _, err := syscall.Recvfrom(int(fd), next[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		gone = err == nil && n == 0 || errors.Is(err, syscall.ECONNRESET)
	})
	return gone || err != nil
}
