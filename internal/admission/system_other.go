//go:build !linux

package admission

import (
	"syscall"
	"time"
)

// hungUp is not known here: requests of callers that have gone are answered.
func hungUp(syscall.RawConn) bool { return false }

// processorTime is not known here.
func processorTime() (used time.Duration, known bool) { return 0, false }
