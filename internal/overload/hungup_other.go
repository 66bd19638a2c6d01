//go:build !linux

package overload

import "syscall"

// hungUp always reports false on this platform. Requests of callers that have hung up are answered.
func hungUp(syscall.RawConn) bool { return false }
