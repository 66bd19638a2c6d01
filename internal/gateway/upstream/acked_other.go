//go:build !linux

package upstream

import "syscall"

func stateOf(syscall.RawConn) tcpState { return tcpState{} }
