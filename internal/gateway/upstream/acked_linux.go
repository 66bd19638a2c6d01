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
			s.unacked = int64(info.Bytes_sent - info.Bytes_retrans + 1 - info.Bytes_acked) //nolint:gosec // bytes of one connection; the handshake counts as 1
			s.known, s.reset = info.Bytes_sent > 0 && info.Bytes_acked > 0, info.State == tcpClose
		}
	})
	return s
}
