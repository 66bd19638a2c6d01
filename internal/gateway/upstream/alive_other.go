//go:build !unix

package upstream

// alive is not known here: a request to a connection that the upstream has closed fails.
func (c *conn) alive() bool { return true }
