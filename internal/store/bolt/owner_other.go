//go:build !unix

package bolt

import "os"

// keepOwner does nothing: files have no owner that the server must be.
func keepOwner(*os.File, string) error { return nil }
