//go:build !unix

package app

// openFiles returns 0, because the limit is unknown on this platform.
func openFiles() int64 { return 0 }
