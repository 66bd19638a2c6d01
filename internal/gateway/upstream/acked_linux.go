package upstream

import (
	"syscall"

	"golang.org/x/sys/unix"
)

const tcpClose = 7 // TCP_CLOSE in include/net/tcp_states.h

func stateOf(raw syscall.RawConn) (s tcpState) {
	if raw == nil {
		return s
	}
	_ = raw.Control(func(fd uintptr) { // a closed socket has no state
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			s = tcpState{info.Bytes_acked, info.State == tcpClose}
		}
	})
	return s
}
