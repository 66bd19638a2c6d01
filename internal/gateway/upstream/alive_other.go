//go:build !unix

package upstream

// alive always reports true on this platform. A request on a connection that the upstream has
// closed fails.
func (c *conn) alive() bool { return true }
