//go:build unix

package upstream

import (
	"errors"
	"syscall"
)

// alive reports whether an idle connection is open and has no data to read. Readable data is either
// the end of the connection, or data that answers no request.
func (c *conn) alive() bool {
	if c.plain.raw == nil {
		return true
	}
	quiet := false
	err := c.plain.raw.Read(func(fd uintptr) bool {
		var one [1]byte
		_, err := syscall.Read(int(fd), one[:])
		quiet = errors.Is(err, syscall.EAGAIN)
		return true
	})
	return err == nil && quiet
}
