// Package overload refuses requests while the server is overloaded, the least critical first, so
// that others are answered in time. Limits protect against one client. This package protects
// against many clients that are each below their limit.
//
// It never waits and does not change limits. Its only I/O for a request is a check whether the
// caller is still connected, and only under overload.
package overload
