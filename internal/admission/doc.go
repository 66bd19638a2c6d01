// Package admission refuses requests while the server is overloaded, the least critical first, so that the others are
// answered in time. Limits protect against one client; this protects against many that are each below their limit.
//
// It never waits, does no I/O for a request but to ask whether an overloaded server still has the caller, and changes
// nothing about limits.
package admission
