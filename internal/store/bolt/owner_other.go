//go:build !unix

package bolt

import "os"

// keepOwner does nothing: on this system the server does not depend on the owner of a file.
func keepOwner(*os.File, string) error { return nil }
