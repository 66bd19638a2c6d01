//go:build !unix

package connbound

// OpenFiles returns 0, because the limit is unknown on this platform.
func OpenFiles() int64 { return 0 }
