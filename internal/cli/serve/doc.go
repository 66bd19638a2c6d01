// Package serve has the commands that run a server or a gateway, and the health check of both.
package serve
