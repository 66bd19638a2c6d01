//go:build !linux

// Package proctime returns the processor time of this process. It needs Linux.
package proctime

import (
	"errors"
	"fmt"
	"time"
)

// Self returns [errors.ErrUnsupported] on this system.
func Self() (time.Duration, error) {
	return 0, fmt.Errorf("read own processor time: %w", errors.ErrUnsupported)
}
