//go:build unix

package upstream

import (
	"errors"
	"syscall"
)

// alive reports whether an idle connection is open and has sent nothing: what can be read from it is its end, or
// no answer to anything.
func (c *conn) alive() bool {
	if c.raw == nil {
		return true
	}
	quiet := false
	err := c.raw.Read(func(fd uintptr) bool {
		var one [1]byte
		_, err := syscall.Read(int(fd), one[:])
		quiet = errors.Is(err, syscall.EAGAIN)
		return true
	})
	return err == nil && quiet
}
