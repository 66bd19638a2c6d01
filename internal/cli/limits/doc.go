// Package limits has the commands that show and change the limits of a running server, through its
// admin API.
package limits
